"""`GradientTape`: gradients of what Python has computed, without a function."""

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
    TapeError,
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
from wend.tape.traced_tape import TracedTape
from wend.trace.recording.arguments import is_array_leaf
from wend.trace.recording.recording import current
from wend.trace.state.variable import Variable


class GradientTape:
    """A recording of operations on watched arrays, through which gradients are taken.

    Inside the `with` block, operations on arrays that it watches are recorded as they run, so
    Python's own control flow works on them. A call of a `wend.function` runs compiled, and is
    one operation of the recording.

    Args:
        persistent: whether `gradient` may be called more than once.
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
        self._is_released = False

    # Recording
    def __enter__(self) -> GradientTape:
        if self._is_recording:
            raise TapeError("this GradientTape is already recording: open another one")
        if self._is_released:
            raise TapeError(_RELEASED)
        if self._tape is not None and not self._tape.can_enter():
            raise TapeError(
                explain(
                    "this GradientTape was opened in another recording.",
                    cure="use a new tape, or reset() this one first.",
                )
            )
        self._tape = self._tape or self._new_tape()
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

    def _new_tape(self) -> EagerTape | TracedTape:
        recording = current()
        is_traced = recording is not None and not isinstance(recording, EagerRecording)
        return (TracedTape if is_traced else EagerTape)(self.watch_accessed_variables)

    def _leave(self) -> None:
        if self._is_recording and self._tape is not None:
            self._is_recording = False
            self._tape.leave()

    def _require_tape(self, method: str) -> EagerTape | TracedTape:
        if self._tape is None:
            raise TapeError(
                explain(
                    f"{method}: nothing has been recorded.",
                    cure="open the tape: with wend.GradientTape() as tape: …",
                )
            )
        return self._tape

    def watch(self, x: Any) -> Any:
        """Return arrays that the tape follows; compute with these.

        Args:
            x: a pytree of float arrays and numbers, or of `Variable`s. Integers in it are returned
                unchanged.

        Returns:
            The same structure with recorded arrays. Operations on `x` itself are not recorded,
            since a plain array cannot be told from its copies. Variables are returned unchanged.

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
        tape = self._require_tape("watch")
        leaves, tree = trees.flatten_deep(x)
        if len(leaves) == 1 and leaves[0] is x and not _is_float(x) and type(x) is not int:
            raise NotDifferentiableError(
                explain(
                    f"watch: {_described(x)} has no derivative.",
                    cure="watch floats (x.astype(float)).",
                )
            )
        return trees.unflatten(tree, [_watch_leaf(tape, leaf, leaf is x) for leaf in leaves])

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Suspend recording on this tape in a `with` block."""
        tape = self._require_tape("stop_recording")
        tape.pause()
        try:
            yield
        finally:
            if self._is_recording:
                tape.resume()

    def reset(self) -> None:
        """Drop everything that was recorded, and what is watched."""
        was_recording = self._is_recording
        self._leave()
        self._tape, self._is_released = None, False
        if was_recording:
            self.__enter__()

    def watched_variables(self) -> tuple[Any, ...]:
        """Return the variables that were read while they were watched, in the order of reads."""
        return tuple(
            variable for variable, _ in self._require_tape("watched_variables").first_read.values()
        )

    # Gradients
    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Literal["none", "zero"] = "none",
    ) -> Any:
        """Return the gradient of a target with respect to sources that it was computed from.

        Args:
            target: an array, or a pytree of them, computed under the tape. The gradient is that of
                the sum of all elements, each times its output gradient.
            sources: arrays that the tape follows, `Variable`s, or a pytree of these; intermediate
                results are allowed. A variable stands for its value when it was first read.
            output_gradients: cotangents like `target`; None: ones.
            unconnected_gradients: the gradient of a source without a path to the target: `"none"`
                or `"zero"`. A loop without trips is a path; its gradient is 0.

        Returns:
            A pytree like `sources` of plain arrays, or of recorded ones if another tape records.
            Integers get None.

        Raises:
            NotDifferentiableError: a source is not followed by this tape, or is an array of
                integers; or a target is complex and has no output gradient.
            TapeError: `gradient` was called before, and the tape is not persistent.

        Example:
            >>> import wend, wend.numpy as wnp
            >>> with wend.GradientTape(persistent=True) as tape:
            ...     x = tape.watch(2.0)
            ...     while x * x < 100.0:
            ...         y = x = x * x
            >>> tape.gradient(y, x)
            np.float64(1.0)
        """
        if self._is_released:
            raise TapeError(_RELEASED)
        if unconnected_gradients not in ("none", "zero"):
            raise ValueError(
                f"unconnected_gradients is 'none' or 'zero', not {unconnected_gradients!r}"
            )
        tape = self._require_tape("gradient")
        tape.check_recording()
        leaves, tree = trees.flatten_deep(sources)
        values = [_source_value(tape, leaf, leaf is sources, len(leaves)) for leaf in leaves]
        seeds = _target_seeds(tape, target, output_gradients)
        if not self.persistent:
            self._leave()
        distinct = list(dict.fromkeys(value for value in values if value is not None))
        cts = dict(zip(distinct, tape.pull_back(seeds, distinct), strict=True))
        grads = [
            _zero_filled(None if value is None else cts[value], leaf, unconnected_gradients)
            for leaf, value in zip(leaves, values, strict=True)
        ]
        if not self.persistent:
            self._is_released = True
            tape.release([value for value, _ in seeds])
        return trees.unflatten(tree, grads)


_RELEASED = explain(
    "this GradientTape has computed its gradient, and freed what it recorded.",
    cure="ask for all gradients at once (a list of sources), or open it as "
    "wend.GradientTape(persistent=True).",
)


def _is_float(x: Any) -> bool:
    return is_array_leaf(x) and tensor_type(x).dtype.kind in "fc"


def _described(x: Any) -> str:
    return str(tensor_type(x)) if is_array_leaf(x) else f"a {type(x).__name__}"


def _watch_leaf(tape: EagerTape | TracedTape, leaf: Any, is_all: bool) -> Any:
    if isinstance(leaf, Variable):
        tape.watch_variable(leaf)
        return leaf
    if type(leaf) is int and is_all:
        leaf = float(leaf)
    if not _is_float(leaf):
        return leaf
    return tape.watch(as_array(leaf), weak=is_weak(leaf))


def _source_value(
    tape: EagerTape | TracedTape, leaf: Any, is_all: bool, count: int
) -> Value | None:
    """Return the value of a source; None if it cannot be connected."""
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
    if not is_array_leaf(leaf) and not is_all:  # a text or function in a pytree
        return None
    value = tape.value_of(leaf)
    if value is None:
        which = "the source" if is_all or count == 1 else "a source"
        if isinstance(leaf, Staged):
            what = f"{which} is {leaf!r}, which this tape does not follow."
        else:
            what = (
                f"{which} is {_described(leaf)}, a plain {_kind_name(leaf)}: nothing was recorded."
            )
        raise NotDifferentiableError(
            explain(
                f"gradient: {what}",
                cure="write x = tape.watch(x) inside the with block, compute with that x, and "
                "ask for its gradient.",
            )
        )
    return value


def _kind_name(leaf: Any) -> str:
    return "array" if isinstance(leaf, np.ndarray) else "number"


def _cotangents_of(tree: trees.TreeDef, target: Any, output_gradients: Any) -> list[Any]:
    """Return the cotangents of the target's leaves; the order of dict keys does not matter."""
    try:
        cotangents = trees.flatten_up_to(tree, output_gradients)
    except ValueError:
        cotangents = [()]
    if not all(trees.flatten_deep(ct)[1].is_leaf() for ct in cotangents):
        raise StructureError(
            f"gradient: output_gradients is {trees.described(output_gradients)}, "
            f"the target is {trees.described(target)}"
        )
    return cotangents


def _target_seeds(
    tape: EagerTape | TracedTape, target: Any, output_gradients: Any
) -> Sequence[tuple[Value, Any]]:
    """Return the targets that the tape follows, each with its cotangent."""
    leaves, tree = trees.flatten_deep(target)
    cotangents: Sequence[Any] = [None] * len(leaves)
    if output_gradients is not None:
        cotangents = _cotangents_of(tree, target, output_gradients)
    seeds = []
    for leaf, ct in zip(leaves, cotangents, strict=True):
        value = tape.value_of(leaf.read() if isinstance(leaf, Variable) else leaf)
        if not is_array_leaf(leaf):
            raise TypeMismatchError(f"gradient: the target is {leaf!r:.60}, not an array")
        if value is not None:
            seeds.append((value, _cotangent(value, ct)))
    return seeds


def _cotangent(value: Value, ct: Any) -> Any:
    target_type = value.tensor
    if ct is None:
        if target_type.dtype.kind == "c":
            raise NotDifferentiableError(
                explain(
                    f"gradient: the target is {target_type}, not real.",
                    cure="take the real part, or the absolute value; or give output_gradients.",
                )
            )
        if not target_type.is_static:
            return None  # made at run time
        sizes = [dim for dim in target_type.dims if isinstance(dim, int)]
        return np.ones(sizes, target_type.dtype)[()]
    ct = as_array(ct)
    ct = cast(ct, target_type.dtype) if is_weak(ct) else ct
    ct_type = tensor_type(ct)
    if ct_type.dtype != target_type.dtype:
        raise TypeMismatchError(
            f"gradient: the output gradient is {ct_type}, the target {target_type}"
        )
    if not accepts(target_type, ct_type):
        raise ShapeError(f"gradient: the output gradient is {ct_type}, the target {target_type}")
    return ct


def _zero_filled(ct: Any, leaf: Any, unconnected: str) -> Any:
    if ct is not None or unconnected == "none" or not _is_float(leaf):
        return ct
    zeros = creating.zeros_like(leaf)
    return zeros[()] if isinstance(zeros, np.ndarray) else zeros
