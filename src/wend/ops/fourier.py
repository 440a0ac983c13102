"""Discrete Fourier transforms along an axis.

All are linear. The matrix of the complex transform is symmetric, so it is its own transpose. The
transposes of the real ones are each other, with weights: a frequency of the half spectrum stands
for two, except the first one and, if the number of points is even, the last one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base.errors import ShapeError, TypeMismatchError
from wend.ir.dtypes import COMPLEXES, FLOATS, complex_of, real_of
from wend.ir.op import Linear, Op, Raises, Rounding
from wend.ir.types import Dim, TensorType, Type, fresh
from wend.ops import elementwise
from wend.ops.shapes import check_axis, check_dtype, check_scalar_index, tensor_of

_REALS = frozenset(dtype for dtype in FLOATS if dtype.itemsize >= 4)
# The norm with which the opposite real transform is the transpose
_TRANSPOSED = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _errors(node: Any) -> Raises:
    """Return NumPy's error for an axis without points, if only the run knows its size."""
    axis = node.attrs["axis"]
    values = (node.operands[0], node.results[0])
    return () if all(isinstance(x.type.dims[axis], int) for x in values) else (ValueError,)


def _check(x: Type, axis: int, dtypes: frozenset[np.dtype], norm: str) -> TensorType:
    x = tensor_of(x)
    check_dtype(x, dtypes)
    check_axis(axis, len(x.dims))
    if norm not in _TRANSPOSED:
        raise TypeMismatchError(f"there is no norm {norm!r}")
    return x


def _resized(x: TensorType, axis: int, size: Dim) -> tuple[Dim, ...]:
    return (*x.dims[:axis], size, *x.dims[axis + 1 :])


def _infer_fft(x: Type, *, axis: int, inverse: bool, norm: str) -> TensorType:
    return _check(x, axis, COMPLEXES, norm)


def _kernel_fft(x: Any, *, axis: int, inverse: bool, norm: Any) -> Any:
    return (np.fft.ifft if inverse else np.fft.fft)(x, axis=axis, norm=norm)


# The transform of complex numbers, or its inverse
fft: Op = Op(
    "fft",
    _infer_fft,
    _kernel_fft,
    Linear(lambda b, node, ct, index: b.emit(fft, ct, **node.attrs)),
    raises=_errors,
    rounding=Rounding.OF_FLOATS,
)


def _weighted(b: Any, x: Any, points: Dim | Any, axis: int, weight: float) -> Any:
    """Multiply the frequencies that stand for two by a weight; `points`: the size, or its value."""
    count, rank = x.type.dims[axis], len(x.type.dims)
    k = b.iota(count if isinstance(count, int) else b.size_of(x, axis))
    n = b.broadcast_like(b.integer(points) if isinstance(points, int) else points, k)
    is_first, is_last = b.eq(k, b.zeros_like(k)), b.eq(b.add(k, k), n)
    is_single = b.emit(elementwise.bit_or, is_first, is_last)
    ones = b.broadcast_like(b.constant(1, real_of(x.type.dtype)), k)
    weights = b.select(is_single, ones, b.scale(ones, weight))
    weights = b.complex(weights, b.zeros_like(weights))
    column = b.insert_axes(weights, axes=tuple(range(1, rank - axis)))
    return b.mul(x, b.broadcast_like(column, x))


def _infer_rfft(x: Type, *, axis: int, norm: str) -> TensorType:
    x = _check(x, axis, _REALS, norm)
    size = x.dims[axis]
    count = size // 2 + 1 if isinstance(size, int) else fresh()
    return TensorType(complex_of(x.dtype), _resized(x, axis, count))


def _transpose_rfft(b: Any, node: Any, ct: Any, index: int) -> Any:
    (x,), axis = node.operands, node.attrs["axis"]
    size = x.type.dims[axis]
    run_size = () if isinstance(size, int) else (b.size_of(x, axis),)
    half = _weighted(b, b.conj(ct), run_size[0] if run_size else size, axis, 0.5)
    norm = _TRANSPOSED[node.attrs["norm"]]
    return b.emit(irfft, half, *run_size, axis=axis, norm=norm, size=size)


# The half of the spectrum of real numbers that determines it
rfft: Op = Op(
    "rfft",
    _infer_rfft,
    lambda x, *, axis, norm: np.fft.rfft(x, axis=axis, norm=norm),
    Linear(_transpose_rfft),
    raises=_errors,
    rounding=Rounding.OF_FLOATS,
)


def _infer_irfft(x: Type, *run_size: Type, axis: int, norm: str, size: Dim) -> TensorType:
    x = _check(x, axis, COMPLEXES, norm)
    count = x.dims[axis]
    for type in run_size:
        check_scalar_index(type, "the number of points")
    if isinstance(size, int) and isinstance(count, int) and count != size // 2 + 1:
        raise ShapeError(f"the spectrum of {size} points has {size // 2 + 1}, found {x}")
    return TensorType(real_of(x.dtype), _resized(x, axis, size))


def _kernel_irfft(x: Any, *run_size: Any, axis: int, norm: Any, size: Any) -> Any:
    return np.fft.irfft(x, int(run_size[0] if run_size else size), axis, norm)


def _transpose_irfft(b: Any, node: Any, ct: Any, index: int) -> Any:
    x, *run_size = node.operands
    axis, norm = node.attrs["axis"], _TRANSPOSED[node.attrs["norm"]]
    spectrum = b.refine(b.emit(rfft, ct, axis=axis, norm=norm), x.type)
    points = run_size[0] if run_size else node.attrs["size"]
    return _weighted(b, b.conj(spectrum), points, axis, 2)


# Real numbers from the half of their spectrum; the second operand is their number, which `size`
# declares if it is static
irfft = Op(
    "irfft",
    _infer_irfft,
    _kernel_irfft,
    Linear(_transpose_irfft, operands=(0,)),
    raises=_errors,
    rounding=Rounding.OF_FLOATS,
)
