"""The differences from NumPy that docs/from-numpy.md lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.numpy.oracle.comparing import Call


def is_listed(call: Call, result: Any, reference: Any) -> bool:
    """Whether the page lists the difference of the outcome of a call from NumPy's."""
    if _are_cast_beyond_integers(call) or _has_two_errors(call, result, reference):
        return True
    name = call.name.partition(".reduce")[0].partition(".accumulate")[0]
    if isinstance(call.keywords.get("axis"), bool):
        return isinstance(result, Exception) or isinstance(reference, Exception)
    return name in _LISTED and _LISTED[name](call, result, reference)


def _are_cast_beyond_integers(call: Call) -> bool:
    """Whether `dtype=` asks for integers of numbers that are none, or out of range.

    The mean of nothing is NaN.
    """
    dtype = call.keywords.get("dtype")
    if dtype is None or np.dtype(dtype).kind not in "iu":
        return False
    limits = np.iinfo(np.dtype(dtype))
    numbers = [np.real(x) for x in call.operands if np.asarray(x).dtype.kind in "fc"]
    is_out = any(not ((x >= limits.min) & (x <= limits.max)).all() for x in numbers)
    return is_out or (call.name in ("mean", "var", "nanmean") and not np.size(call.operands[-1]))


def _has_two_errors(call: Call, result: Any, reference: Any) -> bool:
    """Whether a number does not fit `dtype=`, to which another operand is not to be cast."""
    errors = isinstance(reference, OverflowError), isinstance(result, TypeError)
    return all(errors) and "dtype" in call.keywords


def _has_leading_zero(call: Call, result: Any, reference: Any) -> bool:
    return any(x.size and x[0] == 0 for x in call.operands)


def _has_integers(call: Call, result: Any, reference: Any) -> bool:
    """Differences of integers that wrap in SciPy."""
    return any(x.dtype.kind in "iu" for x in call.operands)


def _are_signs_of_infinity(call: Call, result: Any, reference: Any) -> bool:
    (x,), (y,) = result, reference
    x, y = (np.where(np.isinf(z), np.inf, z) for z in (x, y))
    return np.allclose(x, y, rtol=1e-2, equal_nan=True)


def _overflows(call: Call, result: Any, reference: Any) -> bool:
    """Whether the least common multiple of all elements is out of range of their dtype."""
    x = call.operands[-1]  # after `out=`
    numbers = x[x != 0].astype(object)  # the multiple of 0 and what has overflowed is 0
    return x.dtype.kind in "iu" and np.lcm.reduce(abs(numbers), initial=1) > np.iinfo(x.dtype).max


def _are_signs_of_zero(call: Call, result: Any, reference: Any) -> bool:
    """Results that are equal, but for the signs of zeros."""
    both = (result, reference)
    return all(isinstance(x, Sequence) for x in both) and all(
        np.array_equal(x, y, equal_nan=True) for x, y in zip(*both, strict=True)
    )


def _is_insertion_of_float(call: Call, result: Any, reference: Any) -> bool:
    """A Python float that does not fit integers, which NumPy refuses for its value."""
    x, value = call.operands
    return x.dtype.kind in "iu" and isinstance(value, float) and isinstance(reference, Exception)


def _counts_in_a_narrow_dtype(call: Call, result: Any, reference: Any) -> bool:
    """Whole numbers of which NumPy's count wraps, or refuses one for another's dtype.

    Also an empty range whose second number would not fit.
    """
    if isinstance(result, OverflowError):
        return isinstance(reference, ValueError) or not np.size(reference[0])
    if isinstance(result, Exception) or any(np.asarray(x).dtype.kind == "f" for x in call.operands):
        return False
    return np.array_equal(result[0], np.arange(*map(int, call.operands), **call.keywords))


def _is_listed_of_quantiles(call: Call, result: Any, reference: Any) -> bool:
    """NumPy's slips where a result is NaN, or `q` has several axes."""
    x, q = (np.asarray(operand) for operand in call.operands[:2])
    if x.dtype.kind == "f" and np.isnan(x).any() and not isinstance(reference, Exception):
        # The number NaN has the dtype of the array, others that of the probabilities
        found = np.asarray(reference[0])
        if found.ndim == 0 and np.isnan(found) and found.dtype == x.dtype:
            return not isinstance(result, Exception) and bool(np.isnan(result[0]))
    if not call.name.startswith("nan") or q.ndim < 2:
        return False
    # NumPy moves the first axis of the result of reduced axes in front, however many `q` has. Of
    # one NaN its result has the dtype of the array, and not that of the probabilities.
    return isinstance(call.keywords.get("axis"), tuple) or bool(np.isnan(x).all())


def _is_power_of_a_half(call: Call, result: Any, reference: Any) -> bool:
    """The powers 0.5 of -0 and -inf, which are those of the root."""
    x, y = (np.asarray(operand) for operand in call.operands[:2])
    return bool(((y == 0.5) & ((x == 0) | np.isinf(x))).any())


def _are_complex_infinities(call: Call, result: Any, reference: Any) -> bool:
    """Complex results of which those that differ are infinite, or NaN."""
    if isinstance(result, Exception) or isinstance(reference, Exception):
        return False
    (x,), (y,) = result, reference
    is_number = np.isfinite(x) | np.isfinite(y)
    return np.iscomplexobj(x) and np.allclose(*(np.where(is_number, z, 0) for z in (x, y)))


def _is_scaled_by_zero(call: Call, result: Any, reference: Any) -> bool:
    """Products of infinities or NaN with the number 0, which BLAS leaves out."""
    if isinstance(result, Exception) or isinstance(reference, Exception):
        return False
    is_zero = any(np.asarray(x).size == 1 and not np.any(x) for x in call.operands)
    (x,), (y,) = result, reference
    return is_zero and not np.any(y[np.isnan(x)]) and np.allclose(np.nan_to_num(x), y)


def _are_products_with_infinities(call: Call, result: Any, reference: Any) -> bool:
    checks = (_are_complex_infinities, _is_scaled_by_zero)
    return any(check(call, result, reference) for check in checks)


def _is_singular(call: Call, result: Any, reference: Any) -> bool:
    return isinstance(result, np.linalg.LinAlgError)


_LISTED: dict[str, Callable[[Call, Any, Any], bool]] = {
    "polymul": _has_leading_zero,
    "special.softmax": _has_integers,
    "special.log_softmax": _has_integers,
    "special.beta": _are_signs_of_infinity,
    "lcm": _overflows,
    "arange": _counts_in_a_narrow_dtype,
    "float_power": _is_power_of_a_half,
    "insert": _is_insertion_of_float,
    "linalg.cond": _is_singular,
    **dict.fromkeys(
        "quantile percentile nanquantile nanpercentile".split(), _is_listed_of_quantiles
    ),
    **dict.fromkeys("square multiply divide power".split(), _are_complex_infinities),
    **dict.fromkeys(("dot", "inner"), _are_products_with_infinities),
    **dict.fromkeys("clip maximum minimum fmax fmin".split(), _are_signs_of_zero),
}
