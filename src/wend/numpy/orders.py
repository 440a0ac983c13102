"""Partial orders and orders by several keys; elements put in and taken out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wend.base.errors import explain
from wend.eager.dispatch import any_staged
from wend.eager.promotion import cast
from wend.numpy import indexing, reducing, shaping
from wend.numpy.operands import all_staged, dtype_of, known_size, staged
from wend.numpy.public import implements


# Orders
@implements(np.partition)
def partition(
    a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: None = None
) -> Any:
    """`numpy.partition`, for traced arrays as well; those are sorted altogether."""
    del kth, kind
    return reducing.sort(staged(a), axis, None, order)


@implements(np.argpartition)
def argpartition(
    a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: None = None
) -> Any:
    """`numpy.argpartition`, for traced arrays as well; those are sorted altogether."""
    del kth, kind
    return reducing.argsort(staged(a), axis, None, order)


@implements(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Any:
    """`numpy.lexsort`, for traced arrays as well: by the last key first."""
    found = [keys[k] for k in range(len(keys))]
    if not found:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    found = all_staged(found)
    axis = normalize_axis_index(axis, shaping.rank_of(found[0]))
    order = reducing.argsort(found[0], axis)
    for key in found[1:]:
        rows = reducing.argsort(indexing.take_along_axis(key, order, axis), axis)
        order = indexing.take_along_axis(order, rows, axis)
    return order


# Elements put in and taken out, at positions that are known
def _known_positions(name: str, obj: Any) -> None:
    if any_staged([obj]) or (isinstance(obj, slice) and any_staged([obj.start, obj.stop])):
        raise NotImplementedError(
            explain(
                f"{name} takes positions that are known before the run.",
                cure="join the parts: np.concatenate([x[:i], new, x[i:]]).",
            )
        )


def _lined_up(arr: Any, axis: int | None) -> tuple[Any, int]:
    arr = staged(arr)
    if axis is None:
        arr, axis = shaping.ravel(arr), 0
    return arr, normalize_axis_index(axis, shaping.rank_of(arr))


@implements(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """`numpy.insert` at known positions, for traced arrays and values as well."""
    _known_positions("insert", obj)
    arr, axis = _lined_up(arr, axis)
    size = known_size(arr, axis, "insert")
    places = np.arange(size)[obj] if isinstance(obj, slice) else np.asarray(obj)
    places = places.astype(np.int64) if places.size == 0 else places
    np.insert(np.arange(size), places, 0)  # raises where they do not fit
    values = cast(staged(values), dtype_of(arr))
    missing = shaping.rank_of(arr) - shaping.rank_of(values)
    values = shaping.expand_dims(values, tuple(range(missing))) if missing > 0 else values
    if places.ndim == 0:
        # As NumPy: for one position the values' first axis is the one that grows.
        values = shaping.moveaxis(values, 0, axis)
    single = places.ndim == 0 or places.size == 1
    count = known_size(values, axis, "insert") if single else places.size
    sizes = (*shaping.shape(arr)[:axis], count, *shaping.shape(arr)[axis + 1 :])
    both = shaping.concatenate([arr, shaping.broadcast_to(values, sizes)], axis=axis)
    where = places.item() if single else places
    order = np.insert(np.arange(size), where, size + np.arange(count))
    return indexing.take(both, order, axis=axis)


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """`numpy.delete` at known positions, for traced arrays as well."""
    _known_positions("delete", obj)
    arr, axis = _lined_up(arr, axis)
    left = np.delete(np.arange(known_size(arr, axis, "delete")), obj)
    return indexing.take(arr, left, axis=axis)
