"""Joining arrays and taking them apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.eager.dispatch import any_staged
from wend.numpy import shaping
from wend.numpy.operands import all_staged, known_size, staged
from wend.numpy.public import STAGED, implements


def _one_or_all(found: list[Any]) -> Any:
    return found[0] if len(found) == 1 else tuple(found)


@implements(np.atleast_1d)
def atleast_1d(*arys: Any) -> Any:
    """`numpy.atleast_1d`, for traced arrays as well."""
    return _one_or_all(
        [x if shaping.rank_of(x) else shaping.reshape(x, (1,)) for x in all_staged(arys)]
    )


def _matrix(x: Any) -> Any:
    match shaping.rank_of(x):
        case 0:
            return shaping.reshape(x, (1, 1))
        case 1:
            return shaping.expand_dims(x, 0)
    return x


@implements(np.atleast_2d)
def atleast_2d(*arys: Any) -> Any:
    """`numpy.atleast_2d`, for traced arrays as well."""
    return _one_or_all([_matrix(x) for x in all_staged(arys)])


def _cube(x: Any) -> Any:
    x = _matrix(x)
    return shaping.expand_dims(x, -1) if shaping.rank_of(x) == 2 else x


@implements(np.atleast_3d)
def atleast_3d(*arys: Any) -> Any:
    """`numpy.atleast_3d`, for traced arrays as well."""
    return _one_or_all([_cube(x) for x in all_staged(arys)])


def _rows(tup: Any, prepare: Callable[..., Any]) -> list[Any]:
    return [prepare(x) for x in all_staged(tuple(tup))]


@implements(np.hstack)
def hstack(tup: Any, *, dtype: Any = None) -> Any:
    """`numpy.hstack`, for traced arrays as well."""
    rows = _rows(tup, atleast_1d)
    axis = 0 if shaping.rank_of(rows[0]) == 1 else 1
    return _joined(rows, axis, dtype)


@implements(np.vstack)
def vstack(tup: Any, *, dtype: Any = None) -> Any:
    """`numpy.vstack`, for traced arrays as well."""
    return _joined(_rows(tup, _matrix), 0, dtype)


@implements(np.dstack)
def dstack(tup: Any) -> Any:
    """`numpy.dstack`, for traced arrays as well."""
    return shaping.concatenate(_rows(tup, _cube), axis=2)


@implements(np.column_stack)
def column_stack(tup: Any) -> Any:
    """`numpy.column_stack`, for traced arrays as well."""
    columns = _rows(
        tup, lambda x: shaping.expand_dims(atleast_1d(x), 1) if shaping.rank_of(x) < 2 else x
    )
    return shaping.concatenate(columns, axis=1)


def _joined(rows: Sequence[Any], axis: int, dtype: Any) -> Any:
    found = shaping.concatenate(rows, axis=axis)
    return found if dtype is None else shaping.astype(found, dtype)


@implements(np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """`numpy.append`, for traced arrays as well."""
    return shaping.concatenate(all_staged((arr, values)), axis=axis)


@implements(np.block)
def block(arrays: Any) -> Any:
    """`numpy.block`, for traced arrays as well."""
    depth = _depth(arrays)
    rank = max(depth, *_ranks(arrays))
    return _blocks(arrays, depth, rank)


def _depth(arrays: Any) -> int:
    return 1 + _depth(arrays[0]) if isinstance(arrays, list) else 0


def _ranks(arrays: Any) -> list[int]:
    if not isinstance(arrays, list):
        return [shaping.rank_of(arrays)]
    return [rank for item in arrays for rank in _ranks(item)]


def _blocks(arrays: Any, depth: int, rank: int) -> Any:
    if not isinstance(arrays, list):
        x = staged(arrays)
        return shaping.reshape(x, (1,) * (rank - shaping.rank_of(x)) + shaping.shape(x))
    return shaping.concatenate([_blocks(x, depth - 1, rank) for x in arrays], axis=-depth)


# Apart
@implements(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """`numpy.array_split`, for traced arrays as well; where to split are numbers."""
    ary = staged(ary)
    if not isinstance(indices_or_sections, (int, np.integer)):
        return shaping.split(ary, indices_or_sections, axis)
    size, count = known_size(ary, axis, "array_split"), int(indices_or_sections)
    if count <= 0:
        raise ValueError("number sections must be larger than 0.")
    least, more = divmod(size, count)
    sizes = [least + 1] * more + [least] * (count - more)
    return shaping.split(ary, np.cumsum(sizes)[:-1], axis)


@implements(np.hsplit)
def hsplit(ary: Any, indices_or_sections: Any) -> Any:
    """`numpy.hsplit`, for traced arrays as well."""
    return shaping.split(ary, indices_or_sections, 1 if shaping.rank_of(ary) > 1 else 0)


@implements(np.vsplit)
def vsplit(ary: Any, indices_or_sections: Any) -> Any:
    """`numpy.vsplit`, for traced arrays as well."""
    if shaping.rank_of(ary) < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return shaping.split(ary, indices_or_sections, 0)


@implements(np.dsplit)
def dsplit(ary: Any, indices_or_sections: Any) -> Any:
    """`numpy.dsplit`, for traced arrays as well."""
    if shaping.rank_of(ary) < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return shaping.split(ary, indices_or_sections, 2)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """`numpy.unstack`: the arrays along an axis, whose size must be known."""
    if not any_staged([x]):
        return tuple(np.moveaxis(np.asarray(x), axis, 0))
    rank = shaping.rank_of(x)
    if not rank:
        raise ValueError("Input array must be at least 1-d.")
    moved = shaping.moveaxis(x, axis, 0)
    return tuple(moved[k] for k in range(known_size(moved, 0, "unstack")))


if hasattr(np, "unstack"):  # NumPy 2.1
    STAGED[np.unstack] = unstack
