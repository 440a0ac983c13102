"""Functions of `math`, builtins and operators at the limits of numbers, against plain Python.

Each call gives the value and the type that Python gives, or its error with its text, or it is
refused, or it differs as docs/python.md lists at its end: see `is_listed`.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.fuzz.quick import quickly

import wend
from wend.base.refusals import is_refusal

pytestmark = pytest.mark.filterwarnings("ignore::wend.RetraceWarning")
INF, NAN = math.inf, math.nan
MIN_INT, END_INT = -(2**63), 2**63
FLOATS = [
    *(0.0, -0.0, 5e-324, -1e-310, 0.5, -0.5, 1.0, -1.0, -2.5, 3.0, 171.5, 709.7, 710.0, -1075.0),
    *(1e16, 2.0**53 - 1, 2.0**53 + 2, 2.0**63, -(2.0**63), 1e300, 1.7976931348623157e308),
    *(INF, -INF, NAN),
]
INTS = [
    *(0, 1, -1, 2, -3, 20, 21, 63, 64, 171, 1024, 2**31, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1),
    *(2**62, END_INT - 1, MIN_INT),
]
WRONG = [
    "a",
    None,
    [1.0],
    (1.0,),
    np.ones(2),
    np.array(1.5),
    Fraction(1, 3),
    END_INT,
    10**400,
    b"1",
]
ONE = {
    "floats": FLOATS,
    "ints": INTS,
    "bools": [False, True],
    "float64": [np.float64(x) for x in (0.0, -0.0, -2.5, 0.5, 1e300, INF, NAN)],
    "int64": [np.int64(x) for x in (0, 5, -5, 2**53 + 1, END_INT - 1)],
    "bool_": [np.bool_(False), np.bool_(True)],
    "complex": [1 + 2j],
    "wrong": WRONG,
}
SOME_FLOATS = [0.0, -0.0, 0.5, -2.5, 3.0, 5e-324, 2.0**53 + 2, 1e300, INF, -INF, NAN]
SOME_INTS = [0, 1, -3, 5, 62, 2**53 + 1, END_INT - 1, MIN_INT]
FEW_FLOATS, FEW_INTS = [0.0, -2.5, 3.0, INF, NAN], [0, 2, -3, 2**53 + 1]
TWO = {
    "floats": [(x, y) for x in SOME_FLOATS for y in SOME_FLOATS],
    "ints": [(x, y) for x in SOME_INTS for y in SOME_INTS],
    "an int and a float": [(x, y) for x in FEW_INTS for y in FEW_FLOATS],
    "a float and an int": [(x, y) for x in FEW_FLOATS for y in FEW_INTS],
    "bools": [(True, False), (False, True), (True, True)],
    "a bool and a float": [(True, -2.5), (False, NAN)],
    "wrong": [
        ("a", 1.0),
        (1.0, None),
        (1.0, [1.0]),
        (1, 2**64),
        (1.0, 10**400),
        (Fraction(1, 2), 2),
    ],
}

MAX_WRONG = 10  # TypeErrors of a function that are compared, each of which costs a trace

MATH_OF_TWO = (
    "atan2 copysign fmod gcd hypot isclose lcm ldexp log nextafter perm pow remainder comb"
)
NOT_OF_ONE = (
    "fma copysign fmod nextafter pow remainder ldexp isclose atan2 fsum prod dist comb sumprod"
)
MATH = [name for name in vars(math) if callable(getattr(math, name)) and name[0] != "_"]
UNARY: dict[str, Callable[..., Any]] = {
    **{f"math.{name}": getattr(math, name) for name in MATH if name not in NOT_OF_ONE.split()},
    **{f"operator.{name}": getattr(operator, name) for name in ("neg", "pos", "invert", "not_")},
    **{name: getattr(builtins, name) for name in "abs int float bool complex round".split()},
    "round to 2": lambda x: round(x, 2),
    "round to -1": lambda x: round(x, -1),
    "is_integer": lambda x: x.is_integer(),
    "as_integer_ratio": lambda x: x.as_integer_ratio(),
    "bit_length": lambda x: x.bit_length(),
    "real, imag": lambda x: (x.real, x.imag),
    "2 to the": lambda x: 2**x,
    "2.0 to the": lambda x: 2.0**x,
    "modulo -3": lambda x: x % -3,
    "compared with 2**53 + 1": lambda x: (x == 2**53 + 1, x < 2**53 + 1, x >= 2.0**53),
    "sum": lambda x: sum([x, 1, x]),
    "fsum": lambda x: math.fsum([x, 1.0, x]),
    "prod": lambda x: math.prod([x, 3]),
}
BINARY: dict[str, Callable[..., Any]] = {
    **{f"math.{name}": getattr(math, name) for name in MATH_OF_TWO.split()},
    **{
        f"operator.{name}": getattr(operator, name)
        for name in "add sub mul truediv floordiv mod pow lshift rshift and_ xor eq lt ge".split()
    },
    "divmod": divmod,
    "min": min,
    "max": max,
    "sorted": lambda x, y: tuple(sorted([x, y])),
    "dist": lambda x, y: math.dist([x, y], [y, 1.0]),
}
# Python would take ages, or all memory
ENDLESS = {
    "math.comb": lambda x, y: abs(y) > 1000,
    "math.perm": lambda *xs: abs(xs[-1]) > 1000,
    "math.factorial": lambda x: x > 1e4,
    "operator.lshift": lambda x, y: y > 1e4,
    "operator.pow": lambda x, y: type(x) is type(y) is int and abs(y) > 1e4,
    "2 to the": lambda x: type(x) is not float and x > 1e4,
}


def is_listed(name: str, expected: Any, found: Any, args: tuple[Any, ...]) -> bool:
    """Return whether docs/python.md names the difference."""
    kind, value = found
    is_large = not _fits(expected[1]) if expected[0] == "value" else False
    if is_large and name in ("math.comb", "math.perm", "math.factorial", "math.lcm"):
        return kind == "raised" and value[0] == "OverflowError"
    if is_large or (not _fits(args) and kind == "raised" and value[0] == "OverflowError"):
        return True  # integers have 64 bits
    if expected[0] == "raised" and expected[1][0] == "ZeroDivisionError" and kind == "value":
        return True  # division by zero
    if name == "operator.pow" and args[1] == 0.5 and args[0] == 0:
        return True  # the sign of a zero
    if name == "operator.pow" and isinstance(args[0], Fraction):
        return True  # a float
    if name in ("min", "max", "sorted") and type(args[0]) is not type(args[1]) and kind == "value":
        return _is_same(_as_floats(expected[1][0]), _as_floats(value[0]))  # values have one type
    texts = ("fit 64 bits", "is complex in Python", "are floats in Python", "NaN has no order")
    if expected[1][0] == value[0] == "ValueError" and "more than one element" in value[1]:
        return True  # the truth of an array: the text tells where, too
    return kind == "raised" and any(text in value[1] for text in texts)


def _as_floats(x: Any) -> Any:
    return tuple(map(float, x)) if isinstance(x, tuple) else float(x)


def _fits(x: Any) -> bool:
    if isinstance(x, (tuple, list)):
        return all(map(_fits, x))
    return not isinstance(x, int) or MIN_INT <= x < END_INT


def _outcome(fun: Callable[..., Any], args: tuple[Any, ...]) -> tuple[str, Any]:
    try:
        return "value", fun(*args)
    except Exception as error:
        if is_refusal(error):
            return "refused", error
        classes = (c for c in type(error).__mro__ if not c.__module__.startswith("wend."))
        return "raised", (next(classes).__name__, str(error).partition("\n")[0])


def _is_same(x: Any, y: Any) -> bool:
    """Return whether numbers are equal, up to the last bits of floats that are not whole."""
    if isinstance(x, (tuple, list)):
        return len(x) == len(y) and all(map(_is_same, x, y))
    if isinstance(x, np.ndarray):
        return np.allclose(x, y, rtol=1e-13, equal_nan=True)
    x, y = (v.item() if isinstance(v, np.generic) else v for v in (x, y))
    if isinstance(x, complex):
        return _is_same((x.real, x.imag), (y.real, y.imag))
    if not isinstance(x, float) or x != x or math.isinf(x):
        return x == y or (x != x and y != y)
    same_sign = math.copysign(1.0, x) == math.copysign(1.0, y)
    return same_sign and math.isclose(x, y, rel_tol=2e-13, abs_tol=1e-323)


def _with_types(fun: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        result = fun(*args)
        parts = result if isinstance(result, tuple) else (result,)
        return result, [type(part).__name__ for part in parts]

    return run


def _differences(name: str, fun: Callable[..., Any], calls: Any, way: str) -> Iterator[str]:
    plain = _with_types(fun)
    compiled = wend.function(plain)
    wrong = 0
    for args in calls:
        if _is_endless(name, args) or wrong == MAX_WRONG:
            continue
        expected, found = _outcome(plain, args), _outcome(compiled, args)
        wrong += expected[0] == "raised" and expected[1][0] == "TypeError"
        if expected[0] == found[0] == "value":
            same = _is_same(expected[1][0], found[1][0]) and expected[1][1] == found[1][1]
        else:
            same = found[0] == "refused" or expected == found
        if not same and not is_listed(name, expected, found, args):
            yield f"{name}{args} {way}: Python {expected}, wend {found}"


def _is_endless(name: str, args: tuple[Any, ...]) -> bool:
    try:
        return name in ENDLESS and bool(ENDLESS[name](*args))
    except (TypeError, ValueError):
        return False


def _check(table: dict[str, Any], calls: dict[str, list[tuple[Any, ...]]], name: str) -> None:
    found = []
    with np.errstate(all="ignore"), quickly(), wend.config(cache_dir="", verify=False):
        for kind, some in calls.items():
            for way in ("numpy", "native") if kind in ("floats", "ints") else ("numpy",):
                with wend.config(backend=way):
                    found += _differences(name, table[name], some, way)
    assert not found, "\n".join(found)


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", UNARY)
def test_of_one(name: str) -> None:
    _check(UNARY, {kind: [(x,) for x in values] for kind, values in ONE.items()}, name)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", BINARY)
def test_of_two(name: str) -> None:
    _check(BINARY, TWO, name)
