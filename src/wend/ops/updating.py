"""Arrays with some elements replaced."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base.errors import ShapeError, listed
from wend.ir.dtypes import INT64
from wend.ir.op import Linear, Op
from wend.ir.types import TensorType, Type
from wend.ops.indexing import index_shape
from wend.ops.shapes import same_dim, tensor_of
from wend.ops.shaping import Slices, sliced_type


def _check_fits(into: TensorType, wanted: TensorType, x: TensorType) -> TensorType:
    if x.rank != wanted.rank or x.dtype != wanted.dtype:
        raise ShapeError(f"puts {wanted} into {into}, found {x}")
    return into


# A part cut by static slices
def _infer_set_slice(into: Type, x: Type, *, slices: Slices) -> TensorType:
    into, x = tensor_of(into), tensor_of(x)
    return _check_fits(into, sliced_type(into, slices), x)


def _kernel_set_slice(into: Any, x: Any, *, slices: Slices) -> Any:
    out = np.array(into)
    out[tuple(slice(*bounds) for bounds in slices)] = x
    return out


def _transpose_set_slice(b: Any, node: Any, ct: Any, index: int) -> Any:
    slices = node.attrs["slices"]
    if index == 1:
        return b.slice(ct, slices=slices)
    return b.set_slice(ct, b.zeros_like(node.operands[1]), slices=slices)


set_slice = Op("set_slice", _infer_set_slice, _kernel_set_slice, Linear(_transpose_set_slice))


# Elements, or rows of the leading axes; of a position that is named twice the last value stays
def _infer_scatter_set(into: Type, x: Type, *indices: Type) -> TensorType:
    into, x = tensor_of(into), tensor_of(x)
    named = index_shape(indices)
    if len(named) > 1 or len(indices) > len(into.dims):
        raise ShapeError(f"puts rows at numbers or vectors of positions, found {listed(indices)}")
    wanted = into.with_shape((*named, *into.dims[len(indices) :]))
    _check_fits(into, wanted, x)
    for mine, its in zip(x.dims, wanted.dims, strict=True):
        same_dim(mine, its, "the numbers of elements and positions")
    return into


def _kernel_scatter_set(into: Any, x: Any, *indices: Any) -> Any:
    out = np.array(into)
    out[indices] = x
    return out


def _transpose_scatter_set(b: Any, node: Any, ct: Any, index: int) -> Any:
    _, x, *indices = node.operands
    if index == 0:
        return b.scatter_set(ct, b.zeros_like(x), *indices)
    found = b.gather(ct, *indices)
    if all(size == 1 for size in indices[0].type.dims):
        return b.refine(found, x.type)
    # Where a position is named twice only the last value is in the result.
    order = b.refine(b.positions(x, axis=0), found.type.with_dtype(INT64))
    nobody = b.cast(b.zeros_like(ct), np.int64)
    last = b.gather(b.scatter_set(nobody, order, *indices), *indices)
    # The size of `x` may have another name than that of the positions.
    return b.refine(b.select(b.eq(last, order), found, b.zeros_like(found)), x.type)


scatter_set = Op(
    "scatter_set",
    _infer_scatter_set,
    _kernel_scatter_set,
    Linear(_transpose_scatter_set, operands=(0, 1)),
)
