"""Arrays with some elements replaced."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base.errors import ShapeError, listed
from wend.ir.dtypes import INTEGERS
from wend.ir.op import Linear, Op
from wend.ir.types import TensorType, Type
from wend.ops.shapes import check_dtype, same_dim, tensor_of
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


# Elements of a vector; of a position that is named twice the last value stays
def _infer_scatter_set(into: Type, x: Type, places: Type) -> TensorType:
    into, x, places = tensor_of(into), tensor_of(x), tensor_of(places)
    check_dtype(places, INTEGERS, "a position")
    if not into.rank == x.rank == places.rank == 1:
        raise ShapeError(f"puts elements into a vector, found {listed((into, x, places))}")
    same_dim(x.dims[0], places.dims[0], "the numbers of elements and positions")
    return _check_fits(into, x, x)


def _kernel_scatter_set(into: Any, x: Any, places: Any) -> Any:
    out = np.array(into)
    out[places] = x
    return out


def _transpose_scatter_set(b: Any, node: Any, ct: Any, index: int) -> Any:
    _, x, places = node.operands
    if index == 0:
        return b.scatter_set(ct, b.zeros_like(x), places)
    # Where a position is named twice only the last value is in the result.
    (size,) = places.type.dims
    count = b.iota(size if isinstance(size, int) else b.size_of(places, 0))
    order = b.refine(count, count.type.with_shape(places.type.dims))
    nobody = b.cast(b.zeros_like(ct), np.int64)
    last = b.gather(b.scatter_set(nobody, order, places), places)
    found = b.gather(ct, places)
    # The size of `x` may have another name than that of the positions.
    return b.refine(b.select(b.eq(last, order), found, b.zeros_like(found)), x.type)


scatter_set = Op(
    "scatter_set",
    _infer_scatter_set,
    _kernel_scatter_set,
    Linear(_transpose_scatter_set, operands=(0, 1)),
)
