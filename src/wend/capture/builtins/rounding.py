"""`round(x, digits)` of a Python number: to the nearest decimal, ties by the exact value."""

from __future__ import annotations

from typing import Any

from wend.eager.promotion import tensor_type
from wend.numpy import elementwise as ew
from wend.numpy import shaping
from wend.trace.arrays.tracer import Tracer

_DEKKER_SPLITTER = 2.0**27 + 1
_MIN_INTEGRAL_FLOAT = 2.0**52  # floats from here on have no fractional digits
_MAX_EXACT_POWER_OF_10 = 22  # powers of ten up to this one are exact floats

_MIN_DIGITS, _MAX_DIGITS = -308, 323  # beyond, Python's `round` gives zero, or the number itself


def rounded(x: Any, digits: int) -> Any:
    """Return a traced Python number rounded to `digits` decimal places."""
    is_whole = tensor_type(x).dtype.kind in "bi"
    result = _round_int(x, digits) if is_whole else _round_float(x, digits)
    if not isinstance(result, Tracer):
        return result
    return type(result)(result.value, result.recording, weak=True)


def _round_int(x: Any, digits: int) -> Any:
    x = shaping.astype(x, int)
    if digits >= 0:
        return x
    if digits < -18:
        return x * 0
    unit = 10**-digits
    below = x // unit
    twice = 2 * (x - below * unit)
    is_up = ew.logical_or(twice > unit, ew.logical_and(ew.equal(twice, unit), below % 2 == 1))
    return (below + shaping.astype(is_up, int)) * unit


def _round_float(x: Any, digits: int) -> Any:
    if digits > _MAX_DIGITS:
        return x
    if digits < _MIN_DIGITS:
        return ew.where(ew.isfinite(x), x * 0.0, x)
    if abs(digits) > _MAX_EXACT_POWER_OF_10:
        return _round_by_inexact_power(x, digits)
    unit = 10.0 ** abs(digits)
    if digits < 0:
        nearest = ew.rint(x / unit)
        result = nearest * unit
    else:
        scaled = x * unit
        nearest = ew.rint(scaled)
        # If the product is halfway, its rounding error says on which side it is.
        error = _product_error(x, unit, scaled)
        low = ew.floor(scaled)
        is_half = ew.equal(scaled - low, 0.5)
        nearest = ew.where(ew.logical_and(is_half, error > 0), low + 1, nearest)
        nearest = ew.where(ew.logical_and(is_half, error < 0), low, nearest)
        nearest = ew.where(ew.equal(nearest, 0), ew.where(x < 0, -0.0, 0.0 * nearest), nearest)
        result = ew.where(ew.absolute(scaled) < _MIN_INTEGRAL_FLOAT, nearest / unit, x)
    return ew.where(ew.isfinite(x), result, x)


def _round_by_inexact_power(x: Any, digits: int) -> Any:
    if digits < 0:
        unit = 10.0**-digits
        return ew.rint(x / unit) * unit
    unit, factor = 10.0 ** min(digits, 300), 10.0 ** max(digits - 300, 0)
    scaled = x * unit * factor
    return ew.where(ew.absolute(scaled) < _MIN_INTEGRAL_FLOAT, ew.rint(scaled) / unit / factor, x)


def _product_error(x: Any, y: float, product: Any) -> Any:
    """Return the rounding error of `x * y` (Dekker, 1971)."""
    x_high, x_low = _split(x)
    y_high, y_low = _split(y)
    residual = product - x_high * y_high - x_low * y_high - x_high * y_low
    return x_low * y_low - residual


def _split(x: Any) -> tuple[Any, Any]:
    """Return a float as the sum of two with half as many bits."""
    scaled = _DEKKER_SPLITTER * x
    high = scaled - (scaled - x)
    return high, x - high
