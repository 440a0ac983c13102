"""Partial sorts and sorts by several keys; insertion and deletion of elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wend.base.errors import UnsupportedError, explain
from wend.base.source import at, user_source
from wend.eager.dispatch import any_staged
from wend.eager.promotion import cast
from wend.ir.dtypes import BOOL
from wend.numpy import elementwise as ew
from wend.numpy import indexing, reducing, shaping
from wend.numpy.operands import (
    all_staged,
    dtype_of,
    operand,
    put_operand,
    require,
    staged,
    strong,
)
from wend.numpy.public import implements
from wend.numpy.shaping import known_size


# Orders
def without_nan(keys: Any) -> Any:
    """Return keys to sort; NaN raises, since Python puts it where its algorithm happens to."""
    if dtype_of(keys).kind != "f":
        return keys
    text = "sorted() of NaN has no order that is defined; np.sort puts NaN last"
    return require(keys, reducing.any(ew.isnan(keys)), ValueError, text)


def order_by(columns: Sequence[Any], *, reverse: bool) -> Any:
    """Return the order by the first column, then the second, …: stable, also in reverse."""
    columns = [without_nan(column) for column in columns]
    if reverse:
        columns = [column[::-1] for column in columns]
    is_single = len(columns) == 1
    order = reducing.argsort(columns[0], stable=True) if is_single else lexsort(columns[::-1])
    return shaping.size(columns[0]) - 1 - order[::-1] if reverse else order


@implements(np.partition)
def partition(
    a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: None = None
) -> Any:
    """Return a partitioned copy of an array; see `numpy.partition`.

    A traced array is sorted completely.
    """
    del kind
    return reducing.sort(_with_kth(staged(a), kth, axis), axis, None, order)


@implements(np.argpartition)
def argpartition(
    a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: None = None
) -> Any:
    """Perform an indirect partition along the given axis; see `numpy.argpartition`.

    A traced array is sorted completely.
    """
    del kind
    return reducing.argsort(_with_kth(strong(a), kth, axis), axis, None, order)


def _with_kth(a: Any, kth: Any, axis: int | None) -> Any:
    """Return the array; NumPy's error if it has no element at a position to partition at."""
    rank = shaping.rank_of(a)
    if axis is None or not rank:
        size = shaping.size(a)
    else:
        size = shaping.shape(a)[normalize_axis_index(axis, rank)]
    kth = operand(kth)
    if dtype_of(kth) == BOOL:
        raise ValueError("Booleans unacceptable as partition index")
    if dtype_of(kth).kind not in "iu":
        raise TypeError("Partition index must be integer")
    is_out = ew.logical_or(ew.less(kth, -size), ew.greater_equal(kth, size))
    text = f"kth(={'…' if any_staged([kth]) else kth}) out of bounds ({size})"
    return require(a, reducing.any(is_out), ValueError, text)


@implements(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Any:
    """Perform an indirect stable sort using a sequence of keys; see `numpy.lexsort`.

    The last key is the primary one.
    """
    sort_keys = [keys[k] for k in range(len(keys))]
    if not sort_keys:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    sort_keys = all_staged(sort_keys)
    axis = normalize_axis_index(axis, shaping.rank_of(sort_keys[0]))
    order = reducing.argsort(sort_keys[0], axis)
    for key in sort_keys[1:]:
        rows = reducing.argsort(indexing.take_along_axis(key, order, axis), axis)
        order = indexing.take_along_axis(order, rows, axis)
    return order


# Insertion and deletion at static positions
def _require_static_positions(name: str, obj: Any) -> None:
    if any_staged([obj]) or (isinstance(obj, slice) and any_staged([obj.start, obj.stop])):
        raise UnsupportedError(
            explain(
                f"np.{name}{at(user_source())} takes positions that are known before the run.",
                cure="join the parts: np.concatenate([x[:i], new, x[i:]]).",
            )
        )


def _normalize_array_and_axis(arr: Any, axis: int | None) -> tuple[Any, int]:
    arr = staged(arr)
    if axis is None:
        arr, axis = shaping.ravel(arr), 0
    return arr, normalize_axis_index(axis, shaping.rank_of(arr))


@implements(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """Insert values along the given axis before the given indices; see `numpy.insert`.

    The indices must be static.
    """
    _require_static_positions("insert", obj)
    arr, axis = _normalize_array_and_axis(arr, axis)
    size = known_size(arr, axis, "insert")
    positions = np.arange(size)[obj] if isinstance(obj, slice) else np.asarray(obj)
    positions = positions.astype(np.int64) if positions.size == 0 else positions
    np.insert(np.arange(size), positions, 0)  # raises NumPy's error if a position is out of range
    values = cast(staged(put_operand(values, dtype_of(arr))), dtype_of(arr))
    missing = shaping.rank_of(arr) - shaping.rank_of(values)
    values = shaping.expand_dims(values, tuple(range(missing))) if missing > 0 else values
    if positions.ndim == 0:
        # As in NumPy, the first axis of the values is inserted along `axis`.
        values = shaping.moveaxis(values, 0, axis)
    is_single = positions.ndim == 0 or positions.size == 1
    count = known_size(values, axis, "insert") if is_single else positions.size
    sizes = (*shaping.shape(arr)[:axis], count, *shaping.shape(arr)[axis + 1 :])
    joined = shaping.concatenate([arr, shaping.broadcast_to(values, sizes)], axis=axis)
    insertion_points = positions.item() if is_single else positions
    order = np.insert(np.arange(size), insertion_points, size + np.arange(count))
    return indexing.take(joined, order, axis=axis)


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """Return a new array with sub-arrays along an axis deleted; see `numpy.delete`.

    The indices must be static.
    """
    _require_static_positions("delete", obj)
    arr, axis = _normalize_array_and_axis(arr, axis)
    remaining = np.delete(np.arange(known_size(arr, axis, "delete")), obj)
    return indexing.take(arr, remaining, axis=axis)
