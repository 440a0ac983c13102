"""Loops that are soon over have no safepoints; all others do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from wend.backends.native.module import write
from wend.passes.pipeline import OPTIMIZE, run_passes

VECTOR = np.random.default_rng(1).random(100)


def counted(x: Any) -> Any:
    count, largest = 0, 0.0
    for k in range(100):
        largest = max(largest, x[k])
        if x[k] > 0.5:
            count += 1
    return count + largest


def written(x: Any) -> Any:
    out = np.zeros(100)
    for k in range(100):
        out[k] = x[k] * 2.0 + x[99 - k]
    return out


def nested(x: Any) -> Any:
    total = 0.0
    for k in range(100):
        for j in range(4):
            total += x[k] * x[j]
    return total


def backwards(x: Any) -> Any:
    total = 1.0
    for k in range(99, -1, -3):
        total = total * 0.5 + x[k]
    return total


def none_at_all(x: Any) -> Any:
    total = x[0]
    for k in range(5, 5):
        total = total + x[k]
    return total


def long(x: Any) -> Any:
    total = 0.0
    for k in range(1_000_000):
        total = total + x[k % 100]
    return total


def long_outside(x: Any) -> Any:
    total = 0.0
    for _ in range(30_000):
        for j in range(4):
            total = total * 0.5 + x[j]
    return total


def of_unknown_length(x: Any) -> Any:
    total = 0.0
    while total < 10.0:
        total = total + x[3]
    return total


def on_large_arrays(x: Any) -> Any:
    matrix = np.outer(x, x)
    for _ in range(3):
        matrix = matrix @ matrix * 1e-2
    return np.sum(matrix)


SHORT = [counted, written, nested, backwards, none_at_all]
OTHERS = {long: 1, long_outside: 1, of_unknown_length: 1, on_large_arrays: 1}


def safepoints(fun: Callable[..., Any]) -> int:
    graph = wend.function(fun).get_concrete_function(VECTOR).graph
    return write(run_passes(graph, OPTIMIZE)).text.count("call i64 @wend.safepoint")


@pytest.mark.parametrize("fun", SHORT)
def test_short_loops_have_none(fun: Callable[..., Any]) -> None:
    assert safepoints(fun) == 0


@pytest.mark.parametrize(("fun", "count"), OTHERS.items())
def test_others_have_one_each(fun: Callable[..., Any], count: int) -> None:
    assert safepoints(fun) == count


@pytest.mark.parametrize("fun", [*SHORT, long_outside, of_unknown_length, on_large_arrays])
def test_they_compute_what_python_does(fun: Callable[..., Any]) -> None:
    value = wend.function(fun, backend="native")(VECTOR)
    if fun is on_large_arrays:
        np.testing.assert_allclose(value, fun(VECTOR), rtol=1e-12)
    else:
        np.testing.assert_array_equal(value, fun(VECTOR))


@pytest.mark.parametrize("fun", [nested, backwards])
def test_their_gradients(fun: Callable[..., Any]) -> None:
    slope = wend.grad(fun)
    with wend.config(backend="native"):
        value = slope(VECTOR)
    with wend.config(backend="numpy"):
        np.testing.assert_allclose(value, slope(VECTOR), rtol=1e-12)
