"""Operators of two Python numbers, which follow Python where NumPy differs (D47).

Division by zero and the 64 bits of integers are NumPy's.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from wend.eager import raising
from wend.eager.checking import Check, checked, checked_as_python
from wend.eager.dispatch import Staged
from wend.eager.promotion import tensor_type
from wend.numpy import elementwise as ew
from wend.numpy import shaping

_EXACT_END = 2.0**53  # floats represent all integers up to this one
_INT_END = 2.0**63  # the first float above all 64-bit integers


def _kind(x: Any) -> str:
    return tensor_type(x).dtype.kind


# Powers
def power(x: Any, y: Any) -> Any:
    """Return `x ** y`; a float that overflows raises, and so does a power that is complex."""
    kinds = {_kind(x), _kind(y)}
    if "c" in kinds:
        return ew.power(x, y)
    if kinds == {"i"}:
        return _integer_power(x, y)
    result = ew.power(x, y)
    is_staged = isinstance(result, Staged)
    return checked(result, *_power_checks(x, y, result)) if is_staged else result


def _integer_power(x: Any, y: Any) -> Any:
    if not isinstance(y, Staged):
        return ew.power(x, y) if y >= 0 else ew.power(shaping.astype(x, np.float64), float(y))
    text = (
        "Integers to negative integer powers are floats in Python, and integers here; write "
        "float(x) ** n"
    )
    return ew.power(x, checked(y, (ew.less(y, 0), ValueError, text)))


def _power_checks(x: Any, y: Any, result: Any) -> list[Check]:
    checks: list[Check] = []
    exponent = None if isinstance(y, Staged) else float(y)
    base = None if isinstance(x, Staged) else float(x)
    is_whole = exponent is not None and exponent.is_integer()
    if not is_whole and _kind(y) == "f" and (base is None or base < 0):
        is_complex = ew.logical_and(ew.isnan(result), _none_is_nan(x, y))
        text = "a negative number to a fractional power is complex in Python; write complex(x) ** y"
        checks.append((is_complex, ValueError, text))
    if exponent is None or abs(exponent) > 1:
        is_too_large = ew.logical_and(ew.isinf(result), _all_finite(x, y))
        if exponent is None or exponent < 0:
            is_too_large = ew.logical_and(is_too_large, ew.not_equal(x, 0))
        arguments = 34, "Numerical result out of range"
        if not raising.divert(lambda: is_too_large, OverflowError, lambda: arguments):
            checks.append((is_too_large, OverflowError, str(arguments)))
    return checks


def _all_finite(*xs: Any) -> Any:
    """Return whether floats are finite; integers are, too."""
    return _all(ew.isfinite(x) for x in xs if _kind(x) == "f")


def _none_is_nan(*xs: Any) -> Any:
    return _all(ew.equal(x, x) for x in xs if isinstance(x, Staged) and _kind(x) == "f")


def _all(tests: Iterable[Any]) -> Any:
    """Return whether all tests hold, which are traced or known."""
    result: Any = np.True_
    for test in tests:
        result = test if result is np.True_ else ew.logical_and(result, test)
    return result


# Shifts
def shift(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a shift that raises Python's error for a negative count."""

    def run(x: Any, count: Any) -> Any:
        if _kind(count) in "ib":
            is_negative = ew.less(count, 0) if isinstance(count, Staged) else count < 0
            check = (is_negative, ValueError, "negative shift count")
            if isinstance(count, Staged):
                count = checked_as_python(count, check)
            elif isinstance(x, Staged):
                x, count = checked_as_python(x, check), max(count, 0)
        return function(x, count)

    return run


# Comparisons
_EXAMPLES = {"b": True, "i": 1, "f": 1.0, "c": 1j}
_REFLECTED = {
    operator.lt: operator.gt,
    operator.le: operator.ge,
    operator.gt: operator.lt,
    operator.ge: operator.le,
    operator.eq: operator.eq,
}
_STRICT = {operator.le: operator.lt, operator.ge: operator.gt}
_LOOSE = {operator.lt: operator.le, operator.gt: operator.ge}
_UFUNCS: dict[Any, Callable[..., Any]] = {
    operator.lt: ew.less,
    operator.le: ew.less_equal,
    operator.gt: ew.greater,
    operator.ge: ew.greater_equal,
    operator.eq: ew.equal,
}


def comparison(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a comparison that is exact for an integer and a float, which NumPy rounds first."""

    def run(x: Any, y: Any) -> Any:
        kinds = _kind(x) + _kind(y)
        if "c" in kinds and compare is not operator.eq:
            compare(*(_EXAMPLES[_kind(n)] for n in (x, y)))  # Python's error
        if kinds == "ii":
            return _compare_integers(compare, x, y)
        if kinds == "if" and not (_is_exact(x) or _is_exact(y)):
            return _compare_exactly(compare, x, y)
        if kinds == "fi" and not (_is_exact(x) or _is_exact(y)):
            return _compare_exactly(_REFLECTED[compare], y, x)
        return _UFUNCS[compare](x, y)

    return run


def differs(x: Any, y: Any) -> Any:
    """Return `x != y`."""
    if _kind(x) == _kind(y) == "f":
        return ew.not_equal(x, y)
    is_equal = _equal(x, y)
    return ew.logical_not(is_equal) if isinstance(is_equal, Staged) else not is_equal


_equal = comparison(operator.eq)


def _compare_integers(compare: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """Compare integers, of which a known one may be out of range of 64 bits."""
    if isinstance(x, Staged) and isinstance(y, Staged):
        return _UFUNCS[compare](x, y)
    known = y if isinstance(x, Staged) else x
    if -(2**63) <= known < 2**63:
        return _UFUNCS[compare](x, y)
    return compare(0, y) if known is y else compare(x, 0)


def _is_exact(x: Any) -> bool:
    """Return whether a known number is so small that no integer rounds across it."""
    return not isinstance(x, Staged) and not _EXACT_END <= abs(x) < math.inf


def _compare_exactly(compare: Callable[[Any, Any], Any], n: Any, x: Any) -> Any:
    """Compare an integer with a float: if the integer rounds to the float, as integers."""
    if not isinstance(x, Staged):
        return _compare_integers(compare, n, int(x))
    if not isinstance(n, Staged):
        return _compare_known(compare, n, x)
    rounded, whole = shaping.astype(n, np.float64), shaping.astype(x, np.int64)
    is_above = ew.greater_equal(x, _INT_END)
    as_integers = _UFUNCS[compare](n, whole)
    if compare in (operator.lt, operator.le):
        as_integers = ew.logical_or(is_above, as_integers)
    else:
        as_integers = ew.logical_and(ew.logical_not(is_above), as_integers)
    in_tie = ew.logical_and(ew.equal(rounded, x), as_integers)
    if compare is operator.eq:
        return in_tie
    return ew.logical_or(_UFUNCS[_STRICT.get(compare, compare)](rounded, x), in_tie)


def _compare_known(compare: Callable[[Any, Any], Any], n: int, x: Any) -> Any:
    """Compare a known integer with a float; `n` itself is between two floats, or is one."""
    rounded = float(n)
    if rounded == n:
        return _UFUNCS[compare](rounded, x)
    if compare is operator.eq:
        return ew.equal(x, math.nan)  # never
    strict = _STRICT.get(compare, compare)
    includes_rounded = (rounded > n) == (strict is operator.lt)
    return _UFUNCS[_LOOSE[strict] if includes_rounded else strict](rounded, x)
