"""`recurrence`: a function of the rows of sequences and of its own earlier outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import wend.numpy as wnp
from wend.base.errors import ShapeError, StructureError, explain
from wend.base.lazy.dataclass import dataclass
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged
from wend.numpy.elementwise import stop_gradient
from wend.sequence.taps import OutputTaps, SequenceTaps, output_taps, sequence_taps
from wend.trace.control.scan import scan_until
from wend.trace.recording.checks import check_integer


@dataclass(frozen=True, slots=True)
class Until:
    """A condition that ends a recurrence; see `until`."""

    condition: Any


def until(condition: Any) -> Until:
    """Return what a step gives, after its outputs, to end the recurrence where a condition holds.

    The outputs of the step in which it holds are the last ones.

    Args:
        condition: a bool scalar.

    Example:
        >>> import numpy as np
        >>> from wend.sequence import recurrence, until
        >>> recurrence(lambda x: (x * x, until(x > 2.0)), np.arange(9.0))
        array([0., 1., 4., 9.])
    """
    return Until(condition)


def recurrence(
    fn: Callable[..., Any],
    sequences: Any = None,
    outputs_info: Any = None,
    non_sequences: Any = None,
    n_steps: Any = None,
    truncate_gradient: int = -1,
    go_backwards: bool = False,
    *,
    lengths: Any = None,
) -> Any:
    """Apply a function step by step to rows of sequences and to its own earlier outputs.

    It is a loop, which may be nested and differentiated to any order. The signature is that of
    Theano's `scan`.

    Args:
        fn: gives one output or a list of them, perhaps with `until(condition)` after them. It takes
            the rows of the sequences, one for each tap; then the earlier outputs, one for each
            tap; then the non-sequences.
        sequences: an array or a list of them, each with a row for each step; in place of one
            `dict(input=…, taps=[…])`, which reads also rows before (−1, …) or after (1, …) that of
            the step. The steps are those for which every tap has a row.
        outputs_info: for each output what is read of it: None, nothing; an array, the value before,
            which is that array before the first step; `dict(initial=…, taps=[−2, −1])`, several.
            `initial` then has as many rows as the oldest tap needs, the oldest first.
        non_sequences: further arguments, the same in each step.
        n_steps: the number of steps, an integer, plain or traced; needed without sequences.
        truncate_gradient: the number of last steps that gradients go through; −1: all.
        go_backwards: read every sequence from its last row to its first. Outputs are in the order
            of the steps.
        lengths: an integer for each row of a batch, which is the first axis of each output: how
            many steps it takes part in. Then it keeps its state, and its later outputs are 0.

    Returns:
        The outputs with a new first axis of steps: one array, or a list of them if `fn` gives
        several.

    Raises:
        ShapeError: a sequence is too short for the steps, or their number is not determined.
        StructureError: `fn` gives another number of outputs than `outputs_info` says.
        ValueError: a tap of an output is not negative, or an option is unknown.

    Example:
        >>> import numpy as np
        >>> from wend.sequence import recurrence
        >>> start = dict(initial=np.array([0.0, 1.0]), taps=[-2, -1])
        >>> recurrence(lambda a, b: a + b, outputs_info=start, n_steps=5)
        array([1., 2., 3., 5., 8.])
    """
    where = f"recurrence{at(user_source())}"
    if truncate_gradient != -1 and (
        not isinstance(truncate_gradient, int) or truncate_gradient < 1
    ):
        raise ValueError(f"{where}: truncate_gradient is a number of steps or -1")
    if n_steps is not None:
        check_integer(n_steps, f"{where}: n_steps")
        n_steps = n_steps if isinstance(n_steps, Staged) else int(n_steps)
    others = non_sequences if isinstance(non_sequences, (list, tuple)) else [non_sequences]
    steps = _Steps(
        fn,
        sequence_taps(sequences, go_backwards),
        output_taps(outputs_info),
        [] if non_sequences is None else others,
        None if lengths is None else wnp.asarray(lengths),
        where,
    )
    count = steps.count(n_steps)
    return steps.run(count, truncate_gradient)


class _Steps:
    """The steps of a recurrence."""

    def __init__(
        self,
        fn: Callable[..., Any],
        sequences: Sequence[SequenceTaps],
        outputs: Sequence[OutputTaps] | None,
        others: Sequence[Any],
        lengths: Any,
        where: str,
    ) -> None:
        self.fn, self.sequences, self.outputs, self.others = fn, sequences, outputs, others
        self.lengths, self.where = lengths, where
        self.is_single = False
        self.has_until = False

    def count(self, n_steps: Any) -> Any:
        """Return the number of steps, a plain or traced integer."""
        available = [item.input.shape[0] - item.span + 1 for item in self.sequences]
        if not available:
            if n_steps is None:
                raise ShapeError(
                    f"{self.where}: give sequences or n_steps, to determine the number of steps"
                )
            return n_steps if isinstance(n_steps, Staged) else max(n_steps, 0)
        shortest = available[0]
        for size in available[1:]:
            shortest = (
                wnp.minimum(shortest, size) if _is_traced(shortest, size) else min(shortest, size)
            )
        if n_steps is None:
            return wnp.maximum(shortest, 0) if _is_traced(shortest) else max(shortest, 0)
        if _is_traced(n_steps, shortest):
            return wnp.minimum(n_steps, shortest)
        if n_steps > shortest:
            raise ShapeError(
                explain(
                    f"{self.where}: n_steps={n_steps}, and the sequences have rows for {shortest} "
                    "steps.",
                    cure="make fewer steps, or give longer sequences; each tap needs a row.",
                )
            )
        return max(n_steps, 0)

    def run(self, count: Any, truncated: int) -> Any:
        """Return the outputs."""
        rows = [tap for item in self.sequences for tap in item.rows(count)]
        state = [tuple(output.initial) for output in self.outputs or ()]
        if truncated == -1:
            ys, _, _ = self._scan(rows, state, 0, count)
            return self._result(ys)
        # The steps that gradients stop at run first, on their own; what they give is constant
        taken = count
        if self._stops(rows, state):
            _, _, taken = self._scan(rows, state, 0, count)
        before_last = taken - truncated
        first = wnp.maximum(before_last, 0) if _is_traced(taken) else max(before_last, 0)
        early, before, _ = self._scan([x[:first] for x in rows], state, 0, first)
        before = [
            tuple(
                wnp.where(first > 0, stop_gradient(x), x)
                if _is_traced(first)
                else (stop_gradient(x) if first else x)
                for x in window
            )
            for window in before
        ]
        late, _, _ = self._scan([x[first:] for x in rows], before, first, taken - first)
        joined = [wnp.concatenate([stop_gradient(a), b]) for a, b in zip(early, late, strict=True)]
        return self._result(joined)

    def _stops(self, rows: Any, state: Any) -> bool:
        """Return whether a step gives an `until`: one is recorded to see."""
        self._scan([x[:0] for x in rows], state, 0, 0)
        return self.has_until

    def _result(self, ys: Sequence[Any]) -> Any:
        return ys[0] if self.is_single else [*ys]

    def _scan(
        self, rows: Sequence[Any], state: Any, first: Any, count: Any
    ) -> tuple[list[Any], Any, Any]:
        """Run steps from a state; return the outputs, the state after them, and their number."""
        start = wnp.asarray(first)
        xs, length = ([*rows], None) if rows else (None, count)

        def step(carry: Any, x: Any) -> tuple[Any, Any]:
            (number, windows), _ = carry
            following, ys, stop = self._step(number, windows, x or ())
            return ((number + 1, following), stop), ys

        (last, _), ys, taken = scan_until(step, ((start, [*state]), False), xs, length, self.where)
        return ys, last[1], taken if self.has_until else count

    def _step(self, number: Any, windows: Any, rows: Sequence[Any]) -> tuple[Any, list[Any], Any]:
        earlier = [
            window[tap]
            for output, window in zip(self.outputs or (), windows, strict=True)
            for tap in output.taps
        ]
        ys, stop = self._called(self.fn(*rows, *earlier, *self.others))
        next_windows = []
        shown = [wnp.asarray(y) for y in ys]
        if self.lengths is not None:
            shown = [self._where_running(number, y, wnp.zeros_like(y)) for y in shown]
        for k, window in enumerate(windows):
            if window and self.lengths is not None:
                moved = (*window[1:], ys[k])
                window = tuple(
                    self._where_running(number, new, old)
                    for new, old in zip(moved, window, strict=True)
                )
            elif window:
                window = (*window[1:], ys[k])
            next_windows.append(window)
        return next_windows, shown, stop

    def _where_running(self, number: Any, new: Any, old: Any) -> Any:
        """Return new values for the rows of a batch that take part in a step, else the old ones."""
        new = wnp.asarray(new)
        if not new.ndim or new.shape[0] != self.lengths.shape[0]:
            raise ShapeError(
                explain(
                    f"{self.where}: with lengths, outputs have a batch as first axis.",
                    f"one is of shape {tuple(new.shape)}, lengths of {tuple(self.lengths.shape)}",
                )
            )
        is_running = (number < self.lengths).reshape((-1, *[1] * (new.ndim - 1)))
        return wnp.where(is_running, new, old)

    def _called(self, result: Any) -> tuple[list[Any], Any]:
        """Return the outputs of a step, and whether it is the last one."""
        stop: Any = False
        ys = [*result] if isinstance(result, (list, tuple)) else [result]
        if ys and isinstance(ys[-1], Until):
            *ys, end = ys
            stop, self.has_until = end.condition, True
        self.is_single = len(ys) == 1
        if len(ys) == 1 and isinstance(ys[0], (list, tuple)):
            ys = [*ys[0]]
            self.is_single = len(ys) == 1
        if self.outputs is not None and len(ys) != len(self.outputs):
            raise StructureError(
                f"{self.where}: fn gives {len(ys)} outputs, and outputs_info tells of "
                f"{len(self.outputs)}"
            )
        return ys, stop


def _is_traced(*values: Any) -> bool:
    return any(isinstance(value, Staged) for value in values)
