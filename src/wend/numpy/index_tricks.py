"""`np.r_`, `np.c_`, `np.mgrid`, `np.ogrid` and `np.ix_` with traced parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base.errors import UnsupportedError, explain
from wend.base.source import at, user_source
from wend.eager.promotion import is_weak, result_dtype
from wend.numpy import creating, elementwise, indexing, ranges, shaping
from wend.numpy.operands import operand, require, staged
from wend.numpy.public import implements

# The classes of `np.r_` and `np.c_`, and of `np.mgrid` and `np.ogrid`
_CONCATENATOR, _GRID = (type(x).__mro__[1] for x in (np.r_, np.mgrid))
INDEX_TRICKS: tuple[Any, ...] = (_CONCATENATOR, _GRID)


def indexed(trick: Any, key: Any) -> Any:
    """Return `trick[key]` of one of the `INDEX_TRICKS`."""
    return _concatenated(trick, key) if isinstance(trick, _CONCATENATOR) else _grid(trick, key)


def _grid(grid: Any, key: Any) -> Any:
    """Return `np.mgrid[key]` or `np.ogrid[key]`; see `numpy.mgrid`."""
    if not isinstance(key, tuple):
        return _positions(key, result_dtype(*_bounds(key)) if _is_count(key.step) else None)
    dtype = result_dtype(0, *(bound for part in key for bound in _bounds(part)))
    vectors = [_positions(part, dtype) for part in key]
    open_grid = [
        shaping.reshape(x, (1,) * k + (-1,) + (1,) * (len(key) - 1 - k))
        for k, x in enumerate(vectors)
    ]
    if grid.sparse:
        return tuple(open_grid)
    whole = shaping.astype(shaping.stack(shaping.broadcast_arrays(*open_grid)), dtype)
    for part in key:
        start, stop, step = _bounds(part)
        if not _is_count(part.step):  # an open grid is empty there, and so is that of one slice
            is_negative = elementwise.true_divide(stop - start, step) <= -1
            whole = require(whole, is_negative, ValueError, "negative dimensions are not allowed")
    return whole


def _is_count(step: Any) -> bool:
    """Return whether the step of a slice is a number of positions."""
    return isinstance(step, complex | np.complexfloating)


def _bounds(part: slice) -> tuple[Any, Any, Any]:
    """Return the start, the stop, and the step or count of a slice."""
    start = 0 if part.start is None else part.start
    step = 1 if part.step is None else part.step
    return start, part.stop, abs(step) if _is_count(step) else step


def _positions(part: slice, dtype: Any) -> Any:
    """Return the positions along one axis; NumPy counts them in `dtype`."""
    start, stop, step = _bounds(part)
    if _is_count(part.step):
        count = int(step)
        step = (stop - start) / float(count - 1) if count != 1 else count
    else:
        whole = ranges.arange(start, stop, step)
        if dtype is None:
            return whole
        if whole.dtype.kind in "iu":
            return shaping.astype(whole, dtype)
        count = shaping.shape(whole)[0]
    return elementwise.add(elementwise.multiply(ranges.arange(0, count, dtype=dtype), step), start)


def _concatenated(concatenator: Any, key: Any) -> Any:
    """Return `np.r_[key]` or `np.c_[key]`; see `numpy.r_`.

    Raises:
        UnsupportedError: it asks for a matrix.
    """
    axis, ndmin, position = concatenator.axis, concatenator.ndmin, concatenator.trans1d
    items = key if isinstance(key, tuple) else (key,)
    if items and isinstance(items[0], str):
        axis, ndmin, position = _directive(items[0], axis, ndmin, position)
        items = items[1:]
    parts = [_range(item) if isinstance(item, slice) else item for item in items]
    # Python's numbers have the dtype of the arrays
    dtype = result_dtype(*(x if is_weak(x) else creating.asarray(x) for x in parts))
    arrays = [creating.asarray(x, dtype) for x in parts]
    return shaping.concatenate([_part(array, ndmin, position) for array in arrays], axis)


def _directive(text: str, axis: int, ndmin: int, position: int) -> tuple[int, int, int]:
    """Return the axis, the least rank, and where the axis of a vector goes."""
    numbers = text.split(",")
    if not all(number.strip().lstrip("-").isdigit() for number in numbers):
        problem = f"np.r_[{text!r}, …]{at(user_source())} makes a matrix."
        raise UnsupportedError(explain(problem, cure="use np.concatenate or np.stack."))
    first, second, third = [*map(int, numbers), *[axis, ndmin, position][len(numbers) :]]
    return first, second, third


def _part(array: Any, ndmin: int, position: int) -> Any:
    rank = shaping.rank_of(array)
    missing = ndmin - rank
    if missing <= 0:
        return array if rank else shaping.reshape(array, 1)
    array = shaping.reshape(array, (1,) * missing + shaping.shape(array))
    if position == -1 or not rank:
        return array
    start = position + missing + 1 if position < 0 else position
    axes = [*range(ndmin)]
    return shaping.transpose(array, axes[:start] + axes[missing:] + axes[start:missing])


def _range(part: slice) -> Any:
    start, stop, step = _bounds(part)
    if _is_count(part.step):
        return ranges.linspace(start, stop, int(step))
    return ranges.arange(start, stop, step)


@implements(np.ix_)
def ix_(*args: Any) -> tuple[Any, ...]:
    """Construct an open mesh from positions or masks along each axis; see `numpy.ix_`."""
    return tuple([_along_axis(x, k, len(args)) for k, x in enumerate(args)])


def _along_axis(x: Any, axis: int, rank: int) -> Any:
    """Return positions along one axis of an open mesh."""
    positions = staged(operand(x))
    if shaping.rank_of(positions) != 1:
        raise ValueError("Cross index must be 1 dimensional")
    if positions.dtype == np.bool:
        (positions,) = indexing.nonzero(positions)
    if isinstance(x, (list, tuple)) and not x:
        positions = shaping.astype(positions, np.intp)
    return shaping.reshape(positions, (1,) * axis + (-1,) + (1,) * (rank - axis - 1))
