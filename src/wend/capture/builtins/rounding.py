"""`round(x, digits)` of a Python number: to the nearest decimal, ties by its exact value."""

from __future__ import annotations

from typing import Any

from wend.eager.promotion import tensor_type
from wend.numpy import elementwise as ew
from wend.numpy import shaping
from wend.trace.arrays.tracer import Tracer

_SPLIT = 2.0**27 + 1
_WHOLE = 2.0**52  # floats from here on have no digits behind the point
_EXACT_POWERS = 22  # powers of ten up to here are floats


def rounded(x: Any, digits: int) -> Any:
    """A traced Python number rounded to so many digits behind the point."""
    is_whole = tensor_type(x).dtype.kind in "bi"
    found = _whole(x, digits) if is_whole else _float(x, digits)
    if not isinstance(found, Tracer):
        return found
    return type(found)(found.value, found.recording, weak=True)


def _whole(x: Any, digits: int) -> Any:
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


def _float(x: Any, digits: int) -> Any:
    if digits > _EXACT_POWERS or digits < -_EXACT_POWERS:
        return ew.rint(x * 10.0**digits) / 10.0**digits
    unit = 10.0 ** abs(digits)
    if digits < 0:
        near = ew.rint(x / unit)
        found = near * unit
    else:
        scaled = x * unit
        near = ew.rint(scaled)
        # Where the product is half way between, what was rounded off it says to which side.
        error = _product_error(x, unit, scaled)
        low = ew.floor(scaled)
        is_half = ew.equal(scaled - low, 0.5)
        near = ew.where(ew.logical_and(is_half, error > 0), low + 1, near)
        near = ew.where(ew.logical_and(is_half, error < 0), low, near)
        near = ew.where(ew.equal(near, 0), ew.where(x < 0, -0.0, 0.0 * near), near)
        found = ew.where(ew.absolute(scaled) < _WHOLE, near / unit, x)
    return ew.where(ew.isfinite(x), found, x)


def _product_error(x: Any, y: float, product: Any) -> Any:
    """By how much `x * y` is more than the float it was rounded to (Dekker, 1971)."""
    x_high, x_low = _halves(x)
    y_high, y_low = _halves(y)
    rest = product - x_high * y_high - x_low * y_high - x_high * y_low
    return x_low * y_low - rest


def _halves(x: Any) -> tuple[Any, Any]:
    """A float as the sum of two with half as many bits."""
    scaled = _SPLIT * x
    high = scaled - (scaled - x)
    return high, x - high
