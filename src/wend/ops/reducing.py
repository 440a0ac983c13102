"""Reductions over axes, and cumulative sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any, Unpack

import numpy as np

from wend.base.errors import ShapeError
from wend.ir.dtypes import ALL, BOOLS, FLOATS, INT64, NUMERIC
from wend.ir.op import Derivative, Explicit, Facts, Linear, Op, Raises, Rounding, no_gradient
from wend.ir.types import Dim, TensorType, Type
from wend.ops import elementwise
from wend.ops.raising import if_axis_unknown
from wend.ops.shapes import check_axis, check_dtype, tensor_of


def _drop_axes(x: TensorType, axes: tuple[int, ...], keepdims: bool) -> TensorType:
    for axis in axes:
        check_axis(axis, len(x.dims))
    if len(set(axes)) != len(axes):
        raise ShapeError(f"axes {axes} repeat")
    if keepdims:
        return x.with_shape(tuple(1 if k in axes else dim for k, dim in enumerate(x.dims)))
    return x.with_shape(tuple(dim for k, dim in enumerate(x.dims) if k not in axes))


def reduction(
    name: str,
    ufunc: np.ufunc,
    dtypes: Collection[np.dtype],
    derivative: Derivative,
    *,
    raises: Raises | Callable[[Any], Raises] = (),
    **facts: Unpack[Facts],
) -> Op:
    """Make a reduction over `axes` that keeps the dtype."""

    def infer(x: Type, *, axes: tuple[int, ...], keepdims: bool) -> TensorType:
        check_dtype(tensor_of(x), dtypes)
        dropped = _drop_axes(tensor_of(x), axes, keepdims)
        empty = any(tensor_of(x).dims[axis] == 0 for axis in axes)
        if empty and ufunc.identity is None:
            raise ShapeError(f"{name[7:]} of an empty axis of {x} has no value")
        return dropped

    def kernel(x: Any, *, axes: tuple[int, ...], keepdims: bool) -> Any:
        return ufunc.reduce(np.asarray(x), axis=axes, dtype=x.dtype, keepdims=keepdims)

    return Op(name, infer, kernel, derivative, raises=raises, batch=_batch_axes, **facts)


def _batch_axes(c: Any, node: Any, operands: Any, flags: Any) -> Any:
    return c.emit(node, operands, axes=tuple(axis + 1 for axis in node.attrs["axes"]))


def _batch_axis(c: Any, node: Any, operands: Any, flags: Any) -> Any:
    return c.emit(node, operands, axis=node.attrs["axis"] + 1)


def _broadcast_result(b: Any, node: Any, value: Any) -> Any:
    """Broadcast a value of the result's shape over the operand's."""
    x, axes = node.operands[0], node.attrs["axes"]
    if not node.attrs["keepdims"]:
        value = b.insert_axes(value, axes=axes)
    return b.broadcast_like(value, x)


def _pull_back_extremum(b: Any, node: Any, cts: Any) -> Any:
    # Ties share the cotangent evenly, as in JAX.
    (x,), (y,), axes = node.operands, node.results, node.attrs["axes"]
    hits = b.cast(b.eq(x, _broadcast_result(b, node, y)), x.type.dtype)
    count = b.reduce_sum(hits, axes=axes, keepdims=node.attrs["keepdims"])
    return (b.mul(hits, _broadcast_result(b, node, b.div(cts[0], count))),)


def _pull_back_prod(b: Any, node: Any, cts: Any) -> Any:
    # The product of the other elements, not y/x: correct at zeros, and for higher derivatives.
    (x,), axes = node.operands, node.attrs["axes"]
    perm = (*(k for k in range(len(x.type.dims)) if k not in axes), *axes)
    free_rank = len(perm) - len(axes)
    moved = b.transpose(x, perm=perm)
    others = b.reshape_like(_products_of_others(b, b.merge_axes(moved, start=free_rank)), moved)
    back = tuple(np.argsort(perm).tolist())
    return (b.mul(_broadcast_result(b, node, cts[0]), b.transpose(others, perm=back)),)


def _products_of_others(b: Any, x: Any) -> Any:
    """Return for each element the product of all others along the last axis, by halving."""
    size: Dim = x.type.dims[-1]
    if not isinstance(size, int):
        return _products_by_mask(b, x)
    if size <= 1:
        return b.ones_like(x)
    half = size // 2
    front, back = b.part(x, 0, half), b.part(x, half, 2 * half)
    odd_element = [b.part(x, 2 * half, size)] if size % 2 else []
    pairs = b.concat(b.mul(front, back), *odd_element, axis=len(x.type.dims) - 1)
    others = _products_of_others(b, pairs)
    pair_products = b.part(others, 0, half)
    tail = [b.part(others, half, half + 1)] if odd_element else []
    return b.concat(
        b.mul(pair_products, back), b.mul(pair_products, front), *tail, axis=len(x.type.dims) - 1
    )


def _products_by_mask(b: Any, x: Any) -> Any:
    """Compute the same for a size that only the run knows, with n² factors, 1 on the diagonal."""
    dims, last = x.type.dims, len(x.type.dims) - 1
    sizes = b.concat(b.shape_of(x), b.insert_axes(b.size_of(x, last), axes=(0,)), axis=0)
    square = b.spread(b.insert_axes(x, axes=(last,)), sizes, (*dims, dims[-1]))
    row, column = (b.positions(square, axis=axis) for axis in (last, last + 1))
    factors = b.select(b.eq(row, column), b.ones_like(square), square)
    return b.reduce_prod(factors, axes=(last + 1,))


reduce_sum = reduction(
    "reduce_sum",
    np.add,
    NUMERIC,
    Linear(lambda b, node, ct, i: _broadcast_result(b, node, ct)),
    is_speculatable=True,
    rounding=Rounding.OF_FLOATS,
    step=elementwise.add,
    identity=0,
)
reduce_prod = reduction(
    "reduce_prod",
    np.multiply,
    NUMERIC,
    Explicit(_pull_back_prod),
    is_speculatable=True,
    rounding=Rounding.OF_FLOATS,
    step=elementwise.mul,
    identity=1,
)
reduce_max = reduction(
    "reduce_max",
    np.maximum,
    ALL,
    Explicit(_pull_back_extremum),
    rounding=Rounding.OF_FLOATS,
    step=elementwise.maximum,
    raises=if_axis_unknown,
)
reduce_min = reduction(
    "reduce_min",
    np.minimum,
    ALL,
    Explicit(_pull_back_extremum),
    rounding=Rounding.OF_FLOATS,
    step=elementwise.minimum,
    raises=if_axis_unknown,
)
reduce_any = reduction(
    "reduce_any",
    np.logical_or,
    BOOLS,
    no_gradient(),
    is_speculatable=True,
    step=elementwise.bit_or,
    identity=False,
)
reduce_all = reduction(
    "reduce_all",
    np.logical_and,
    BOOLS,
    no_gradient(),
    is_speculatable=True,
    step=elementwise.bit_and,
    identity=True,
)


def _infer_fsum(x: Type) -> TensorType:
    vector = tensor_of(x)
    check_dtype(vector, FLOATS)
    if vector.rank != 1:
        raise ShapeError(f"fsum takes a vector, not {x}")
    return vector.with_shape(())


# The sum rounded once, as `math.fsum`
fsum = Op(
    "fsum",
    _infer_fsum,
    lambda x: x.dtype.type(math.fsum(x)),
    Linear(lambda b, node, ct, i: b.broadcast_like(ct, node.operands[0])),
)


def _position_of(name: str, kernel: Callable[..., Any]) -> Op:
    def infer(x: Type, *, axis: int, keepdims: bool) -> TensorType:
        x = tensor_of(x)
        check_dtype(x, ALL)
        return _drop_axes(x, (axis,), keepdims).with_dtype(INT64)

    def run(x: Any, *, axis: int, keepdims: bool) -> Any:
        return kernel(x, axis=axis, keepdims=keepdims)

    return Op(name, infer, run, no_gradient(), raises=if_axis_unknown, batch=_batch_axis)


argmax = _position_of("argmax", np.argmax)
argmin = _position_of("argmin", np.argmin)


# Running sums, from either end
def _infer_cumsum(x: Type, *, axis: int, reverse: bool) -> TensorType:
    x = tensor_of(x)
    check_dtype(x, NUMERIC)
    check_axis(axis, len(x.dims))
    return x


def _kernel_cumsum(x: Any, *, axis: int, reverse: bool) -> Any:
    if not reverse:
        return np.cumsum(x, axis=axis, dtype=x.dtype)
    return np.flip(np.cumsum(np.flip(x, axis), axis=axis, dtype=x.dtype), axis)


def _transpose_cumsum(b: Any, node: Any, ct: Any, index: int) -> Any:
    return b.cumsum(ct, axis=node.attrs["axis"], reverse=not node.attrs["reverse"])


cumsum = Op(
    "cumsum",
    _infer_cumsum,
    _kernel_cumsum,
    Linear(_transpose_cumsum),
    is_speculatable=True,
    batch=_batch_axis,
)
