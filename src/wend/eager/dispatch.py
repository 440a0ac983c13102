"""Dispatch: plain arrays run an operation's NumPy kernel, staged ones record it.

This package knows staged arrays only by the two abstract classes here.
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
from wend.runtime.array_boundary import foreign_boundary


class Staged:
    """An array of which only the type is known: it stands for a value of a graph.

    Abstract, but no `ABC`: every operation makes some twenty `isinstance` checks against it, and
    those of an `ABC` take ten times as long.
    """

    __slots__ = ()

    type: TensorType
    weak: bool  # a Python scalar: it adapts to the dtype of the other operand (D4)
    # Whether it is a 0-d array, which NumPy's scalars are not; None: in some runs only (D47)
    zero_dim: bool | None = False
    # Whether NumPy's array can be written to; None: in some runs only
    writeable: bool | None = True

    def leaked(self) -> Exception:
        """Return the error for a use outside the trace that made this."""
        raise NotImplementedError

    def read(self) -> Any:
        """Return its current value: itself, or an array where nothing is being recorded."""
        return self

    def view_as(self, result: Any) -> Any:
        """Return its elements in another shape as NumPy does: as a view, or a number of one."""
        return result

    def read_only_view_as(self, result: Any) -> Any:
        """Return its elements, some of them or several times each, as a read-only view."""
        return result

    def check_writeable(self, role: str = "assignment destination") -> None:
        """Raise NumPy's ValueError if it is read-only; its text names the role of the array."""

    def ravel_as(self, result: Any) -> Any:
        """Return its flattened elements as NumPy's `ravel` does: as a view, or a copy."""
        return result

    def contiguous_as(self, order: str | None) -> Any:
        """Return this array, or a copy if its elements are not laid out in this order.

        `order`: "C" or "F"; any other accepts all layouts.
        """
        del order
        return self


class Recorder(ABC):
    """Adds operations to the graph that is being recorded.

    Attributes:
        role: the recording in messages: "the body of while_loop at f.py:3".
        refusals: what has been refused in the trace that it is part of; None outside of traces.
    """

    role: str
    refusals: list[BaseException] | None

    @abstractmethod
    def emit(self, op: Op, operands: Sequence[Any], attrs: dict[str, Any]) -> tuple[Any, ...]:
        """Record an operation on staged or plain arrays; return its results."""

    @abstractmethod
    def may_raise(self, what: str, errors: Iterable[type[BaseException]]) -> None:
        """Note that an operation may raise these in the run; refuse where a handler is active."""

    @abstractmethod
    def capture(self, array: Any) -> Any:
        """Return an array that is not NumPy's (D33) as an operand of what is recorded."""

    def known_elements(self, staged: Any, *, of_outside: bool = False) -> np.ndarray | None:
        """Return the elements of a staged array if no argument decides them, else None.

        `of_outside`: only if they are computed from an array of outside.
        """
        return None

    @abstractmethod
    def size_of(self, number: Any) -> Dim:
        """Return the dimension of an integer, staged or plain; equal integers share one."""

    @abstractmethod
    def size_between(self, start: Any, stop: Any, size: Any) -> Dim:
        """Return the length of a slice of an axis of a size, whose bounds are staged or plain."""

    @abstractmethod
    def size_of_spread(self, sizes: Iterable[Dim]) -> Dim:
        """Return the size that axes of different sizes broadcast to, none known to be 1."""

    @abstractmethod
    def sizes_of_reshape(self, shape: Shape | None, target: Sequence[Any]) -> Shape:
        """Return the sizes after a reshape; −1 stands for the remaining size."""


recorder: ContextVar[Recorder | None] = ContextVar("wend_recorder", default=None)


def is_staged(x: object) -> bool:
    """Return whether this stands for a value of a graph."""
    return isinstance(x, Staged)


def any_staged(things: Iterable[object]) -> bool:
    """Return whether a staged array is among these, also inside lists and tuples."""
    for thing in things:
        if isinstance(thing, Staged):
            return True
        if isinstance(thing, (list, tuple)) and any_staged(thing):
            return True
    return False


def read_all(things: Sequence[Any]) -> list[Any]:
    """Return the items with each staged array read, also inside lists and tuples."""
    return [read(thing) for thing in things]


def read(thing: Any) -> Any:
    """Return a staged array's current value, also inside containers; others unchanged."""
    if isinstance(thing, Staged):
        return thing.read()
    if type(thing) not in (list, tuple) or not any_staged(thing):
        return thing
    values = read_all(thing)
    is_same = all(new is old for new, old in zip(values, thing, strict=True))
    return thing if is_same else type(thing)(values)


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
    """Return the type of a plain or staged array."""
    if isinstance(x, Staged):
        return x.type
    if type(x) is int:
        return TensorType(INT64, ())  # of any magnitude: it adapts to the other operand's dtype
    boundary = foreign_boundary(x)
    if boundary is not None:
        return boundary.type_of(x)
    array = np.asarray(x)
    return TensorType(array.dtype, array.shape)
