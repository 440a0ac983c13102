"""Operations that make arrays from nothing: constants and ranges."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base.errors import TypeMismatchError
from wend.ir.dtypes import is_supported
from wend.ir.op import Op, no_gradient
from wend.ir.types import TensorType, Type, fresh
from wend.ops.shapes import check_scalar_index


def _infer_constant(*, value: np.ndarray) -> TensorType:
    if not is_supported(value.dtype):
        raise TypeMismatchError(f"arrays of dtype {value.dtype} cannot be used in a graph")
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
