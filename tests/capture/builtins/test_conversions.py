"""`int`, `float`, `round`, `range` and their kind, of numbers that Python refuses too."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.helpers.as_python import assert_as_python, raised

pytestmark = pytest.mark.usefixtures("integers_stay_traced")

NAN, INF = math.nan, math.inf
VALUES = (
    1.5,
    -2.5,
    NAN,
    INF,
    -INF,
    2.0**62,
    np.float64(2.5),
    np.float64(NAN),
    np.ones(3),
    np.ones(1),
)


@pytest.mark.parametrize("convert", [int, round, math.floor, math.ceil, math.trunc])
def test_to_integers(convert):
    def converted(x):
        return convert(x)

    assert_as_python(converted, *[(x,) for x in VALUES], (3,), (np.array(2.5),))
    error = raised(converted, 1e300)
    assert isinstance(error, OverflowError)
    assert "does not fit 64 bits" in str(error)


@pytest.mark.parametrize("convert", [float, complex])
def test_to_floats(convert):
    def converted(x):
        return convert(x)

    values = 1.5, 3, np.float64(2.5), np.array(2.5), np.ones(3), np.ones(1), 1j
    assert_as_python(converted, *[(x,) for x in values])


def test_the_truth_of_one_element():
    def chosen(x):
        return 1.0 if x else 2.0

    assert_as_python(chosen, (np.ones(1),), (np.zeros((1, 1)),), (np.array(0.0),), (NAN,))
    assert "more than one element" in str(raised(chosen, np.ones(2)))


def test_ranges_take_integers():
    def total(n):
        s = 0
        for i in range(n):
            s += i
        return s

    def stepped(n):
        s = 0
        for i in range(0, 10, n):
            s += i
        return s

    sizes = 3.0, 3, 0, True, np.float64(3), np.int32(3), np.array(3), np.array([3]), np.array(3.0)
    assert_as_python(total, *[(n,) for n in sizes])
    assert_as_python(stepped, (3,), (-1,), (0,))
    assert_as_python(lambda n: 3 in range(n), (4.0,), (4,), (3,))


def test_the_digits_of_round_are_known():
    assert "make n static" in str(raised(lambda x, n: round(x, n), 1.25, np.int64(1)))


def test_extremes_and_orders_with_nan():
    def extremes(a):
        return max(a), min(a)

    rows = [1.0, 2.0, 3.0], [NAN, 1.0, 0.0], [1.0, NAN, 0.0], [2.0, 1.0, NAN]
    assert_as_python(extremes, *[(np.array(row),) for row in rows], (np.arange(3),), (3.0,))
    assert_as_python(extremes, (np.ones((2, 2)),))
    assert_as_python(lambda a, b: (max(a, b, 1.0), min([a, b])), (NAN, 2.0), (2.0, NAN))
    assert_as_python(lambda x: sorted([x, 1.0, 0.0])[0], (3.0,), (-1.0,))
    assert "NaN" in str(raised(lambda x: sorted([x, 1.0, 0.0])[0], NAN))


def grown(x, count):
    out = []
    for k in range(count):
        out.append(x * (count - k))
    return out


@pytest.mark.sampled(3)
@pytest.mark.parametrize("key", [None, lambda v: -v])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
@pytest.mark.parametrize("shape", [(1,), (3,), (1, 1), (2, 2)])
def test_arrays_have_an_order_where_they_have_one_element(key, count, shape):
    def fun(x):
        return sorted(grown(x, count), key=key), sorted([x + 1, x][:count], key=key, reverse=True)

    if count > 1 and np.prod(shape) > 1:
        error = raised(fun, np.ones(shape))
        assert isinstance(error, ValueError)
        assert "The truth value of an array with more than one" in str(error)
    else:
        assert_as_python(fun, (np.ones(shape),))


def test_an_item_that_is_an_array():
    assert_as_python(lambda x: x in [np.array([1.0])], (1.0,), (2.0,))
