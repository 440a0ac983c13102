"""`GradientTape`: gradients of what Python computed, without a function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Literal

import numpy as np

from wend.base import trees
from wend.base.errors import (
    NotDifferentiableError,
    ShapeError,
    StructureError,
    TypeMismatchError,
    explain,
)
from wend.eager.dispatch import Staged
from wend.eager.promotion import as_array, cast, is_weak, tensor_type
from wend.ir.graph import Value
from wend.ir.types import accepts
from wend.numpy import creating
from wend.tape.eager_recording import EagerRecording
from wend.tape.eager_tape import EagerTape
from wend.tape.errors import TapeError
from wend.tape.traced_tape import TracedTape
from wend.trace.recording.arguments import is_array_leaf
from wend.trace.recording.recording import current
from wend.trace.state.variable import Variable


class GradientTape:
    """Records what is computed from watched arrays, to give gradients of it.

    Inside the `with` block, operations on arrays that it watches are recorded as they run, so
    Python's own control flow works on them. A call of a `wend.function` runs compiled, and is
    one operation of the recording.

    Args:
        persistent: whether `gradient` may be asked more than once.
        watch_accessed_variables: whether trainable `Variable`s are watched when they are read.

    Example:
        >>> import wend
        >>> with wend.GradientTape() as tape:
        ...     x = tape.watch(3.0)
        ...     y = x * x
        >>> tape.gradient(y, x)
        np.float64(6.0)
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self.persistent = persistent
        self.watch_accessed_variables = watch_accessed_variables
        self._tape: EagerTape | TracedTape | None = None
        self._is_recording = False
        self._is_spent = False

    # Recording
    def __enter__(self) -> GradientTape:
        if self._is_recording:
            raise TapeError("this GradientTape records already: open another one")
        if self._is_spent:
            raise TapeError(_SPENT)
        if self._tape is not None and not self._tape.can_enter():
            raise TapeError(
                explain(
                    "this GradientTape was opened in another recording.",
                    cure="use a new tape, or reset() this one before.",
                )
            )
        self._tape = self._tape or self._new()
        self._tape.enter()
        self._is_recording = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()

    def _new(self) -> EagerTape | TracedTape:
        here = current()
        is_traced = here is not None and not isinstance(here, EagerRecording)
        return (TracedTape if is_traced else EagerTape)(self.watch_accessed_variables)

    def _leave(self) -> None:
        if self._is_recording and self._tape is not None:
            self._is_recording = False
            self._tape.leave()

    def _open(self, wanted: str) -> EagerTape | TracedTape:
        if self._tape is None:
            raise TapeError(
                explain(
                    f"{wanted}: nothing has been recorded.",
                    cure="open the tape: with wend.GradientTape() as tape: …",
                )
            )
        return self._tape

    def watch(self, x: Any) -> Any:
        """The arrays that the tape follows: compute with what this returns.

        Args:
            x: a pytree of float arrays and numbers, or of `Variable`s. Integers in it stay what
                they are.

        Returns:
            The same structure with recorded arrays. A plain array cannot be told from its copies,
            so what is computed from `x` itself is not recorded. Variables are themselves.

        Raises:
            NotDifferentiableError: `x` is an array of integers, or no array.

        Example:
            >>> import wend
            >>> with wend.GradientTape() as tape:
            ...     p = tape.watch({"w": 2.0, "n": 3})
            ...     y = p["w"] * p["n"]
            >>> tape.gradient(y, p)
            {'w': np.float64(3.0), 'n': None}
        """
        if not self._is_recording:
            raise TapeError(
                explain(
                    "watch: the tape does not record here.",
                    cure="call it inside `with wend.GradientTape() as tape:`.",
                )
            )
        tape = self._open("watch")
        leaves, tree = trees.flatten(x)
        if len(leaves) == 1 and leaves[0] is x and not _is_float(x) and type(x) is not int:
            raise NotDifferentiableError(
                explain(
                    f"watch: {_described(x)} has no derivative.",
                    cure="watch floats (x.astype(float)).",
                )
            )
        return trees.unflatten(tree, [_watched(tape, leaf, leaf is x) for leaf in leaves])

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """A block in which this tape does not record."""
        tape = self._open("stop_recording")
        tape.pause()
        try:
            yield
        finally:
            if self._is_recording:
                tape.resume()

    def reset(self) -> None:
        """Forget all that was recorded, and what is watched."""
        was_recording = self._is_recording
        self._leave()
        self._tape, self._is_spent = None, False
        if was_recording:
            self.__enter__()

    def watched_variables(self) -> tuple[Any, ...]:
        """The variables that were read while they were watched, in that order."""
        return tuple(
            variable for variable, _ in self._open("watched_variables").first_read.values()
        )

    # Gradients
    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Literal["none", "zero"] = "none",
    ) -> Any:
        """The gradient of what was computed, with respect to what it was computed from.

        Args:
            target: an array, or a pytree of them, computed under the tape. The gradient is that
                of the sum of all elements, each times its output gradient.
            sources: arrays that the tape follows, `Variable`s, or a pytree of these; also
                intermediate results. A variable stands for what it held when it was first read.
            output_gradients: cotangents like `target`; None: ones.
            unconnected_gradients: what a source gets from which no path leads to the target:
                `"none"` or `"zero"`. A loop of no trips is a path; its gradient is 0.

        Returns:
            A pytree like `sources`: plain arrays, or recorded ones where another tape records.
            Integers in it get None.

        Raises:
            NotDifferentiableError: a source is not followed by this tape, or an array of
                integers; a target is complex, without an output gradient.
            TapeError: the gradient was asked before, and the tape is not persistent.

        Example:
            >>> import wend, wend.numpy as wnp
            >>> with wend.GradientTape(persistent=True) as tape:
            ...     x = tape.watch(2.0)
            ...     while x * x < 100.0:
            ...         y = x = x * x
            >>> tape.gradient(y, x)
            np.float64(1.0)
        """
        if self._is_spent:
            raise TapeError(_SPENT)
        if unconnected_gradients not in ("none", "zero"):
            raise ValueError(
                f"unconnected_gradients is 'none' or 'zero', not {unconnected_gradients!r}"
            )
        tape = self._open("gradient")
        tape.check_here()
        leaves, tree = trees.flatten(sources)
        values = [_source(tape, leaf, leaf is sources, len(leaves)) for leaf in leaves]
        seeds = _seeds(tape, target, output_gradients)
        if not self.persistent:
            self._leave()
        known = list(dict.fromkeys(value for value in values if value is not None))
        found = dict(zip(known, tape.pull_back(seeds, known), strict=True))
        grads = [
            _filled(None if value is None else found[value], leaf, unconnected_gradients)
            for leaf, value in zip(leaves, values, strict=True)
        ]
        if not self.persistent:
            self._is_spent = True
            tape.release([value for value, _ in seeds])
        return trees.unflatten(tree, grads)


_SPENT = explain(
    "this GradientTape has given its gradient, and let go of what it recorded.",
    cure="ask for all gradients at once (a list of sources), or open it as "
    "wend.GradientTape(persistent=True).",
)


def _is_float(x: Any) -> bool:
    return is_array_leaf(x) and tensor_type(x).dtype.kind in "fc"


def _described(x: Any) -> str:
    return str(tensor_type(x)) if is_array_leaf(x) else f"a {type(x).__name__}"


def _watched(tape: EagerTape | TracedTape, leaf: Any, is_all: bool) -> Any:
    if isinstance(leaf, Variable):
        tape.watch_variable(leaf)
        return leaf
    if type(leaf) is int and is_all:
        leaf = float(leaf)
    if not _is_float(leaf):
        return leaf
    return tape.watch(as_array(leaf), weak=is_weak(leaf))


def _source(tape: EagerTape | TracedTape, leaf: Any, is_all: bool, count: int) -> Value | None:
    """The value of a source; None of what cannot be connected."""
    if isinstance(leaf, Variable):
        return tape.value_of_variable(leaf)
    if is_array_leaf(leaf) and tensor_type(leaf).dtype.kind not in "fc":
        if not is_all and not isinstance(leaf, Staged):
            return None
        raise NotDifferentiableError(
            explain(
                f"gradient: the source is {_described(leaf)}, which has no derivative.",
                cure="watch floats (x.astype(float)).",
            )
        )
    value = tape.value_of(leaf)
    if value is None:
        which = "the source" if is_all or count == 1 else "a source"
        if isinstance(leaf, Staged):
            what = f"{which} is {leaf!r}, which this tape does not follow."
        else:
            what = f"{which} is {_described(leaf)}, a plain {_kind(leaf)}: nothing was recorded."
        raise NotDifferentiableError(
            explain(
                f"gradient: {what}",
                cure="write x = tape.watch(x) inside the with block, compute with that x, and "
                "ask for its gradient.",
            )
        )
    return value


def _kind(leaf: Any) -> str:
    return "array" if isinstance(leaf, np.ndarray) else "number"


def _seeds(
    tape: EagerTape | TracedTape, target: Any, output_gradients: Any
) -> Sequence[tuple[Value, Any]]:
    """The targets that the tape follows, each with its cotangent."""
    leaves, tree = trees.flatten(target)
    cotangents: Sequence[Any] = [None] * len(leaves)
    if output_gradients is not None:
        cotangents, other = trees.flatten(output_gradients)
        if other != tree:
            raise StructureError(
                f"gradient: output_gradients is {trees.described(output_gradients)}, "
                f"the target is {trees.described(target)}"
            )
    seeds = []
    for leaf, ct in zip(leaves, cotangents, strict=True):
        value = tape.value_of(leaf.read() if isinstance(leaf, Variable) else leaf)
        if not is_array_leaf(leaf):
            raise TypeMismatchError(f"gradient: the target is {leaf!r:.60}, not an array")
        if value is not None:
            seeds.append((value, _seed(value, ct)))
    return seeds


def _seed(value: Value, ct: Any) -> Any:
    wanted = value.tensor
    if ct is None:
        if wanted.dtype.kind == "c":
            raise NotDifferentiableError(
                explain(
                    f"gradient: the target is {wanted}, not real.",
                    cure="take the real part, or the absolute value; or give output_gradients.",
                )
            )
        if not wanted.is_static:
            return None  # a trace finds out when it runs
        sizes = [dim for dim in wanted.dims if isinstance(dim, int)]
        return np.ones(sizes, wanted.dtype)[()]
    ct = as_array(ct)
    ct = cast(ct, wanted.dtype) if is_weak(ct) else ct
    found = tensor_type(ct)
    if found.dtype != wanted.dtype:
        raise TypeMismatchError(f"gradient: the output gradient is {found}, the target {wanted}")
    if not accepts(wanted, found):
        raise ShapeError(f"gradient: the output gradient is {found}, the target {wanted}")
    return ct


def _filled(found: Any, leaf: Any, unconnected: str) -> Any:
    if found is not None or unconnected == "none" or not _is_float(leaf):
        return found
    zeros = creating.zeros_like(leaf)
    return zeros[()] if isinstance(zeros, np.ndarray) else zeros
