"""Operations that make arrays from nothing, or from scalars: constants, ranges, elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wend.base.errors import ShapeError
from wend.ir.dtypes import INTEGERS, is_supported, unsupported
from wend.ir.graph import Value
from wend.ir.op import Linear, Op, no_gradient
from wend.ir.types import TensorType, Type, fresh
from wend.ops import shaping
from wend.ops.shapes import check_dtype, check_same, check_scalar_index, tensor_of


def _infer_constant(*, value: np.ndarray) -> TensorType:
    if not is_supported(value.dtype):
        raise unsupported(value.dtype)
    return TensorType(value.dtype, value.shape)


# A 0-d result is a NumPy scalar, as NumPy's own are.
constant = Op("constant", _infer_constant, lambda *, value: value[()], no_gradient(), is_cheap=True)


def _infer_iota(*size: Type, dtype: np.dtype, length: int | None) -> TensorType:
    if length is not None:
        return TensorType(dtype, (length,))
    check_scalar_index(size[0], "the length")
    return TensorType(dtype, (fresh(),))


def _kernel_iota(*size: Any, dtype: np.dtype, length: int | None) -> Any:
    return np.arange(size[0] if length is None else length, dtype=dtype)


# 0, 1, … length−1; with length None the length is an operand
iota = Op("iota", _infer_iota, _kernel_iota, no_gradient(), is_cheap=True)


def _infer_nonnegative(x: Type, *, message: str) -> TensorType:
    check_dtype(tensor_of(x), INTEGERS, "what must not be negative")
    return tensor_of(x)


def _kernel_nonnegative(x: Any, *, message: str) -> Any:
    if np.any(np.less(x, 0)):
        raise ValueError(message.format(np.min(x)))
    return x


# Sizes or counts, unchanged; an error if one is negative, with the smallest for `{}`
nonnegative = Op(
    "nonnegative",
    _infer_nonnegative,
    _kernel_nonnegative,
    no_gradient(),
    raises=(ValueError,),
    error_attrs=("message",),
)


def _infer_from_elements(*xs: Type, shape: tuple[int, ...]) -> TensorType:
    if not xs or len(xs) != math.prod(shape):
        raise ShapeError(f"{len(xs)} numbers do not make an array of shape {shape}")
    first = check_same(xs)
    if first.dims:
        raise ShapeError(f"an array is made of numbers, found {first}")
    return first.with_shape(shape)


def _transpose_from_elements(b: Any, node: Any, ct: Any, index: int) -> Any:
    shape = node.attrs["shape"]
    if not shape:
        return ct
    return b.gather(ct, *(b.integer(int(k)) for k in np.unravel_index(index, shape)))


def _batch_from_elements(c: Any, node: Any, operands: Any, flags: Any) -> Any:
    columns = [c.b.insert_axes(x, axes=(1,)) for x in c.all(operands, flags)]
    row = columns[0] if len(columns) == 1 else c.b.concat(*columns, axis=1)
    return c.reshape(row, node.attrs["shape"])


# An array of scalars, in C order
from_elements = Op(
    "from_elements",
    _infer_from_elements,
    lambda *xs, shape: np.array(xs, np.result_type(xs[0])).reshape(shape)[()],
    Linear(_transpose_from_elements),
    batch=_batch_from_elements,
)


def is_constant(value: Value) -> bool:
    """Return whether a value is a constant of its graph."""
    return value.node is not None and value.node.op is constant


def is_zeros(value: Value) -> bool:
    """Return whether a value is an array that is zero in every run."""
    node = value.node
    if node is not None and node.op is shaping.broadcast_to:
        return is_zeros(node.operands[0])
    return node is not None and node.op is constant and not np.any(node.attrs["value"])
