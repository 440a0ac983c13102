"""Loops that call functions of numbers are vectorized where no trip needs what another computed."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.helpers.graphs import traced

import wend
from wend.backends.native.backend import BACKEND
from wend.backends.native.jit.llvm import engine


def _in_other_arrays(x, u):
    y = np.zeros(x.shape)
    for i in range(x.shape[0]):
        y[i] = np.exp(x[i] * u) + np.sin(x[i]) ** 2
    return y


def _downwards(x, u):
    y = np.zeros(x.shape)
    for i in range(x.shape[0] - 1, -1, -1):
        y[i] = np.log(x[i] + u)
    return y


def _in_place(x, u):
    y = x.copy()
    for i in range(x.shape[0]):
        y[i] = np.exp(y[i] * u)
    return y


def _in_place_from_later_elements(x, u):
    y = x.copy()
    for i in range(x.shape[0] - 1):
        y[i] = np.maximum(0.3 * y[i] + 0.7 * y[i + 1], u ** (2.0 * x[i]))
    return y


def _in_place_downwards_from_earlier_elements(x, u):
    y = x.copy()
    for i in range(x.shape[0] - 1, 0, -1):
        y[i] = np.exp(y[i - 1] * u)
    return y


def _sum(x, u):
    total = 0.0
    for i in range(x.shape[0]):
        total += np.exp(x[i] * u)
    return total


def _two_sums(x, u):
    total, other = 0.0, 1.0
    for i in range(x.shape[0]):
        total += np.exp(x[i] * u)
        other += np.log(x[i])
    return total * other


def _in_rows(x, u):
    y = np.zeros((4, x.shape[0]))
    for k in range(4):
        for i in range(x.shape[0]):
            y[k, i] = np.exp(x[i] * u + k)
    return y


def _from_earlier_elements(x, u):
    y = x.copy()
    for i in range(1, x.shape[0]):
        y[i] = np.exp(-y[i - 1] * u)
    return y


def _downwards_from_later_elements(x, u):
    y = x.copy()
    for i in range(x.shape[0] - 2, -1, -1):
        y[i] = np.exp(-y[i + 1] * u)
    return y


def _recurrence(x, u):
    for i in range(x.shape[0]):
        u = np.exp(-u * x[i])
    return u


def _sum_that_is_read(x, u):
    total = 0.0
    for i in range(x.shape[0]):
        total += np.exp(-total * x[i])
    return total


INDEPENDENT = [
    *(_in_other_arrays, _downwards, _in_place, _in_place_from_later_elements),
    *(_in_place_downwards_from_earlier_elements, _sum, _two_sums, _in_rows),
]
DEPENDENT = [
    *(_from_earlier_elements, _downwards_from_later_elements, _recurrence, _sum_that_is_read),
]
X = np.random.default_rng(3).random(67) + 0.1


IN_VECTORS = re.compile(r"fmul <\d+ x double>|call <\d+ x double> @wend")


def _text(fun: Callable) -> str:
    return BACKEND.text(traced(fun, X, 1.1, optimize=True))


@pytest.mark.parametrize("fun", INDEPENDENT)
def test_independent_trips_are_computed_in_vectors(fun: Callable) -> None:
    assert IN_VECTORS.search(str(engine().optimized(_text(fun))))
    np.testing.assert_allclose(wend.function(fun)(X, 1.1), fun(X, 1.1), rtol=1e-14)


@pytest.mark.parametrize("fun", DEPENDENT)
def test_others_call_functions_of_one_number(fun: Callable) -> None:
    assert ".loop(" not in _text(fun)
    np.testing.assert_allclose(wend.function(fun)(X, 1.1), fun(X, 1.1), rtol=1e-13)


@pytest.mark.parametrize("fun", [_in_other_arrays, _downwards, _sum, _two_sums])
def test_gradients_are_computed_in_vectors(fun: Callable) -> None:
    def total(x, u):
        return np.sum(fun(x, u))

    gradient = wend.grad(total, (0, 1))
    text = BACKEND.text(traced(gradient, X, 1.1, optimize=True))
    assert IN_VECTORS.search(str(engine().optimized(text)))
    with wend.config(backend="numpy"):
        expected = wend.function(gradient)(X, 1.1)
    for found, right in zip(wend.function(gradient)(X, 1.1), expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-12)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), min_size=1, max_size=3),
    st.integers(0, 3),
    st.sampled_from([1, -1]),
    st.sampled_from(["x", "y"]),
)
def test_any_reads_and_stores(reads, at, step, stored):
    """Whatever a trip reads, the numbers are those of one trip after the other."""

    def fun(x, y):
        x, y = x.copy(), y.copy()
        trips = range(40) if step > 0 else range(39, -1, -1)
        for i in trips:
            total = 0.0
            for offset, array in reads:
                total = total + (x if array else y)[i + offset]
            if stored == "x":
                x[i + at] = np.exp(-total)
            else:
                y[i + at] = np.exp(-total)
        return x, y

    arguments = X[:43], X[5:48]
    found = wend.function(fun, backend="native")(*arguments)
    np.testing.assert_allclose(found, fun(*arguments), rtol=1e-13)
