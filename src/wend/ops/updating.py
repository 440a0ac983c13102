"""Arrays with some elements replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wend.base.errors import ShapeError, listed
from wend.ir.dtypes import INT64
from wend.ir.op import Linear, Op
from wend.ir.types import TensorType, Type
from wend.ops import elementwise, indexing, reducing
from wend.ops.indexing import index_shape
from wend.ops.raising import if_out_of_range, leading_axes
from wend.ops.shapes import Slices, same_dim, size_of, tensor_of
from wend.ops.shaping import sliced_type

_MIN_UNKNOWN_SIZE = 1024  # elements; an array of unknown size is taken to have at least as many


def _check_fits(into: TensorType, part: TensorType, x: TensorType) -> TensorType:
    if x.rank != part.rank or x.dtype != part.dtype:
        raise ShapeError(f"puts {part} into {into}, found {x}")
    return into


# A part given by static slices
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


set_slice = Op(
    "set_slice", _infer_set_slice, _kernel_set_slice, Linear(_transpose_set_slice), updates=0
)


# Elements, or rows of the leading axes; the last write to a position wins
def _infer_scatter_set(into: Type, x: Type, *indices: Type, in_bounds: bool = False) -> TensorType:
    into, x = tensor_of(into), tensor_of(x)
    position_dims = index_shape(indices)
    if len(position_dims) > 1 or len(indices) > len(into.dims):
        raise ShapeError(f"puts rows at numbers or vectors of positions, found {listed(indices)}")
    part = into.with_shape((*position_dims, *into.dims[len(indices) :]))
    _check_fits(into, part, x)
    for dim, part_dim in zip(x.dims, part.dims, strict=True):
        same_dim(dim, part_dim, "the numbers of elements and positions")
    return into


def _kernel_scatter_set(into: Any, x: Any, *indices: Any, in_bounds: bool = False) -> Any:
    out = np.array(into)
    out[indices] = x
    return out


def _transpose_scatter_set(b: Any, node: Any, ct: Any, index: int) -> Any:
    _, x, *indices = node.operands
    if index == 0:
        return b.scatter_set(ct, b.zeros_like(x), *indices)
    gathered = b.gather(ct, *indices)
    if all(size == 1 for size in indices[0].type.dims) or _are_of_a_mask(indices):
        return b.refine(gathered, x.type)
    # Only the last write to a position has a cotangent.
    if _is_fast_to_compare(indices[0].type, ct.type):
        is_last = _is_last_write(b, ct, indices)
        axes = tuple(range(1, gathered.type.rank))
        is_last = b.broadcast_like(b.insert_axes(is_last, axes=axes), gathered)
    else:
        order = b.refine(b.positions(x, axis=0), gathered.type.with_dtype(INT64))
        unwritten = b.cast(b.zeros_like(ct), np.int64)
        last_order = b.gather(b.scatter_set(unwritten, order, *indices), *indices)
        is_last = b.eq(last_order, order)
    # The size of `x` may have another symbol than that of the positions.
    return b.refine(b.select(is_last, gathered, b.zeros_like(gathered)), x.type)


def _are_of_a_mask(positions: Sequence[Any]) -> bool:
    """Return whether positions are those where a mask is true: no two of them are equal."""
    node = positions[0].node
    return node is not None and node.op is indexing.nonzero and node.results == tuple(positions)


def _is_fast_to_compare(positions: TensorType, array: TensorType) -> bool:
    """Return whether comparing all pairs of positions takes no more steps than the array has.

    A loop that writes a few elements a trip must not touch all of the array in each.
    """
    (count,) = positions.dims
    size = size_of(array.dims)
    return isinstance(count, int) and count**2 <= (_MIN_UNKNOWN_SIZE if size is None else size)


def _is_last_write(b: Any, array: Any, indices: Sequence[Any]) -> Any:
    """Return for each element written whether no later one has the same position."""
    (count,) = indices[0].type.dims
    shape = (count, count)
    order = b.iota(count)
    is_overwritten = b.gt(*_pairs(b, order, shape)[::-1])
    for axis, index in enumerate(indices):
        size = b.broadcast_like(b.cast(b.size_of(array, axis), index.type.dtype), index)
        position = b.select(b.lt(index, b.zeros_like(index)), b.add(index, size), index)
        is_same = b.eq(*_pairs(b, position, shape))
        is_overwritten = b.emit(elementwise.bit_and, is_overwritten, is_same)
    is_any = b.emit(reducing.reduce_any, is_overwritten, axes=(1,), keepdims=False)
    return b.emit(elementwise.bit_not, is_any)


def _pairs(b: Any, x: Any, shape: tuple[int, int]) -> tuple[Any, Any]:
    """Return the first and the second element of each pair of elements of a vector."""
    columns = b.broadcast_to(b.reshape(x, (shape[0], 1)), shape)
    return columns, b.broadcast_to(b.reshape(x, (1, shape[1])), shape)


scatter_set = Op(
    "scatter_set",
    _infer_scatter_set,
    _kernel_scatter_set,
    Linear(_transpose_scatter_set, operands=(0, 1)),
    raises=if_out_of_range(leading_axes(2)),
    updates=0,
)

# Reads and writes of elements or rows: the first of the operands that are positions
ELEMENT_POSITIONS = {indexing.gather: 1, indexing.scatter_add: 2, scatter_set: 2}
