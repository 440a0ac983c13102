"""More elementwise functions: signs, remainders, angles, extremes, rounding."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from wend.eager.dispatch import apply
from wend.eager.promotion import cast, is_weak, tensor_type
from wend.ir.dtypes import FLOAT64, INT64, real_of
from wend.numpy import creating
from wend.numpy import elementwise as ew
from wend.numpy.composed import composed
from wend.numpy.operands import dtype_of, python_bool, staged
from wend.numpy.public import implements
from wend.numpy.ufuncs import copy_if_operand
from wend.ops import elementwise
from wend.ops import elementwise as ops

# Signs
signbit = composed(np.signbit, lambda x: apply(elementwise.signbit, x))
copysign = composed(np.copysign, lambda x, y: ew.where(ew.not_equal(signbit(x), signbit(y)), -x, x))
fabs = composed(np.fabs, ew.absolute)
nextafter = composed(
    np.nextafter, lambda x, y: apply(elementwise.nextafter, x, y), "\n\n    It has no derivative."
)


def _heaviside(x: Any, y: Any) -> Any:
    step = ew.where(x < 0, 0, ew.where(x == 0, y, 1))
    return ew.where(ew.isnan(x), x, step)


heaviside = composed(np.heaviside, _heaviside)


# Remainders and divisors
def _fmod(x: Any, y: Any) -> Any:
    return apply(elementwise.fmod if dtype_of(x).kind == "f" else elementwise.fmod_int, x, y)


def _modf(x: Any) -> tuple[Any, Any]:
    whole = ew.trunc(x)
    fraction = ew.where(ew.isinf(x), 0, x - whole)
    return copysign(fraction, x), whole


fmod = composed(np.fmod, _fmod)
modf = composed(np.modf, _modf)
divmod = composed(np.divmod, lambda x, y: (ew.floor_divide(x, y), ew.remainder(x, y)))
gcd = composed(np.gcd, lambda x, y: apply(elementwise.gcd, x, y))
lcm = composed(np.lcm, lambda x, y: apply(elementwise.lcm, x, y))
bitwise_count = composed(np.bitwise_count, lambda x: apply(elementwise.bit_count, x))


# Angles
deg2rad = composed(np.deg2rad, lambda x: x * (math.pi / 180))
radians = composed(np.radians, lambda x: x * (math.pi / 180))
rad2deg = composed(np.rad2deg, lambda x: x * (180 / math.pi))
degrees = composed(np.degrees, lambda x: x * (180 / math.pi))


@implements(np.angle)
def angle(z: Any, deg: bool = False) -> Any:
    """Return the angle of the complex argument; see `numpy.angle`."""
    z = staged(z)
    parts = (ew.imag(z), ew.real(z)) if dtype_of(z).kind == "c" else (0, z)
    angles = ew.arctan2(*parts)
    return angles * (180 / math.pi) if deg else angles


# Below this |πx|, sinc is a Taylor series in (πx)², so that its derivatives are accurate at 0.
_MAX_SERIES_ANGLE = 1.0
_SINC_TAYLOR = [(-1) ** k / math.factorial(2 * k + 1) for k in range(12)]


@implements(np.sinc)
def sinc(x: Any) -> Any:
    """Return the normalized sinc function; see `numpy.sinc`.

    Near 0 it is computed by its Taylor series, so its derivatives are correct there.
    """
    x = staged(x)
    y = x * math.pi
    y = y if dtype_of(y).kind in "fc" else cast(y, np.dtype(np.float64))
    is_small = ew.absolute(y) < _MAX_SERIES_ANGLE
    small = ew.where(is_small, y, 0)  # the square of another could be infinite
    square = small * small
    series: Any = _SINC_TAYLOR[-1]
    for factor in _SINC_TAYLOR[-2::-1]:
        series = series * square + factor
    divisor = ew.where(is_small, 1, y)
    return ew.where(is_small, series, ew.sin(divisor) / divisor)


# Extremes that ignore NaN, exponents
def _ignoring_nan(choose: Callable[..., Any]) -> Callable[..., Any]:
    def compute(x: Any, y: Any) -> Any:
        if dtype_of(x).kind not in "fc":
            return choose(x, y)
        return ew.where(ew.isnan(y), x, ew.where(ew.isnan(x), y, choose(x, y)))

    return compute


fmax = composed(np.fmax, _ignoring_nan(ew.maximum))
fmin = composed(np.fmin, _ignoring_nan(ew.minimum))
float_power = composed(np.float_power, ew.power)


def _ldexp(x: Any, n: Any) -> Any:
    # Narrow floats are scaled in float64, and float64 in three steps, none of which overflows
    # early; in one step where that is exact, so that the result is rounded once.
    exponent = ew.clip(cast(n, INT64), -2200, 2200)
    third = ew.where(ew.absolute(exponent) <= 1000, 0, exponent // 3)
    result = cast(x, FLOAT64)
    for part in (third, third, exponent - 2 * third):
        result = result * ew.exp2(cast(part, FLOAT64))
    return result


ldexp = composed(np.ldexp, _ldexp)


def _frexp(x: Any) -> tuple[Any, Any]:
    """Return mantissas of magnitude in [0.5, 1), and exponents of 2."""
    dtype, x = dtype_of(x), cast(x, FLOAT64)
    is_regular = ew.logical_and(x != 0, ew.isfinite(x))
    is_tiny = ew.absolute(x) < 2.0**-1000  # the power that scales it would overflow
    scaled = ew.where(is_tiny, x * 2.0**200, x)
    magnitude = ew.where(is_regular, ew.absolute(scaled), 1.0)
    exponent = ew.floor(ew.log2(magnitude)) + 1.0
    mantissa = magnitude * ew.exp2(-exponent)
    # The logarithm may be off by one at powers of 2.
    exponent = exponent + ew.where(mantissa >= 1.0, 1.0, ew.where(mantissa < 0.5, -1.0, 0.0))
    mantissa = ew.where(is_regular, scaled * ew.exp2(-exponent), x)
    exponent = ew.where(is_regular, exponent - ew.where(is_tiny, 200.0, 0.0), 0.0)
    return cast(mantissa, dtype), cast(exponent, np.dtype(np.int32))


frexp = composed(np.frexp, _frexp)


def _logaddexp2(x: Any, y: Any) -> Any:
    dtype = np.promote_types(dtype_of(x), np.float32)  # as NumPy computes with float16
    x, y = (cast(v, dtype) * math.log(2) for v in (x, y))
    return ew.logaddexp(x, y) * (1 / math.log(2))


logaddexp2 = composed(np.logaddexp2, _logaddexp2)


# Rounding and replacing
@implements(np.round, np.around)
def round(x: Any, decimals: int = 0) -> Any:
    """Round to the given number of decimals; see `numpy.round`.

    Its derivative is 0.
    """
    x, decimals = staged(x), operator.index(decimals)
    kind = dtype_of(x).kind
    if kind == "b":
        if decimals:
            raise TypeError("round of bools takes no decimals")
        return cast(x, np.dtype(np.float16))
    if kind in "iu":
        if decimals < 0:  # by way of floats, in NumPy, too
            return cast(round(cast(x, FLOAT64), decimals), dtype_of(x))
        return copy_if_operand(x, [x])
    if kind == "c":
        return apply(ops.complex, *(round(part(x), decimals) for part in (ew.real, ew.imag)))
    if decimals == 0:
        return apply(ops.rint, x)
    scale = 10.0 ** (decimals if decimals > 0 else -decimals)
    if decimals < 0:
        return apply(ops.rint, x / scale) * scale
    return apply(ops.rint, x * scale) / scale


around = round


@implements(np.fix)
def fix(x: Any) -> Any:
    """Round to nearest integer towards zero; see `numpy.fix`."""
    return ew.trunc(staged(x))


@implements(np.nan_to_num)
def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """Replace NaN with zero and infinity with large finite numbers; see `numpy.nan_to_num`.

    Replaced elements have derivative 0.
    """
    x = staged(x)
    dtype = tensor_type(x).dtype
    if dtype.kind not in "fc":
        return copy_if_operand(x, [x]) if copy else x
    limits = np.finfo(real_of(dtype))

    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf

    def replaced(part: Any) -> Any:
        result = ew.where(ew.isnan(part), nan, part)
        result = ew.where(part == np.inf, high, result)
        return ew.where(part == -np.inf, low, result)

    if dtype.kind == "f":
        result = replaced(x)
    else:
        result = apply(ops.complex, replaced(ew.real(x)), replaced(ew.imag(x)))
    if copy or tensor_type(x).shape == ():
        return result
    x[...] = result
    return x


def _check_real(x: Any) -> Any:
    x = staged(x)
    if dtype_of(x).kind == "c":
        what = f"This operation is not supported for {dtype_of(x)} values"
        raise TypeError(f"{what} because it would be ambiguous.")
    return x


@implements(np.isposinf)
def isposinf(x: Any) -> Any:
    """Test elementwise for positive infinity; see `numpy.isposinf`."""
    return ew.equal(_check_real(x), np.inf)


@implements(np.isneginf)
def isneginf(x: Any) -> Any:
    """Test elementwise for negative infinity; see `numpy.isneginf`."""
    return ew.equal(_check_real(x), -np.inf)


@implements(np.iscomplex)
def iscomplex(x: Any) -> Any:
    """Return a bool array, True where the element is complex; see `numpy.iscomplex`."""
    x = staged(x)
    imag = ew.imag(x) if dtype_of(x).kind == "c" else creating.zeros_like(x)
    return ew.not_equal(imag, 0)


@implements(np.isreal)
def isreal(x: Any) -> Any:
    """Return a bool array, True where the element is real; see `numpy.isreal`."""
    is_real = ew.logical_not(iscomplex(staged(x)))
    return python_bool(is_real) if is_weak(x) else is_real
