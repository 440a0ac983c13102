"""Products of arrays: matrix products of any rank."""

from __future__ import annotations

import functools
import math
from typing import Any, TypeAlias

import numpy as np

from wend.base.errors import ShapeError, TypeMismatchError
from wend.ir.dtypes import NUMERIC
from wend.ir.op import Linear, Op, Rounding
from wend.ir.types import TensorType, Type, fresh
from wend.ops.raising import if_sizes_unknown
from wend.ops.shapes import check_dtype, same_dim, tensor_of

Axes: TypeAlias = tuple[int, ...]


def _free(rank: int, *used: Axes) -> Axes:
    return tuple(k for k in range(rank) if not any(k in axes for axes in used))


def _infer_dot_general(
    x: Type, y: Type, *, contract: tuple[Axes, Axes], batch: tuple[Axes, Axes]
) -> TensorType:
    x, y = tensor_of(x), tensor_of(y)
    if x.dtype != y.dtype:
        raise TypeMismatchError(f"operands must have one dtype, found {x} and {y}")
    for x_axis, y_axis in zip(contract[0] + batch[0], contract[1] + batch[1], strict=True):
        same_dim(x.dims[x_axis], y.dims[y_axis], f"axes {x_axis} and {y_axis} of {x} and {y}")
    batch_dims = [x.dims[k] for k in batch[0]]
    x_free = [x.dims[k] for k in _free(len(x.dims), contract[0], batch[0])]
    y_free = [y.dims[k] for k in _free(len(y.dims), contract[1], batch[1])]
    return x.with_shape((*batch_dims, *x_free, *y_free))


@functools.lru_cache(maxsize=256)
def _orders(
    ranks: tuple[int, int], contract: tuple[Axes, Axes], batch: tuple[Axes, Axes]
) -> tuple[Axes, Axes]:
    """The axes of both operands as [batch, free, contracted] and [batch, contracted, free]."""
    x_free, y_free = (_free(ranks[k], contract[k], batch[k]) for k in (0, 1))
    return batch[0] + x_free + contract[0], batch[1] + contract[1] + y_free


def _kernel_dot_general(
    x: Any, y: Any, *, contract: tuple[Axes, Axes], batch: tuple[Axes, Axes]
) -> Any:
    # One (batched) matrix product: [batch, free, contracted] @ [batch, contracted, free].
    x, y = np.asarray(x), np.asarray(y)
    orders = _orders((x.ndim, y.ndim), contract, batch)
    left, right = x.transpose(orders[0]), y.transpose(orders[1])
    batch_rank, contracted_rank = len(batch[0]), len(contract[0])
    batch_shape, rows = (
        left.shape[:batch_rank],
        left.shape[batch_rank : left.ndim - contracted_rank],
    )
    depth, columns = (
        left.shape[left.ndim - contracted_rank :],
        right.shape[batch_rank + contracted_rank :],
    )
    if right.shape[: batch_rank + contracted_rank] != batch_shape + depth:
        raise _not_aligned(x, y, contract, batch)
    size = math.prod(depth)
    left = left.reshape(*batch_shape, math.prod(rows), size)
    right = right.reshape(*batch_shape, size, math.prod(columns))
    return np.matmul(left, right).reshape(batch_shape + rows + columns)[()]


def _not_aligned(
    x: np.ndarray, y: np.ndarray, contract: tuple[Axes, Axes], batch: tuple[Axes, Axes]
) -> ShapeError:
    pairs = zip(contract[0] + batch[0], contract[1] + batch[1], strict=True)
    a, b = next((a, b) for a, b in pairs if x.shape[a] != y.shape[b])
    return ShapeError(
        f"shapes {x.shape} and {y.shape} not aligned: "
        f"{x.shape[a]} (dim {a}) != {y.shape[b]} (dim {b})"
    )


def _transpose_dot_general(b: Any, node: Any, ct: Any, index: int) -> Any:
    # d(operand) = ct · other, contracted over the other's free axes, then transposed.
    k, other_k = index, 1 - index
    operand, other = node.operands[k], node.operands[other_k]
    contract, batch = node.attrs["contract"], node.attrs["batch"]
    operand_free = _free(len(operand.type.dims), contract[k], batch[k])
    other_free = _free(len(other.type.dims), contract[other_k], batch[other_k])
    batch_axes = tuple(range(len(batch[0])))
    start = len(batch_axes) + (len(operand_free) if index == 0 else 0)
    ct_axes = tuple(range(start, start + len(other_free)))
    product = b.dot_general(
        ct, other, contract=(ct_axes, other_free), batch=(batch_axes, batch[other_k])
    )
    # The product's axes: batch, the operand's free axes, then the contracted ones in the other's
    # order.
    other_contracted = _free(len(other.type.dims), other_free, batch[other_k])
    pairs = dict(zip(contract[other_k], contract[k], strict=True))
    order = (*batch[k], *operand_free, *(pairs[axis] for axis in other_contracted))
    return b.transpose(product, perm=tuple(np.argsort(order).tolist()))


def _batch_dot_general(c: Any, node: Any, operands: Any, flags: Any) -> Any:
    (x, y), contract, batch = operands, node.attrs["contract"], node.attrs["batch"]
    moved = [
        [tuple(axis + flag for axis in pair[k]) for k, flag in enumerate(flags)]
        for pair in (contract, batch)
    ]
    contract, batch = map(tuple, moved)
    if all(flags):
        return c.emit(node, [x, y], contract=contract, batch=((0, *batch[0]), (0, *batch[1])))
    batch_rank = len(batch[0])
    if not flags[0] and not batch_rank:
        # The elements lead the free axes of what comes first; then follow those of y.
        product = c.emit(node, [y, x], contract=contract[::-1], batch=batch)
        y_free = len(y.tensor.dims) - 1 - len(contract[1])
        x_free = len(x.tensor.dims) - len(contract[0])
        first, then = range(1, 1 + y_free), range(1 + y_free, 1 + y_free + x_free)
        return c.b.transpose(product, perm=(0, *then, *first))
    product = c.emit(node, [x, y], contract=contract, batch=batch)
    x_free = len(x.tensor.dims) - batch_rank - len(contract[0])
    place = batch_rank if flags[0] else batch_rank + x_free
    rank = len(product.tensor.dims)
    return c.b.transpose(product, perm=(place, *(k for k in range(rank) if k != place)))


# contract and batch pair axes of x with axes of y; the result is [batch, free of x, free of y]
dot_general = Op(
    "dot_general",
    _infer_dot_general,
    _kernel_dot_general,
    Linear(_transpose_dot_general, jointly=False),
    raises=if_sizes_unknown,
    is_speculatable=True,
    rounding=Rounding.OF_FLOATS,
    batch=_batch_dot_general,
)


def _infer_convolve(x: Type, y: Type) -> TensorType:
    x, y = tensor_of(x), tensor_of(y)
    check_dtype(x, NUMERIC)
    if x.dtype != y.dtype or len(x.dims) != 1 or len(y.dims) != 1:
        raise ShapeError(f"convolves two vectors of one dtype, found {x} and {y}")
    x_size, y_size = x.dims[0], y.dims[0]
    if x_size == 0 or y_size == 0:
        raise ShapeError(f"cannot convolve an empty vector: {x} and {y}")
    if isinstance(x_size, int) and isinstance(y_size, int):
        return x.with_shape((x_size + y_size - 1,))
    return x.with_shape((fresh(),))


def _transpose_convolve(b: Any, node: Any, ct: Any, index: int) -> Any:
    # The correlation with the other: convolve with its reverse, keep where they overlap fully.
    operand, other = node.operands[index], node.operands[1 - index]
    backwards = b.slice(other, slices=((None, None, -1),))
    start = b.sub(b.size_of(other, 0), b.integer(1))
    stop = b.add(start, b.size_of(operand, 0))
    whole = b.emit(convolve, ct, backwards)
    return b.narrow(whole, start, stop, axis=0, size=operand.type.dims[0])


# z[k] = Σ x[i]·y[k−i], the full convolution
convolve = Op(
    "convolve",
    _infer_convolve,
    lambda x, y: np.convolve(x, y).astype(x.dtype, copy=False),
    Linear(_transpose_convolve, jointly=False),
    rounding=Rounding.OF_FLOATS,
)
