"""`wend.numpy.fft`: discrete Fourier transforms."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wend.eager.dispatch import Staged, apply, is_staged, recorder
from wend.eager.promotion import cast, tensor_type
from wend.ir.dtypes import complex_of, real_of
from wend.ir.op import Op
from wend.numpy import elementwise as ew
from wend.numpy import shaping, updating
from wend.numpy.operands import check_nonnegative, dtype_of, slice_axis, strong
from wend.numpy.public import implements
from wend.numpy.ranges import arange
from wend.numpy.rearranging import roll
from wend.ops import fourier as ops

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

_OPPOSITE = {"backward": "forward", None: "forward", "ortho": "ortho", "forward": "backward"}


def _opposite(norm: Any) -> str:
    """Return the norm that a transform in the other direction has."""
    try:
        return _OPPOSITE[norm]
    except KeyError:
        text = f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".'
        raise ValueError(text) from None


def _prepared(a: Any, n: Any, axis: Any, norm: Any, *, count: Any = None) -> tuple[Any, int, str]:
    """Return an array with n points along an axis, the axis, and the norm, checked.

    Missing points are 0. Of n points of a result, the array has `count`.
    """
    if not isinstance(n, Staged) and n < 1:
        raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
    norm = _opposite(_opposite(norm))
    axis = normalize_axis_index(axis, shaping.rank_of(a))
    if not isinstance(n, Staged):
        n = operator.index(n)
    return _resize(a, n if count is None else count, axis), axis, norm


def _resize(a: Any, n: Any, axis: int) -> Any:
    """Return an array with n points along an axis: the first ones, and zeros after them."""
    sizes = shaping.shape(a)
    size = sizes[axis]
    if isinstance(n, int) and isinstance(size, int):
        if n <= size:
            return a if n == size else slice_axis(a, axis, slice(None, n))
        shape = (*sizes[:axis], n - size, *sizes[axis + 1 :])
        zeros = shaping.new_full(cast(0, dtype_of(a)), shape)
        return shaping.concatenate([a, zeros], axis=axis)
    current = recorder.get()
    if current is not None and current.size_of(n) == tensor_type(a).dims[axis]:
        return a
    zeros = shaping.new_full(cast(0, dtype_of(a)), (*sizes[:axis], n, *sizes[axis + 1 :]))
    first = (slice(None),) * axis + (slice(None, ew.minimum(n, size)),)
    return updating.set_at(zeros, first, a[first])


def _transform(op: Op, a: Any, dtype: Any, norm: str, unscaled: str, **attrs: Any) -> Any:
    """Apply a transform to an array of the precision of a dtype, rounding as NumPy does.

    It computes in double precision where there is no factor (which it passes as a Python integer)
    and where there is no loop for the operand. The factor has the precision of the operand.

    Args:
        op: the transform.
        a: the array.
        dtype: what the operand is cast to.
        norm: the norm.
        unscaled: the norm without a factor.
        **attrs: the attributes of the operation, and the number of `points`.
    """
    a_dtype, points = dtype_of(a), attrs.pop("points")
    double = np.dtype(np.complex128 if dtype.kind == "c" else np.float64)
    is_scaled = norm != unscaled
    run_points = (shaping.as_size(points),) if op is ops.irfft and is_staged(points) else ()
    if not is_scaled or dtype in (double, a_dtype):
        a = cast(a, dtype if is_scaled else double)
        return apply(op, a, *run_points, norm=norm, **attrs)
    number = cast(points, a_dtype)
    factor = ew.reciprocal(ew.sqrt(number) if norm == "ortho" else number)
    result = apply(op, cast(a, double), *run_points, norm=unscaled, **attrs)
    return result * cast(factor, np.dtype(np.float64))


def _complex(a: Any, n: Any, axis: Any, norm: Any, inverse: bool) -> Any:
    a = strong(a)
    n = shaping.shape(a)[axis] if n is None else n
    a, axis, norm = _prepared(a, n, axis, norm)
    dtype = dtype_of(a)
    dtype = np.result_type(dtype, np.complex64 if dtype == np.float16 else 1j)
    unscaled = "forward" if inverse else "backward"
    result = _transform(ops.fft, a, dtype, norm, unscaled, axis=axis, points=n, inverse=inverse)
    return cast(result, dtype)


@implements(np.fft.fft)
def fft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None) -> Any:
    """Compute the one-dimensional discrete Fourier transform; see `numpy.fft.fft`."""
    return _complex(a, n, axis, norm, inverse=False)


@implements(np.fft.ifft)
def ifft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None) -> Any:
    """Compute the inverse of the one-dimensional transform; see `numpy.fft.ifft`."""
    return _complex(a, n, axis, norm, inverse=True)


@implements(np.fft.rfft)
def rfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None) -> Any:
    """Compute the one-dimensional transform of real numbers; see `numpy.fft.rfft`."""
    a = strong(a)
    n = shaping.shape(a)[axis] if n is None else n
    a, axis, norm = _prepared(a, n, axis, norm)
    dtype = dtype_of(a)
    if dtype.kind == "c":
        np.fft.rfft(np.ones(1, dtype))  # NumPy's error
    dtype = np.dtype(np.float32) if dtype == np.float16 else np.result_type(dtype, 1.0)
    result = _transform(ops.rfft, a, dtype, norm, "backward", axis=axis, points=n)
    return cast(result, complex_of(dtype))


@implements(np.fft.irfft)
def irfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None) -> Any:
    """Compute the inverse of `rfft`; see `numpy.fft.irfft`."""
    a = strong(a)
    n = (shaping.shape(a)[axis] - 1) * 2 if n is None else n
    a, axis, norm = _prepared(a, n, axis, norm, count=n // 2 + 1)
    dtype = np.result_type(real_of(dtype_of(a)), 1.0)
    size = shaping.dim_of_size(n)
    result = _transform(
        ops.irfft, a, complex_of(dtype), norm, "forward", axis=axis, points=n, size=size
    )
    return cast(result, dtype)


@implements(np.fft.hfft)
def hfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None, out: Any = None) -> Any:
    """Compute the transform of a signal with Hermitian symmetry; see `numpy.fft.hfft`."""
    del out  # as NumPy, which does not use it
    a = strong(a)
    n = (shaping.shape(a)[axis] - 1) * 2 if n is None else n
    return irfft(ew.conjugate(a), n, axis, _opposite(norm))


@implements(np.fft.ihfft)
def ihfft(a: Any, n: Any = None, axis: int = -1, norm: str | None = None) -> Any:
    """Compute the inverse of `hfft`; see `numpy.fft.ihfft`."""
    n = shaping.shape(strong(a))[axis] if n is None else n
    return ew.conjugate(rfft(a, n, axis, _opposite(norm)))


def _plan(a: Any, s: Any, axes: Any, *, inverse_real: bool = False) -> tuple[list[Any], list[int]]:
    """Return the numbers of points and the axes of an n-dimensional transform."""
    shape = shaping.shape(a)
    sizes: list[Any]
    if s is not None:
        sizes = list(s)
    else:
        sizes = list(shape) if axes is None else [shape[axis] for axis in axes]
    axes = list(range(-len(sizes), 0)) if axes is None else list(axes)
    if len(sizes) != len(axes):
        raise ValueError("Shape and axes have different lengths.")
    if inverse_real and s is None:
        sizes[-1] = (shape[axes[-1]] - 1) * 2
    pairs = zip(sizes, axes, strict=True)
    return [shape[k] if isinstance(n, int) and n == -1 else n for n, k in pairs], axes


def _transform_all(a: Any, s: Any, axes: Any, norm: Any, transform: Any) -> Any:
    a = strong(a)
    sizes, axes = _plan(a, s, axes)
    for n, axis in zip(reversed(sizes), reversed(axes), strict=True):
        a = transform(a, n, axis, norm)
    return a


Axes = Sequence[int] | None


@implements(np.fft.fftn)
def fftn(a: Any, s: Any = None, axes: Axes = None, norm: str | None = None) -> Any:
    """Compute the n-dimensional discrete Fourier transform; see `numpy.fft.fftn`."""
    return _transform_all(a, s, axes, norm, fft)


@implements(np.fft.ifftn)
def ifftn(a: Any, s: Any = None, axes: Axes = None, norm: str | None = None) -> Any:
    """Compute the inverse of the n-dimensional transform; see `numpy.fft.ifftn`."""
    return _transform_all(a, s, axes, norm, ifft)


@implements(np.fft.fft2)
def fft2(a: Any, s: Any = None, axes: Axes = (-2, -1), norm: str | None = None) -> Any:
    """Compute the two-dimensional discrete Fourier transform; see `numpy.fft.fft2`."""
    return _transform_all(a, s, axes, norm, fft)


@implements(np.fft.ifft2)
def ifft2(a: Any, s: Any = None, axes: Axes = (-2, -1), norm: str | None = None) -> Any:
    """Compute the inverse of the two-dimensional transform; see `numpy.fft.ifft2`."""
    return _transform_all(a, s, axes, norm, ifft)


@implements(np.fft.rfftn)
def rfftn(a: Any, s: Any = None, axes: Axes = None, norm: str | None = None) -> Any:
    """Compute the n-dimensional transform of real numbers; see `numpy.fft.rfftn`."""
    a = strong(a)
    sizes, axes = _plan(a, s, axes)
    a = rfft(a, sizes[-1], axes[-1], norm)
    return _transform_all(a, sizes[:-1], axes[:-1], norm, fft)


@implements(np.fft.irfftn)
def irfftn(a: Any, s: Any = None, axes: Axes = None, norm: str | None = None) -> Any:
    """Compute the inverse of `rfftn`; see `numpy.fft.irfftn`."""
    a = strong(a)
    sizes, axes = _plan(a, s, axes, inverse_real=True)
    for n, axis in zip(sizes[:-1], axes[:-1], strict=True):
        a = ifft(a, n, axis, norm)
    return irfft(a, sizes[-1], axes[-1], norm)


@implements(np.fft.rfft2)
def rfft2(a: Any, s: Any = None, axes: Axes = (-2, -1), norm: str | None = None) -> Any:
    """Compute the two-dimensional transform of real numbers; see `numpy.fft.rfft2`."""
    return rfftn(a, s, axes, norm)


@implements(np.fft.irfft2)
def irfft2(
    a: Any, s: Any = None, axes: Axes = (-2, -1), norm: str | None = None, out: Any = None
) -> Any:
    """Compute the inverse of `rfft2`; see `numpy.fft.irfft2`."""
    del out  # as NumPy, which does not use it
    return irfftn(a, s, axes, norm)


def _shift(x: Any, axes: Any, sign: int) -> Any:
    x = strong(x)
    sizes = shaping.shape(x)
    if axes is None:
        axes = tuple(range(len(sizes)))
    else:
        axes = (operator.index(axes),) if shaping.is_single_number(axes) else tuple(axes)
    return roll(x, tuple(sign * (sizes[axis] // 2) for axis in axes), tuple(axes))


@implements(np.fft.fftshift)
def fftshift(x: Any, axes: Any = None) -> Any:
    """Move the zero frequency to the middle of the spectrum; see `numpy.fft.fftshift`."""
    return _shift(x, axes, 1)


@implements(np.fft.ifftshift)
def ifftshift(x: Any, axes: Any = None) -> Any:
    """Undo `fftshift`; see `numpy.fft.ifftshift`."""
    # −(n // 2), not (−n) // 2
    return _shift(x, axes, -1)


def _check_count(n: Any) -> Any:
    if dtype_of(n).kind not in "iu" or shaping.rank_of(n):
        raise ValueError("n should be an integer")
    return check_nonnegative(n, "negative dimensions are not allowed")


@implements(np.fft.fftfreq)
def fftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Any:
    """Return the sample frequencies of `fft`; see `numpy.fft.fftfreq`."""
    shaping.check_device(device)
    n = _check_count(n)
    k = arange(n)
    return ew.where(k < (n - 1) // 2 + 1, k, k - n) * (1.0 / (n * d))


@implements(np.fft.rfftfreq)
def rfftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Any:
    """Return the sample frequencies of `rfft`; see `numpy.fft.rfftfreq`."""
    shaping.check_device(device)
    n = _check_count(n)
    return arange(n // 2 + 1) * (1.0 / (n * d))
