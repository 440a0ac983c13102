"""Sorting, searching in sorted arrays, and writing by position along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base.errors import ShapeError, listed
from wend.ir.dtypes import ALL, BOOL, INT64, INTEGERS
from wend.ir.op import Explicit, Linear, Op, no_gradient
from wend.ir.types import TensorType, Type
from wend.ops.raising import attr_axis, if_out_of_range
from wend.ops.shapes import check_axis, check_dtype, tensor_of


def _infer_searchsorted(x: Type, values: Type, *, side: str) -> TensorType:
    x, values = tensor_of(x), tensor_of(values)
    check_dtype(x, ALL)
    if len(x.dims) != 1 or x.dtype != values.dtype:
        raise ShapeError(f"searches a sorted vector for values of its dtype, found {x}, {values}")
    return values.with_dtype(INT64)


# The insertion point of each value that keeps the vector sorted
searchsorted = Op(
    "searchsorted",
    _infer_searchsorted,
    lambda x, values, *, side: np.searchsorted(x, values, side),
    no_gradient(),
)


def _infer_isin(x: Type, among: Type) -> TensorType:
    x, among = tensor_of(x), tensor_of(among)
    check_dtype(x, ALL)
    if len(among.dims) != 1 or x.dtype != among.dtype:
        raise ShapeError(f"looks for values in a vector of their dtype, found {x}, {among}")
    return x.with_dtype(BOOL)


# Which values are among those of a vector; NaN is not
isin = Op("isin", _infer_isin, lambda x, among: np.isin(x, among)[()], no_gradient())


# Along one axis, with the other axes in parallel
def _infer_set_along(into: Type, x: Type, indices: Type, *, axis: int) -> TensorType:
    into, x, indices = tensor_of(into), tensor_of(x), tensor_of(indices)
    check_dtype(indices, INTEGERS, "a position")
    check_axis(axis, len(into.dims))
    if x.dtype != into.dtype or x.shape != indices.shape or x.rank != into.rank:
        raise ShapeError(f"cannot write by position: {listed((into, x, indices))}")
    return into


def _kernel_set_along(into: Any, x: Any, indices: Any, *, axis: int) -> Any:
    out = np.array(into)
    np.put_along_axis(out, indices, x, axis)
    return out


def _transpose_set_along(b: Any, node: Any, ct: Any, index: int) -> Any:
    into, x, indices = node.operands
    axis = node.attrs["axis"]
    if index == 0:
        return b.emit(set_along, ct, b.zeros_like(x), indices, axis=axis)
    # The last write to a position wins: only it has a cotangent.
    size = indices.type.dims[axis]
    count = size if isinstance(size, int) else b.size_of(indices, axis)
    shape = [1] * len(indices.type.dims)
    shape[axis] = -1
    order = b.broadcast_like(b.reshape(b.iota(count), tuple(shape)), indices)
    unwritten = b.broadcast_like(b.integer(-1), into)
    winner = b.take_along(
        b.emit(set_along, unwritten, order, indices, axis=axis), indices, axis=axis
    )
    return b.select(b.eq(winner, order), b.take_along(ct, indices, axis=axis), b.zeros_like(x))


# The last write to a position wins
set_along = Op(
    "set_along",
    _infer_set_along,
    _kernel_set_along,
    Linear(_transpose_set_along, operands=(0, 1)),
    raises=if_out_of_range(attr_axis(2)),
    updates=0,
)


def _infer_sort(x: Type, *, axis: int) -> TensorType:
    check_axis(axis, len(tensor_of(x).dims))
    check_dtype(tensor_of(x), ALL)
    return tensor_of(x)


def _pull_back_sort(b: Any, node: Any, cts: Any) -> Any:
    (x,), axis = node.operands, node.attrs["axis"]
    return (b.add_along(b.zeros_like(x), cts[0], b.argsort(x, axis=axis), axis=axis),)


def _batch_axis(c: Any, node: Any, operands: Any, flags: Any) -> Any:
    return c.emit(node, operands, axis=node.attrs["axis"] + 1)


# NaN sorts last and equal elements keep their order, as in NumPy
sort = Op(
    "sort",
    _infer_sort,
    lambda x, *, axis: np.sort(x, axis=axis, kind="stable"),
    Explicit(_pull_back_sort),
    batch=_batch_axis,
)
argsort = Op(
    "argsort",
    lambda x, *, axis: _infer_sort(x, axis=axis).with_dtype(INT64),
    lambda x, *, axis: np.argsort(x, axis=axis, kind="stable"),
    no_gradient(),
    batch=_batch_axis,
)
