"""Gather and scatter-add: reading and adding at positions that are values.

`gather` indexes the leading axes of `x` with integer arrays of one shape, as `x[i, j]` does;
negative positions count from the end and a position out of range is NumPy's IndexError. With
`in_bounds` none is out of range.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base.errors import ShapeError, listed
from wend.ir.dtypes import BOOLS, INT64, INTEGERS
from wend.ir.op import Linear, Op, no_gradient
from wend.ir.types import Dim, Shape, TensorType, Type, fresh
from wend.ops.raising import attr_axis, if_out_of_range, leading_axes
from wend.ops.shapes import (
    check_axis,
    check_dtype,
    check_same,
    check_scalar_index,
    tensor_of,
    unwrap_single,
)


def index_shape(indices: tuple[Type, ...]) -> Shape:
    """Return the common shape of integer arrays that index together."""
    first = check_same(indices)
    check_dtype(first, INTEGERS, "a position")
    return first.dims


def _infer_gather(x: Type, *indices: Type, in_bounds: bool = False) -> TensorType:
    x = tensor_of(x)
    if len(indices) > len(x.dims):
        raise ShapeError(f"{len(indices)} indices for {x}")
    return x.with_shape((*index_shape(indices), *x.dims[len(indices) :]))


def _kernel_gather(x: Any, *indices: Any, in_bounds: bool = False) -> Any:
    return x[indices]


def _accumulate_gather(b: Any, node: Any, ct: Any, index: int, into: Any) -> Any:
    return b.scatter_add(into, ct, *node.operands[1:])


def _batch_gather(c: Any, node: Any, operands: Any, flags: Any) -> Any:
    """Gather at the positions of all elements from an array that they share."""
    x, *indices = operands
    if flags[0]:
        return None
    like = indices[flags[1:].index(True)]
    pairs = zip(indices, flags[1:], strict=True)
    return c.emit(node, [x, *(i if flag else c.b.broadcast_like(i, like) for i, flag in pairs)])


gather = Op(
    "gather",
    _infer_gather,
    _kernel_gather,
    Linear.adding(_accumulate_gather, (0,)),
    raises=if_out_of_range(leading_axes(1)),
    is_speculatable=True,
    batch=_batch_gather,
)


def _infer_scatter_add(into: Type, x: Type, *indices: Type, in_bounds: bool = False) -> TensorType:
    into, x = tensor_of(into), tensor_of(x)
    part = into.with_shape((*index_shape(indices), *into.dims[len(indices) :]))
    if x.rank != part.rank or x.dtype != part.dtype:
        raise ShapeError(f"adds {part} into {into}, found {x}")
    return into


def _kernel_scatter_add(into: Any, x: Any, *indices: Any, in_bounds: bool = False) -> Any:
    out = np.array(into)
    np.add.at(out, indices, x)
    return out


def _transpose_scatter_add(b: Any, node: Any, ct: Any, index: int) -> Any:
    return b.gather(ct, *node.operands[2:]) if index else ct


# Values at repeated positions add up
scatter_add = Op(
    "scatter_add",
    _infer_scatter_add,
    _kernel_scatter_add,
    Linear(_transpose_scatter_add, operands=(0, 1)),
    raises=if_out_of_range(leading_axes(2)),
    updates=0,
    addends=(0,),
)


def _infer_position(index: Type, size: Type, *, axis: int, of: str) -> TensorType:
    check_scalar_index(index, "a position")
    check_scalar_index(size, "a size")
    return TensorType(INT64, ())


def _kernel_position(index: Any, size: Any, *, axis: int, of: str) -> Any:
    np.broadcast_to(np.int8(0), (*[1] * axis, size))[(*[0] * axis, index)]  # NumPy's error
    return np.int64(index) + (size if index < 0 else 0)


# A position along an axis of a view, counted from the start (`passes/fold_views.py`). For the error
# where it is out of range, `axis` is that of the view, and `of` the operation that reads or writes.
position = Op(
    "position",
    _infer_position,
    _kernel_position,
    no_gradient(),
    raises=(IndexError,),
    error_attrs=("axis", "of"),
    is_cheap=True,
)


# Along one axis, with the other axes in parallel
def _infer_take_along(x: Type, indices: Type, *, axis: int) -> TensorType:
    x, indices = tensor_of(x), tensor_of(indices)
    check_dtype(indices, INTEGERS, "a position")
    check_axis(axis, len(x.dims))
    if x.rank != indices.rank:
        raise ShapeError(f"indices must have as many axes as the array: {listed((x, indices))}")
    return x.with_shape(indices.shape)


def _accumulate_take_along(b: Any, node: Any, ct: Any, index: int, into: Any) -> Any:
    return b.add_along(into, ct, node.operands[1], axis=node.attrs["axis"])


take_along = Op(
    "take_along",
    _infer_take_along,
    lambda x, indices, *, axis: np.take_along_axis(x, indices, axis),
    Linear.adding(_accumulate_take_along, (0,)),
    raises=if_out_of_range(attr_axis(1)),
)


def _kernel_add_along(into: Any, x: Any, indices: Any, *, axis: int) -> Any:
    out = np.array(into)
    positions = list(np.ogrid[tuple(slice(size) for size in indices.shape)])
    positions[axis] = indices
    np.add.at(out, tuple(positions), x)
    return out


def _transpose_add_along(b: Any, node: Any, ct: Any, index: int) -> Any:
    return b.take_along(ct, node.operands[2], axis=node.attrs["axis"]) if index else ct


add_along = Op(
    "add_along",
    lambda into, x, indices, *, axis: tensor_of(into),
    _kernel_add_along,
    Linear(_transpose_add_along, operands=(0, 1)),
    raises=if_out_of_range(attr_axis(2)),
    updates=0,
    addends=(0,),
)


def _infer_nonzero(x: Type) -> tuple[TensorType, ...]:
    count: Dim = fresh()
    check_dtype(tensor_of(x), BOOLS, "the mask")
    return tuple(TensorType(INT64, (count,)) for _ in tensor_of(x).dims)


# The positions where a mask is true: one vector per axis, all of one unknown length
nonzero = Op("nonzero", _infer_nonzero, lambda x: unwrap_single(np.nonzero(x)), no_gradient())
