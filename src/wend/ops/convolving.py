"""The convolution of two vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base.errors import ShapeError
from wend.ir.dtypes import NUMERIC
from wend.ir.op import Linear, Op
from wend.ir.types import TensorType, Type, fresh
from wend.ops.shapes import check_dtype, tensor_of


def _infer_convolve(x: Type, y: Type) -> TensorType:
    x, y = tensor_of(x), tensor_of(y)
    check_dtype(x, NUMERIC)
    if x.dtype != y.dtype or len(x.dims) != 1 or len(y.dims) != 1:
        raise ShapeError(f"convolves two vectors of one dtype, found {x} and {y}")
    mine, theirs = x.dims[0], y.dims[0]
    if mine == 0 or theirs == 0:
        raise ShapeError(f"cannot convolve an empty vector: {x} and {y}")
    if isinstance(mine, int) and isinstance(theirs, int):
        return x.with_shape((mine + theirs - 1,))
    return x.with_shape((fresh(),))


def _transpose_convolve(b: Any, node: Any, ct: Any, index: int) -> Any:
    # The correlation with the other: a convolution with it backwards, cut to where all overlaps.
    operand, other = node.operands[index], node.operands[1 - index]
    backwards = b.slice(other, slices=((None, None, -1),))
    start = b.sub(b.size_of(other, 0), b.integer(1))
    stop = b.add(start, b.size_of(operand, 0))
    whole = b.emit(convolve, ct, backwards)
    return b.narrow(whole, start, stop, axis=0, size=operand.type.dims[0])


# z[k] = Σ x[i]·y[k−i], for every k where anything overlaps
convolve = Op(
    "convolve",
    _infer_convolve,
    lambda x, y: np.convolve(x, y).astype(x.dtype, copy=False),
    Linear(_transpose_convolve, jointly=False),
)
