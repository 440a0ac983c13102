"""Operators of two Python numbers are Python's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.helpers.as_python import assert_as_python, raised

import wend

NAN, INF = math.nan, math.inf
BIG = 2**53
POWERS = [
    *((10.5, 1000), (1e300, 7.0), (-8.0, 3), (-8.0, 3.0), (2, 3), (0.0, 2.0), (INF, 2), (NAN, 0.5)),
    *((2, 0.5), (True, 2), (2.0, 2000), (2.0, -2000.0), (1e200, 2), (1e100, 2), (1j, 2)),
]


def power(x, y):
    return x**y


def comparisons(n, x):
    of_numbers = n < x, n <= x, n > x, n >= x, n == x, n != x
    return of_numbers, (x < n, x <= n, x > n, x >= n, x == n, x != n)


def known_float(n):
    return (
        n == 2.0**53,
        n <= 2.0**53,
        n > 2.0**53,
        n != 2.0**53,
        n == float(n),
        n < 2.0**63,
        n < 2.5,
    )


def test_powers():
    assert_as_python(power, *POWERS)
    assert_as_python(lambda x: x**1000, (1.5,), (10.5,))
    assert_as_python(lambda x: x**2, (1e200,), (1e100,), (INF,), (np.float64(1e200),), (3,))
    assert_as_python(lambda x: x**-1, (2,), (2.0,))
    assert_as_python(lambda x: (-2.0) ** x, (-1,), (3,), (2.0,))


@pytest.mark.parametrize(
    ("fun", "x", "text"),
    [
        (lambda x: x**0.333, -8.0, "is complex in Python"),
        (lambda x: (-2.0) ** x, 0.5, "is complex in Python"),
        (lambda n: 2**n, -1, "floats in Python"),
    ],
)
def test_powers_without_a_type_here(fun, x, text):
    assert text in str(raised(fun, x))


def test_powers_have_gradients():
    assert wend.grad(lambda x: x**3.5)(3.0) == pytest.approx(3.5 * 3**2.5)
    assert wend.grad(wend.grad(lambda x, n: x**n))(3.0, 4.0) == pytest.approx(12 * 9)


def test_the_check_is_no_reason_to_leave_the_fast_path():
    text = str(wend.function(lambda x: x**3).get_concrete_function(2.0).graph)
    assert "check_number(" in text
    assert "token" not in text


def test_shifts():
    assert_as_python(lambda a, n: (a << n, a >> n), (5, 2), (5, -2), (-5, 3))
    assert_as_python(lambda a: a << -1, (5,))


@pytest.mark.parametrize(
    "n", [BIG - 1, BIG, BIG + 1, BIG + 2, -BIG - 1, 3, 2**63 - 1, -(2**63), 2**62 + 1, True]
)
def test_integers_and_floats_are_compared_exactly(n):
    xs = (float(BIG), float(BIG + 2), 2.5, 3.0, 2.0**63, -(2.0**63), INF, -INF, NAN, 2.0**62, 1.0)
    assert_as_python(comparisons, *[(n, x) for x in xs])
    assert_as_python(known_float, (n,))


@pytest.mark.parametrize("n", [2**63, 2**63 + 1, BIG + 1, 2**64 - 1, -(2**63) - 1, -BIG - 1])
def test_known_integers_of_any_size(n):
    def compared(a):
        return a < n, a <= n, a == n, a != n, a > n, a >= n, n < a, n <= a, n > a

    near = float(n), np.nextafter(float(n), 0.0).item(), np.nextafter(float(n), INF).item()
    assert_as_python(compared, *[(x,) for x in (*near, NAN, INF, 3, 2**62 + 1, BIG + 1)])


def test_integers_beyond_64_bits():
    for fun, n in ((lambda a: a, 2**63), (lambda a: -a, BIG)):
        assert_as_python(fun, (n,))
    error = raised(lambda a: a + 2**63, 1)
    assert isinstance(error, OverflowError)
    assert "To fix it:" in str(error)


def test_complex_numbers_have_no_order():
    assert isinstance(raised(lambda a, b: a < b, 1j, 2.0), TypeError)
