"""Sends an operation where it belongs: plain arrays run its NumPy kernel, staged ones record it.

This room knows staged arrays only by the two abstract classes here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from wend.ir.dtypes import INT64
from wend.ir.op import Op
from wend.ir.types import Dim, Shape, TensorType, Type


class Staged:
    """An array of which only the type is known: it stands for a value of a graph.

    Abstract, but no `ABC`: every operation asks some twenty times whether something is one, and
    of an `ABC` that takes ten times as long.
    """

    __slots__ = ()

    type: TensorType
    weak: bool  # a Python scalar: it takes the dtype of what it meets (D4)

    def leaked(self) -> Exception:
        """The error for a use outside the trace that made this."""
        raise NotImplementedError

    def read(self) -> Any:
        """What stands for this here and now: itself, or an array where nothing records it."""
        return self


class Recorder(ABC):
    """What adds operations to the graph that is being recorded.

    `role` is what is recorded, for messages: "the body of while_loop at f.py:3".
    """

    role: str

    @abstractmethod
    def emit(self, op: Op, operands: Sequence[Any], attrs: dict[str, Any]) -> tuple[Any, ...]:
        """Record an operation on staged or plain arrays; return its results."""

    @abstractmethod
    def size_of(self, number: Any) -> Dim:
        """The size that an integer is, staged or plain: of equal ones the same."""

    @abstractmethod
    def size_between(self, start: Any, stop: Any, size: Any) -> Dim:
        """How much of an axis of a size a slice leaves, whose bounds are staged or plain."""

    @abstractmethod
    def size_of_spread(self, sizes: Iterable[Dim]) -> Dim:
        """The size over which axes of different ones are spread, none known to be 1."""

    @abstractmethod
    def sizes_of_reshape(self, shape: Shape | None, wanted: Sequence[Any]) -> Shape:
        """The sizes of what has a shape, brought to another; −1 stands for what is left."""


recorder: ContextVar[Recorder | None] = ContextVar("wend_recorder", default=None)


def is_staged(x: object) -> bool:
    """Whether this stands for a value of a graph."""
    return isinstance(x, Staged)


def any_staged(things: Iterable[object]) -> bool:
    """Whether a staged array is among these, also inside lists and tuples."""
    for thing in things:
        if isinstance(thing, Staged):
            return True
        if isinstance(thing, (list, tuple)) and any_staged(thing):
            return True
    return False


def read_all(things: Sequence[Any]) -> list[Any]:
    """The things with each staged array as it reads now, also inside lists and tuples."""
    return [read(thing) for thing in things]


def read(thing: Any) -> Any:
    """A staged array as it reads now, also inside lists and tuples; anything else as it is."""
    if isinstance(thing, Staged):
        return thing.read()
    if type(thing) not in (list, tuple) or not any_staged(thing):
        return thing
    found = read_all(thing)
    is_same = all(new is old for new, old in zip(found, thing, strict=True))
    return thing if is_same else type(thing)(found)


def apply_all(op: Op, *operands: Any, **attrs: Any) -> tuple[Any, ...]:
    """Apply an operation; return all its results."""
    if not any(isinstance(operand, Staged) for operand in operands):
        return _run_kernel(op, operands, attrs)
    current = recorder.get()
    if current is not None:
        return current.emit(op, operands, attrs)
    operands = tuple(read_all(operands))
    for operand in operands:
        if isinstance(operand, Staged):
            raise operand.leaked()
    return _run_kernel(op, operands, attrs)


def _run_kernel(op: Op, operands: Sequence[Any], attrs: dict[str, Any]) -> tuple[Any, ...]:
    assert op.kernel is not None
    results = op.kernel(*operands, **attrs)
    return results if isinstance(results, tuple) else (results,)


def apply(op: Op, *operands: Any, **attrs: Any) -> Any:
    """Apply an operation with one result.

    Args:
        op: the operation.
        *operands: NumPy arrays or staged ones, of the types that the operation takes.
        **attrs: its attributes.
    """
    return apply_all(op, *operands, **attrs)[0]


def type_of(x: Any) -> Type:
    """The type of a plain or staged array."""
    if isinstance(x, Staged):
        return x.type
    if type(x) is int:
        return TensorType(INT64, ())  # however great: it takes the dtype of what it meets
    array = np.asarray(x)
    return TensorType(array.dtype, array.shape)
