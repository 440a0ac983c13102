"""Orders along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.ir.dtypes import ALL, INT64
from wend.ir.op import Explicit, Op, no_gradient
from wend.ir.types import TensorType, Type
from wend.ops.shapes import check_axis, check_dtype, tensor_of


def _infer(x: Type, *, axis: int) -> TensorType:
    check_axis(axis, len(tensor_of(x).dims))
    check_dtype(tensor_of(x), ALL)
    return tensor_of(x)


def _pull_back_sort(b: Any, node: Any, cts: Any) -> Any:
    (x,), axis = node.operands, node.attrs["axis"]
    return (b.add_along(b.zeros_like(x), cts[0], b.argsort(x, axis=axis), axis=axis),)


# NaN sorts last and equal elements keep their order, as in NumPy
sort = Op(
    "sort",
    _infer,
    lambda x, *, axis: np.sort(x, axis=axis, kind="stable"),
    Explicit(_pull_back_sort),
)
argsort = Op(
    "argsort",
    lambda x, *, axis: _infer(x, axis=axis).with_dtype(INT64),
    lambda x, *, axis: np.argsort(x, axis=axis, kind="stable"),
    no_gradient(),
)
