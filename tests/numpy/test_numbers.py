"""`wend.numpy.numbers` and `comparing` beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.drawn import ALL, FLOATS, REAL, check, drawn, few, spread

WHOLE = ["i1", "i4", "i8", "u1"]
ONE = "signbit fabs deg2rad radians rad2deg degrees modf frexp isposinf isneginf"
TWO = "copysign nextafter heaviside fmod fmax fmin float_power logaddexp2 divmod"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ONE.split())
@few
@given(x=drawn(REAL, odd=True))
def test_of_one(name: str, x: np.ndarray) -> None:
    check(lambda m, x: getattr(m, name)(x), x)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", "angle sinc nan_to_num fix iscomplex isreal".split())
@few
@given(x=drawn(FLOATS), z=drawn(ALL))
def test_of_numbers(name: str, x: np.ndarray, z: np.ndarray) -> None:
    check(lambda m, x: getattr(m, name)(x), x)
    if name not in ("fix", "sinc"):
        check(lambda m, z: getattr(m, name)(z), z)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", TWO.split())
@few
@given(xs=spread(2, FLOATS, odd=True), whole=spread(2, REAL))
def test_of_two(name: str, xs: Any, whole: Any) -> None:
    check(lambda m, x, y: getattr(m, name)(x, y), *xs)
    if name not in ("fmod", "divmod", "float_power"):
        check(lambda m, x, y: getattr(m, name)(x, y), *whole)


@pytest.mark.parametrize("name", ["gcd", "lcm", "bitwise_count"])
@few
@given(xs=spread(2, WHOLE))
def test_of_integers(name: str, xs: Any) -> None:
    count = 1 if name == "bitwise_count" else 2
    check(lambda m, *xs: getattr(m, name)(*xs), *xs[:count])


@few
@given(x=drawn(ALL), decimals=st.sampled_from([0, 1, 2, -1]))
def test_round(x: np.ndarray, decimals: int) -> None:
    check(lambda m, x: m.round(x, decimals), x)


@few
@given(x=drawn(FLOATS, odd=True))
def test_nan_to_num(x: np.ndarray) -> None:
    check(lambda m, x: m.nan_to_num(x, nan=1.5, posinf=2, neginf=-3), x)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["isclose", "allclose", "array_equal", "array_equiv"])
@few
@given(xs=spread(2, FLOATS, odd=True), flag=st.booleans())
def test_comparisons(name: str, xs: Any, flag: bool) -> None:
    options = {} if name == "array_equiv" else {"equal_nan": flag}
    check(lambda m, x, y: getattr(m, name)(x, y, **options), *xs)
    check(lambda m, x, y: getattr(m, name)(x, y, **options), xs[0], xs[0])


def test_weak_numbers_keep_the_dtype() -> None:
    x = np.float32([1.5, -2])
    for name in ("copysign", "fmod", "fmax", "heaviside"):
        check(lambda m, x, name=name: getattr(m, name)(x, 2), x)
        check(lambda m, x, name=name: getattr(m, name)(2.0, x), x)
