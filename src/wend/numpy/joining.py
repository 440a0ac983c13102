"""Functions that join and split arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from wend.eager.dispatch import any_staged
from wend.numpy import shaping
from wend.numpy.operands import all_staged, staged
from wend.numpy.public import STAGED, implements
from wend.numpy.shaping import known_size


def _one_or_all(arrays: list[Any]) -> Any:
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


@implements(np.atleast_1d)
def atleast_1d(*arys: Any) -> Any:
    """Convert inputs to arrays with at least one dimension; see `numpy.atleast_1d`."""
    return _one_or_all(
        [x if shaping.rank_of(x) else shaping.reshape(x, (1,)) for x in all_staged(arys)]
    )


def _to_matrix(x: Any) -> Any:
    match shaping.rank_of(x):
        case 0:
            return shaping.reshape(x, (1, 1))
        case 1:
            return shaping.expand_dims(x, 0)
    return x


@implements(np.atleast_2d)
def atleast_2d(*arys: Any) -> Any:
    """View inputs as arrays with at least two dimensions; see `numpy.atleast_2d`."""
    return _one_or_all([_to_matrix(x) for x in all_staged(arys)])


def _to_cube(x: Any) -> Any:
    x = _to_matrix(x)
    return shaping.expand_dims(x, -1) if shaping.rank_of(x) == 2 else x


@implements(np.atleast_3d)
def atleast_3d(*arys: Any) -> Any:
    """View inputs as arrays with at least three dimensions; see `numpy.atleast_3d`."""
    return _one_or_all([_to_cube(x) for x in all_staged(arys)])


def _prepare_all(tup: Any, prepare: Callable[..., Any]) -> list[Any]:
    return [prepare(x) for x in all_staged(tuple(tup))]


@implements(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """Stack arrays in sequence horizontally (column wise); see `numpy.hstack`."""
    arrays = _prepare_all(tup, atleast_1d)
    axis = 0 if shaping.rank_of(arrays[0]) == 1 else 1
    return shaping.concatenate(arrays, axis=axis, dtype=dtype, casting=casting)


@implements(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    """Stack arrays in sequence vertically (row wise); see `numpy.vstack`."""
    return shaping.concatenate(_prepare_all(tup, _to_matrix), dtype=dtype, casting=casting)


@implements(np.dstack)
def dstack(tup: Any) -> Any:
    """Stack arrays in sequence depth wise (along the third axis); see `numpy.dstack`."""
    return shaping.concatenate(_prepare_all(tup, _to_cube), axis=2)


@implements(np.column_stack)
def column_stack(tup: Any) -> Any:
    """Stack 1-d arrays as columns into a 2-d array; see `numpy.column_stack`."""
    columns = _prepare_all(
        tup, lambda x: shaping.expand_dims(atleast_1d(x), 1) if shaping.rank_of(x) < 2 else x
    )
    return shaping.concatenate(columns, axis=1)


@implements(np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """Append values to the end of an array; see `numpy.append`."""
    return shaping.concatenate(all_staged((arr, values)), axis=axis)


@implements(np.block)
def block(arrays: Any) -> Any:
    """Assemble an array from nested lists of blocks; see `numpy.block`."""
    depth = _depth(arrays)
    rank = max(depth, *_ranks(arrays))
    return _blocks(arrays, depth, rank)


def _depth(arrays: Any) -> int:
    """Return how deep the lists are nested, which has to be the same everywhere."""
    first, *others = _places(arrays, ())
    for place in others:
        if len(place) != len(first):
            raise ValueError(
                f"List depths are mismatched. First element was at depth {len(first)}, but "
                f"there is an element at depth {len(place)} ({_name_of(place)})"
            )
    return len(first)


def _places(arrays: Any, place: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the positions of each block in the lists."""
    if isinstance(arrays, tuple):
        raise TypeError(
            f"{_name_of(place)} is a tuple. Only lists can be used to arrange blocks, and np.block "
            "does not allow implicit conversion from tuple to ndarray."
        )
    if not isinstance(arrays, list):
        yield place
        return
    if not arrays:
        raise ValueError(f"List at {_name_of(place)} cannot be empty")
    for i, x in enumerate(arrays):
        yield from _places(x, (*place, i))


def _name_of(place: tuple[int, ...]) -> str:
    return "arrays" + "".join(f"[{i}]" for i in place)


def _ranks(arrays: Any) -> list[int]:
    if not isinstance(arrays, list):
        return [shaping.rank_of(arrays)]
    return [rank for item in arrays for rank in _ranks(item)]


def _blocks(arrays: Any, depth: int, rank: int) -> Any:
    if not isinstance(arrays, list):
        x = staged(arrays)
        return shaping.reshape(x, (1,) * (rank - shaping.rank_of(x)) + shaping.shape(x))
    return shaping.concatenate([_blocks(x, depth - 1, rank) for x in arrays], axis=-depth)


# Splitting
@implements(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """Split an array into multiple sub-arrays, equally if possible; see `numpy.array_split`.

    The split points or their number must be plain integers.
    """
    ary = staged(ary)
    if not shaping.is_single_number(indices_or_sections):
        return shaping.split(ary, indices_or_sections, axis)
    size, count = known_size(ary, axis, "array_split"), operator.index(indices_or_sections)
    if count <= 0:
        raise ValueError("number sections must be larger than 0.")
    quotient, remainder = divmod(size, count)
    sizes = [quotient + 1] * remainder + [quotient] * (count - remainder)
    return shaping.split(ary, np.cumsum(sizes)[:-1], axis)


@implements(np.hsplit)
def hsplit(ary: Any, indices_or_sections: Any) -> Any:
    """Split an array into sub-arrays horizontally (column wise); see `numpy.hsplit`."""
    return shaping.split(ary, indices_or_sections, 1 if shaping.rank_of(ary) > 1 else 0)


@implements(np.vsplit)
def vsplit(ary: Any, indices_or_sections: Any) -> Any:
    """Split an array into sub-arrays vertically (row wise); see `numpy.vsplit`."""
    if shaping.rank_of(ary) < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return shaping.split(ary, indices_or_sections, 0)


@implements(np.dsplit)
def dsplit(ary: Any, indices_or_sections: Any) -> Any:
    """Split an array into sub-arrays along the third axis; see `numpy.dsplit`."""
    if shaping.rank_of(ary) < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return shaping.split(ary, indices_or_sections, 2)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """Split an array into a tuple of arrays along an axis of static size; see `numpy.unstack`."""
    if not any_staged([x]):
        return tuple(np.moveaxis(np.asarray(x), axis, 0))
    rank = shaping.rank_of(x)
    if not rank:
        raise ValueError("Input array must be at least 1-d.")
    front = shaping.moveaxis(x, axis, 0)
    return tuple(front[k] for k in range(known_size(front, 0, "unstack")))


if hasattr(np, "unstack"):  # NumPy 2.1
    STAGED[np.unstack] = unstack
