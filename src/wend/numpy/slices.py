"""Slices in index keys. Slices with staged bounds become `narrow` operations."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from wend.base.errors import ConcreteValueError, explain
from wend.base.source import at, user_source
from wend.eager.checking import checked
from wend.eager.dispatch import Staged, any_staged, recorder
from wend.eager.promotion import cast
from wend.ir.dtypes import INT64
from wend.ir.types import Dim
from wend.numpy import elementwise as ew
from wend.ops.shapes import known_position

FULL_SLICE = slice(None)


def has_staged_bounds(entry: Any) -> bool:
    """Return whether the entry is a slice with a staged bound.

    Raises:
        ConcreteValueError: its step is staged.
    """
    if not isinstance(entry, slice):
        return False
    if isinstance(entry.step, Staged):
        raise ConcreteValueError(
            explain(
                f"the step of a slice{at(user_source())} is known only at run time.",
                cure="take the elements by position, x[np.arange(start, stop, step)]; or make the "
                "step static: static_argnames.",
            )
        )
    return any_staged([entry.start, entry.stop])


def checked_position(entry: int, axis: int, size: Dim) -> int:
    """Return an integer in a key as a position from the start, where the size is known.

    Raises:
        IndexError: it is out of range.
    """
    if not isinstance(size, int):
        return entry
    position = known_position(entry, size)
    if position is None:
        raise IndexError(f"index {entry} is out of bounds for axis {axis} with size {size}")
    return position


def is_full_slice(entry: Any) -> bool:
    """Return whether the entry is the slice `:`."""
    return isinstance(entry, slice) and entry.start is entry.stop is entry.step is None


def static_bounds(entry: slice) -> tuple[int | None, int | None, int | None]:
    """Return the bounds of a slice without staged bounds."""
    entry.indices(0)  # Python's errors
    bounds = (entry.start, entry.stop, entry.step)
    start, stop, step = (None if b is None else operator.index(b) for b in bounds)
    return start, stop, step


def narrow_bounds(entry: slice, size: Any) -> tuple[Any, Any, Dim]:
    """Return the start, stop and static size of the range that a slice with staged bounds covers.

    The step is not applied. Of a slice with a negative step, it is the range that the step then
    traverses backwards.
    """
    for bound in (entry.start, entry.stop):
        if isinstance(bound, Staged) and (
            bound.type.shape != () or bound.type.dtype.kind not in "iu"
        ):
            raise TypeError(f"slice indices must be integers or None, not {bound!r}")
    _, _, step = slice(None, None, entry.step).indices(0)  # Python's errors
    if step > 0:
        start = 0 if entry.start is None else entry.start
        stop = size if entry.stop is None else entry.stop
    else:
        # The range in ascending order; the step then traverses it backwards.
        start = 0 if entry.stop is None else _backward_bound(entry.stop, size) + 1
        stop = size if entry.start is None else _backward_bound(entry.start, size) + 1
    start, stop = (_as_int64(bound) for bound in (start, stop))
    current = recorder.get()
    assert current is not None
    return start, stop, current.size_between(start, stop, size)


_LARGEST = np.uint64(np.iinfo(np.int64).max)


def _as_int64(number: Any) -> Any:
    if not isinstance(number, Staged):
        return np.int64(number)
    if number.type.dtype == np.uint64:  # whose largest numbers are as good as any end
        number = ew.minimum(number, _LARGEST)
    return cast(number, INT64)


def as_position(index: Any, *, of_list: bool = False) -> Any:
    """Return an index as 64 bits with a sign.

    A number that does not fit raises OverflowError; IndexError, if it is that of a list or tuple.
    """
    if not isinstance(index, Staged):
        return np.int64(index)
    if index.type.dtype == np.uint64 and index.type.shape == ():  # NumPy wraps those of arrays
        error: type[Exception] = OverflowError
        text = "Python int too large to convert to C long"
        if of_list:
            error, text = IndexError, "cannot fit 'numpy.uint64' into an index-sized integer"
        index = checked(index, (ew.greater(index, _LARGEST), error, text))
    return cast(index, INT64)


def as_wide(number: Any) -> Any:
    """Return a whole number of NumPy in 64 bits, whose negative does not wrap; others unchanged."""
    if isinstance(number, Staged):
        return as_position(number) if number.type.dtype.kind in "iu" else number
    return int(number) if isinstance(number, np.integer) else number


def _backward_bound(bound: Any, size: Any) -> Any:
    """Return the position of a bound of a backward slice, with −1 before the first element."""
    bound = _as_int64(bound)
    return ew.clip(ew.where(bound < 0, bound + size, bound), -1, size - 1)
