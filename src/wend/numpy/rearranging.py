"""Functions that rearrange elements: roll, repeat, tile, flip, rotate."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from wend.base.errors import UnsupportedError, explain
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged, apply
from wend.eager.promotion import broadcast, cast, tensor_type
from wend.ir.dtypes import FLOAT64, INT64
from wend.numpy import elementwise as ew
from wend.numpy import indexing, reducing, shaping
from wend.numpy.operands import (
    as_axis,
    check_nonnegative,
    is_traced_size,
    require,
    slice_axis,
    staged,
)
from wend.numpy.public import implements
from wend.numpy.ranges import arange
from wend.numpy.ufuncs import copy_if_operand
from wend.ops import searching


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Roll array elements along a given axis; see `numpy.roll`."""
    a = staged(a)
    if axis is None:
        return shaping.reshape(roll(shaping.ravel(a), shift, 0), shaping.shape(a))
    axes = normalize_axis_tuple(axis, shaping.rank_of(a), allow_duplicate=True)
    shifts = [shift] if shaping.is_single_number(shift) else [*shift]
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    axes = axes * len(shifts) if len(axes) == 1 else axes
    for axis_shift, k in zip(shifts, axes, strict=True):
        a = _roll_axis(a, axis_shift, k)
    return a


def _roll_axis(a: Any, shift: Any, axis: int) -> Any:
    size = shaping.shape(a)[axis]
    if isinstance(size, int) and size == 0:
        return copy_if_operand(a, [a])
    if isinstance(shift, Staged) or isinstance(size, Staged):
        dtype = tensor_type(shift).dtype
        if dtype == np.uint64:
            shift = cast(ew.remainder(shift, cast(size, dtype)), INT64)
        elif dtype.kind in "iu":  # before it is subtracted: −2**63 would wrap
            shift = ew.remainder(cast(shift, INT64), size)
        return indexing.take(a, ew.remainder(arange(size) - shift, size), axis=axis)
    shift = operator.index(shift) % size
    if shift == 0:
        return copy_if_operand(a, [a])
    parts = [
        slice_axis(a, axis, slice(size - shift, None)),
        slice_axis(a, axis, slice(None, size - shift)),
    ]
    return shaping.concatenate(parts, axis=axis)


@implements(np.repeat)
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """Repeat each element of an array after itself; see `numpy.repeat`.

    With traced counts, the length of the result is known at run time only.
    """
    a = staged(a)
    if axis is None or (axis in (0, -1) and not shaping.rank_of(a)):
        a, axis = shaping.ravel(a), 0
    axis = normalize_axis_index(as_axis(axis), shaping.rank_of(a))
    size = shaping.shape(a)[axis]
    if isinstance(repeats, Staged) or isinstance(size, Staged):
        if not isinstance(repeats, Staged) and np.ndim(repeats) == 0 and 0 < repeats < _MAX_REPEATS:
            positions = ew.floor_divide(arange(size * int(repeats)), int(repeats))
            return indexing.take(a, positions, axis=axis)
        counts = staged(repeats)
        is_scalar = not shaping.rank_of(counts)
        if not is_scalar and not isinstance(repeats, (list, tuple)):
            shaping.check_cast(tensor_type(counts).dtype, INT64, "safe")
        message = "repeats may not contain negative values."
        counts = check_nonnegative(
            counts, "negative dimensions are not allowed" if is_scalar else message
        )
        return indexing.take(a, _repeat_positions(size, counts), axis=axis)
    positions = np.repeat(np.arange(size), np.broadcast_to(repeats, (size,)))
    return indexing.take(a, positions, axis=axis)


# More elements than any memory holds; their number is computed without wrapping
_MAX_ELEMENTS = 2**62
# By so many repetitions no size that memory holds becomes too big
_MAX_REPEATS = 2**15
_TOO_BIG = "the repeated array is too big"


def _repeat_positions(size: Any, repeats: Any) -> Any:
    """Return the source position of each element of the result."""
    if not shaping.rank_of(repeats):
        count = cast(repeats, INT64)
        is_too_big = ew.greater(count, _MAX_ELEMENTS // ew.maximum(size, 1))
        total = require(size * count, is_too_big, MemoryError, _TOO_BIG)
        return ew.floor_divide(arange(total), ew.maximum(count, 1))
    counts = _check_count_of(cast(repeats, INT64), size)
    counts, _ = broadcast(counts, arange(size))
    ends = reducing.cumsum(staged(counts))
    is_too_big = ew.greater(reducing.sum(cast(counts, FLOAT64)), float(_MAX_ELEMENTS))
    total = require(reducing.sum(counts), is_too_big, MemoryError, _TOO_BIG)
    return apply(searching.searchsorted, ends, arange(total), side="right")


def _check_count_of(repeats: Any, size: Any) -> Any:
    """Return a row of counts; at run time it must have one, or one per element that is repeated."""
    count = shaping.shape(repeats)[0]
    if isinstance(count, int) and (count == 1 or isinstance(size, int)):
        if count not in (1, size):
            text = f"operands could not be broadcast together with shape ({size},) ({count},)"
            raise ValueError(text)
        return repeats
    fits = ew.logical_or(ew.equal(count, size), ew.equal(count, 1))
    message = "operands could not be broadcast together: repeats has another size than the axis"
    return repeats + check_nonnegative(ew.where(fits, 0, -1), message)


@implements(np.tile)
def tile(A: Any, reps: Any) -> Any:  # noqa: N803
    """Construct an array by repeating A the number of times given by reps; see `numpy.tile`."""
    x = staged(A)
    counts = tuple(reps) if isinstance(reps, (tuple, list, np.ndarray)) else (reps,)
    counts = tuple(map(shaping.check_size, counts))
    rank = max(shaping.rank_of(x), len(counts))
    counts = (1,) * (rank - len(counts)) + counts
    sizes = (1,) * (rank - shaping.rank_of(x)) + shaping.shape(x)
    interleaved = shaping.reshape(x, tuple(n for size in sizes for n in (1, size)))
    pairs = list(zip(counts, sizes, strict=True))
    tiled = shaping.broadcast_to(interleaved, tuple(n for pair in pairs for n in pair))
    return shaping.reshape(tiled, tuple(count * size for count, size in pairs)).copy()


@implements(np.fliplr)
def fliplr(m: Any) -> Any:
    """Reverse the order of elements along axis 1 (left/right); see `numpy.fliplr`."""
    if shaping.rank_of(m) < 2:
        raise ValueError("Input must be >= 2-d.")
    return shaping.flip(m, 1)


@implements(np.flipud)
def flipud(m: Any) -> Any:
    """Reverse the order of elements along axis 0 (up/down); see `numpy.flipud`."""
    if shaping.rank_of(m) < 1:
        raise ValueError("Input must be >= 1-d.")
    return shaping.flip(m, 0)


@implements(np.rot90)
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """Rotate an array by 90 degrees in the plane of two axes; see `numpy.rot90`."""
    if len(tuple(axes)) != 2:
        raise ValueError("len(axes) must be 2.")
    first, second = normalize_axis_tuple(axes, shaping.rank_of(m))
    match k % 4:
        case 0:
            return m[...]
        case 1:
            return shaping.swapaxes(shaping.flip(m, second), first, second)
        case 2:
            return shaping.flip(shaping.flip(m, first), second)
    return shaping.flip(shaping.swapaxes(m, first, second), second)


@implements(np.rollaxis)
def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """Roll an axis backwards until it lies in a given position; see `numpy.rollaxis`."""
    rank = shaping.rank_of(a)
    axis = normalize_axis_index(axis, rank)
    position = operator.index(start) + (rank if start < 0 else 0)
    if not 0 <= position <= rank:
        raise np.exceptions.AxisError(
            f"'start' arg requires {-rank} <= start < {rank + 1}, but {start} was passed in"
        )
    return shaping.moveaxis(a, axis, position - 1 if axis < position else position)


@implements(np.resize)
def resize(a: Any, new_shape: Any) -> Any:
    """Return a new array with the specified shape, which must be static; see `numpy.resize`."""
    if is_traced_size(new_shape):
        raise UnsupportedError(
            explain(
                f"np.resize{at(user_source())} takes sizes that are known before the run.",
                cure="take elements: np.take(x, np.arange(n) % x.size).",
            )
        )
    shape = tuple(new_shape) if isinstance(new_shape, (tuple, list)) else (int(new_shape),)
    if min(shape, default=0) < 0:
        raise ValueError("all elements of `new_shape` must be non-negative")
    flat = shaping.ravel(staged(a))
    size, total = shaping.size(flat), math.prod(shape)
    if tensor_type(flat).dims[0] == 0:
        return np.zeros(shape, tensor_type(flat).dtype)
    return shaping.reshape(indexing.take(flat, ew.remainder(np.arange(total), size)), shape)
