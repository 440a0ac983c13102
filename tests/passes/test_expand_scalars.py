"""Functions of what a loop reads are computed for all trips before it is differentiated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wend
from tests.helpers.graphs import loops, traced
from wend.ops import elementwise
from wend.passes.expand_scalars import MAX_BYTES, MIN_TRIPS, expand_scalars
from wend.passes.in_bounds import mark_in_bounds


def _of_rows(x, u):
    total = 0.0
    for i in range(x.shape[0]):
        total += np.exp(x[i] * u) * np.sin(x[i])
    return total


def _of_counters(x, u):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        y[i] = x[i] * np.exp(-u * (i + 1.0))
    return np.sum(y * y)


def _backwards(x, u):
    total = 1.0
    for i in range(x.shape[0] - 1, -1, -1):
        total = np.sin(total) + np.log(x[i] + u)
    return total


def _in_steps(x, u):
    total = 0.0
    for i in range(1, x.shape[0], 2):
        total = total * u + np.tanh(x[i] - x[i - 1])
    return total


def _nested(x, u):
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            total += np.exp(-((x[i] - x[j]) ** 2) * u)
    return total


def _in_a_branch(x, u):
    total = 0.0
    if u > 1.0:
        for i in range(x.shape[0]):
            total += np.exp(x[i] * u)
    return total


EXPANDED = [_of_rows, _of_counters, _backwards, _in_steps]
X = np.random.default_rng(4).random(2 * MIN_TRIPS + 1) + 0.2


def _functions_inside(graph) -> int:
    functions = (elementwise.exp, elementwise.log, elementwise.tanh)
    regions = [region for loop in loops(graph) for region in loop.regions]
    types = [n.results[0].tensor for r in regions for n in r.walk() if n.op in functions]
    return sum(type.shape == () for type in types)


@pytest.mark.parametrize("fun", EXPANDED)
def test_loops_read_what_is_computed_for_all_trips(fun: Callable) -> None:
    graph = mark_in_bounds(traced(fun, X, 1.2))
    assert _functions_inside(graph) == 1
    assert _functions_inside(expand_scalars(graph)) == 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fun", [*EXPANDED, _nested, _in_a_branch])
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_gradients_of_first_and_second_order(fun: Callable, backend: str) -> None:
    gradient = wend.grad(fun, (0, 1))
    with wend.config(backend=backend):
        along_x, along_u = wend.function(gradient)(X, 1.2)
        second = wend.function(wend.grad(lambda u: wend.grad(fun, 1)(X, u)))(1.2)
    step = 1e-6
    of_u = (fun(X, 1.2 + step) - fun(X, 1.2 - step)) / (2 * step)
    np.testing.assert_allclose(along_u, of_u, rtol=1e-6)
    for k in (0, 7, len(X) - 1):
        ahead, behind = X.copy(), X.copy()
        ahead[k] += step
        behind[k] -= step
        of_x = (fun(ahead, 1.2) - fun(behind, 1.2)) / (2 * step)
        np.testing.assert_allclose(along_x[k], of_x, rtol=1e-6, atol=1e-8)
    step = 1e-4
    values = [fun(X, 1.2 + step), fun(X, 1.2), fun(X, 1.2 - step)]
    expected = (values[0] - 2 * values[1] + values[2]) / step**2
    np.testing.assert_allclose(second, expected, rtol=1e-4, atol=1e-4)


def _clipped(x, u):
    total = 0.0
    for i in range(x.shape[0]):
        v = np.log(x[i] * u)
        if v > -10.0:
            total += v
    return total


def _greatest(x, u):
    best = -100.0
    for i in range(x.shape[0]):
        v = np.log(x[i] * u)
        if v > best:
            best = v
    return best


def _guarded(x, u):
    total = 0.0
    for i in range(x.shape[0]):
        v = np.log(x[i] * u)
        if x[i] > 0.0:
            total += v * v
        else:
            total += 1.0
    return total


def _of_one_trip(x, u):
    total = 0.0
    for i in range(x.shape[0]):
        v = np.log(x[i] * u)
        total = v if i == 20 else total
    return total


@pytest.mark.parametrize("fun", [_clipped, _greatest, _guarded, _of_one_trip])
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_arms_that_are_not_taken_add_nothing(fun: Callable, backend: str) -> None:
    x = X.copy()
    x[5] = 0.0
    with wend.config(backend=backend):
        along_x, along_u = wend.function(wend.grad(fun, (0, 1)))(x, 1.2)
    assert along_x[5] == 0.0
    assert np.isfinite(along_x).all()
    step = 1e-6
    with np.errstate(divide="ignore"):
        expected = (fun(x, 1.2 + step) - fun(x, 1.2 - step)) / (2 * step)
    np.testing.assert_allclose(along_u, expected, rtol=1e-6)


def test_what_depends_on_earlier_trips_stays() -> None:
    def carried(x, u):
        for i in range(x.shape[0]):
            u = np.exp(-u * x[i])
        return u

    graph = mark_in_bounds(traced(carried, X, 1.2))
    assert _functions_inside(expand_scalars(graph)) == 1


def test_cheap_numbers_stay_in_the_loop() -> None:
    def products(x, u):
        total = 0.0
        for i in range(x.shape[0]):
            total += x[i] ** 2 * u + x[i] / u
        return total

    graph = mark_in_bounds(traced(products, X, 1.2))
    (loop,) = loops(expand_scalars(graph))
    assert len(loop.operands) == len(loops(graph)[0].operands)


def test_arrays_are_bounded() -> None:
    x = np.zeros(MAX_BYTES // 8 + 1)
    graph = mark_in_bounds(traced(_of_rows, x, 1.2))
    assert _functions_inside(expand_scalars(graph)) == 1


@given(st.integers(0, MIN_TRIPS + 3), st.integers(-3, 3), st.sampled_from([1, 2, 3]))
def test_any_range(count: int, first: int, step: int) -> None:
    def fun(x, u):
        total = 0.0
        for i in range(first, first + step * count, step):
            total = total * 0.9 + np.exp(-u * x[i % 5] * i / 50.0)
        return total

    found = wend.value_and_grad(wend.function(fun), 1)(X, 0.7)
    step_of_u = 1e-6
    slope = (fun(X, 0.7 + step_of_u) - fun(X, 0.7 - step_of_u)) / (2 * step_of_u)
    np.testing.assert_allclose(found, (fun(X, 0.7), slope), rtol=1e-6, atol=1e-9)
