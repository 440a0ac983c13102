"""Moving elements about: rolls, repeats, turns."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from wend.eager.dispatch import Staged, apply
from wend.eager.promotion import broadcast, cast, tensor_type
from wend.ir.dtypes import INT64
from wend.numpy import elementwise as ew
from wend.numpy import indexing, reducing, shaping
from wend.numpy.operands import along, is_traced_size, nonnegative, staged
from wend.numpy.public import implements
from wend.numpy.ranges import arange
from wend.numpy.ufuncs import own
from wend.ops import searching


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """`numpy.roll`, for traced arrays and shifts as well."""
    a = staged(a)
    if axis is None:
        rolled = _rolled(shaping.ravel(a), shift, 0)
        return shaping.reshape(rolled, shaping.shape(a))
    axes = normalize_axis_tuple(axis, shaping.rank_of(a), allow_duplicate=True)
    shifts = shift if isinstance(shift, (tuple, list)) else [shift] * len(axes)
    axes = axes * len(shifts) if len(axes) == 1 else axes
    for by, k in zip(shifts, axes, strict=True):
        a = _rolled(a, by, k)
    return a


def _rolled(a: Any, by: Any, axis: int) -> Any:
    size = shaping.shape(a)[axis]
    if isinstance(size, int) and size == 0:
        return own(a, [a])
    if isinstance(by, Staged) or isinstance(size, Staged):
        return indexing.take(a, ew.remainder(arange(size) - by, size), axis=axis)
    by = operator.index(by) % size
    if by == 0:
        return own(a, [a])
    parts = [along(a, axis, slice(size - by, None)), along(a, axis, slice(None, size - by))]
    return shaping.concatenate(parts, axis=axis)


@implements(np.repeat)
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """`numpy.repeat`, for traced arrays and counts as well.

    Of traced counts the length is only known when the function runs.
    """
    a = staged(a)
    if axis is None:
        a, axis = shaping.ravel(a), 0
    axis = normalize_axis_index(axis, shaping.rank_of(a))
    size = shaping.shape(a)[axis]
    if isinstance(repeats, Staged) or isinstance(size, Staged):
        counts = staged(repeats)
        is_one = not shaping.rank_of(counts)
        message = "repeats may not contain negative values."
        counts = nonnegative(counts, "negative dimensions are not allowed" if is_one else message)
        return indexing.take(a, _repeated(size, counts), axis=axis)
    index = np.repeat(np.arange(size), np.broadcast_to(repeats, (size,)))
    return indexing.take(a, index, axis=axis)


def _repeated(size: Any, repeats: Any) -> Any:
    """The position that each of the repeated elements comes from."""
    if not shaping.rank_of(repeats):
        total = size * cast(repeats, INT64)
        return ew.floor_divide(arange(total), ew.maximum(repeats, 1))
    counts, _ = broadcast(cast(repeats, INT64), arange(size))
    ends = reducing.cumsum(staged(counts))
    total = reducing.sum(counts)
    return apply(searching.searchsorted, ends, arange(total), side="right")


@implements(np.tile)
def tile(A: Any, reps: Any) -> Any:  # noqa: N803
    """`numpy.tile`, for traced arrays and counts as well."""
    x = staged(A)
    counts = tuple(reps) if isinstance(reps, (tuple, list, np.ndarray)) else (reps,)
    counts = tuple(map(shaping.nonnegative_size, counts))
    rank = max(shaping.rank_of(x), len(counts))
    counts = (1,) * (rank - len(counts)) + counts
    sizes = (1,) * (rank - shaping.rank_of(x)) + shaping.shape(x)
    spread = shaping.reshape(x, tuple(n for size in sizes for n in (1, size)))
    pairs = list(zip(counts, sizes, strict=True))
    wide = shaping.broadcast_to(spread, tuple(n for pair in pairs for n in pair))
    return shaping.reshape(wide, tuple(count * size for count, size in pairs)).copy()


@implements(np.fliplr)
def fliplr(m: Any) -> Any:
    """`numpy.fliplr`, for traced arrays as well."""
    if shaping.rank_of(m) < 2:
        raise ValueError("Input must be >= 2-d.")
    return shaping.flip(m, 1)


@implements(np.flipud)
def flipud(m: Any) -> Any:
    """`numpy.flipud`, for traced arrays as well."""
    if shaping.rank_of(m) < 1:
        raise ValueError("Input must be >= 1-d.")
    return shaping.flip(m, 0)


@implements(np.rot90)
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """`numpy.rot90`, for traced arrays as well."""
    if len(tuple(axes)) != 2:
        raise ValueError("len(axes) must be 2.")
    first, second = normalize_axis_tuple(axes, shaping.rank_of(m))
    match k % 4:
        case 0:
            return m
        case 1:
            return shaping.swapaxes(shaping.flip(m, second), first, second)
        case 2:
            return shaping.flip(shaping.flip(m, first), second)
    return shaping.flip(shaping.swapaxes(m, first, second), second)


@implements(np.rollaxis)
def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """`numpy.rollaxis`, for traced arrays as well."""
    rank = shaping.rank_of(a)
    axis = normalize_axis_index(axis, rank)
    start = start + rank if start < 0 else start
    return shaping.moveaxis(a, axis, start - 1 if axis < start else start)


@implements(np.resize)
def resize(a: Any, new_shape: Any) -> Any:
    """`numpy.resize` to a known shape, for traced arrays as well."""
    if is_traced_size(new_shape):
        raise NotImplementedError("resize takes sizes that are known before the run")
    shape = tuple(new_shape) if isinstance(new_shape, (tuple, list)) else (int(new_shape),)
    flat = shaping.ravel(staged(a))
    size, total = shaping.size(flat), math.prod(shape)
    if tensor_type(flat).dims[0] == 0:
        return np.zeros(shape, tensor_type(flat).dtype)
    return shaping.reshape(indexing.take(flat, ew.remainder(np.arange(total), size)), shape)
