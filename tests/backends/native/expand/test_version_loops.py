"""Loops with checks run in vectors where none fails, and else raise as Python does."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pytest
from tests.helpers.graphs import traced

import wend
from wend.backends.native.backend import BACKEND
from wend.backends.native.jit.llvm import engine


def _black_scholes(x, k):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        d = math.log(x[i] / k) / math.sqrt(k)
        y[i] = x[i] * math.erf(d)
    return y.sum()


def _density(x, k):
    total = 0.0
    for i in range(x.shape[0]):
        total += math.exp(-x[i] * k)
    return math.log(total)


def _two_sums(x, k):
    total, other = 0.0, 0.0
    for i in range(x.shape[0]):
        total += math.sqrt(x[i])
        other += math.log(x[i]) * k
    return total + other


def _rows(x, k):
    y = np.zeros((3, x.shape[0]))
    for j in range(3):
        for i in range(x.shape[0]):
            y[j, i] = math.exp(x[i] * k) + j
    return y.sum()


def _checks_then_positions(x, k):
    total = 0.0
    for i in range(x.shape[0] + 3):
        total += math.log(x[i] * k)
    return total


def _powers(x, k):
    total = 0.0
    for i in range(x.shape[0]):
        total += math.pow(x[i], 2.0) / k
    return total


def _seen_by_a_handler(x, k):
    y = np.zeros(x.shape[0])
    try:
        for i in range(x.shape[0]):
            y[i] = math.log(x[i]) * k
    except ValueError:
        return y.sum() - 100.0
    return y.sum()


def _carried(x, k):
    for i in range(x.shape[0]):
        k = math.sqrt(k + x[i])
    return k


FUNCTIONS = [
    *(_black_scholes, _density, _two_sums, _rows, _checks_then_positions, _powers),
    *(_seen_by_a_handler, _carried),
]
X = np.random.default_rng(2).random(45) + 0.2
# What is put at a position: nothing, what is outside of domains, what overflows
PLACES = [(None, 0.0), (0, -1.0), (44, -2.0), (17, 0.0), (30, 1e200), (30, -1e4), (9, np.nan)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fun", FUNCTIONS)
@pytest.mark.parametrize(("at", "number"), PLACES)
def test_results_and_errors_are_those_of_python(fun: Callable, at: int, number: float) -> None:
    x = X.copy()
    if at is not None:
        x[at] = number
    found = _outcome(wend.function(fun, backend="native"), x)
    expected = _outcome(fun, x)
    if isinstance(expected, float):
        np.testing.assert_allclose(found, expected, rtol=1e-13)
    else:
        assert found == expected


def _outcome(fun: Callable, x: np.ndarray):
    try:
        return float(fun(x, 1.3))
    except (ArithmeticError, ValueError, IndexError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("fun", [_black_scholes, _density, _two_sums, _rows, _powers])
def test_loops_run_in_vectors_where_no_check_fails(fun: Callable) -> None:
    text = BACKEND.text(traced(fun, X, 1.3, optimize=True))
    vector = re.compile(r"f(mul|sub|add|div) <\d+ x double>|call <\d+ x double> @wend")
    assert vector.search(str(engine().optimized(text)))


def test_an_argument_has_what_was_stored_before_the_failure() -> None:
    def fun(x, y):
        for i in range(x.shape[0]):
            y[i] = math.log(x[i])
        return y

    x, y = X.copy(), np.zeros(45)
    x[20] = 0.0
    with pytest.raises(ValueError, match="math domain error"):
        wend.function(fun, backend="native")(x, y)
    assert np.count_nonzero(y) == 20


def _until_a_sum(x, k):
    total, i = 0.0, 0
    while total < 100.0:
        total += math.log(abs(i - 3) * k)
        i += 1
    return total


def _until_an_element(x, k):
    total, i = 0.0, 0
    while x[i] > 0.0:
        total += math.log(k + 4.0 - i)
        i += 1
    return total


def _until_a_function(x, k):
    y, i = np.zeros(x.shape[0]), 0
    while math.exp(x[i] * i * 300.0) < 1e308:
        y[i] = math.log(k + 1.0 - i)
        i += 1
    return y.sum()


def _of_many_trips(x, k):
    total = 0.0
    for i in range(10**12):
        total += math.log(k + 4.0 - i)
    return total


@pytest.mark.parametrize(
    "fun", [_until_a_sum, _until_an_element, _until_a_function, _of_many_trips]
)
def test_the_first_failure_ends_the_run(fun: Callable) -> None:
    """Also where the test of the loop may fail, or hold for ever, in the trips after it."""
    found = _outcome(wend.function(fun, backend="native"), X)
    assert found == _outcome(fun, X) == (ValueError, "math domain error")
