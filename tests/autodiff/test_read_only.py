"""Loops record nothing that they read from arguments which do not change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from tests.helpers.graphs import traced
from wend.autodiff.read_only import read_only_arrays
from wend.autodiff.vjp import vjp
from wend.ir.types import TensorType
from wend.ops import lists

N = 10  # shorter loops over small arrays are unrolled
X, W = np.linspace(0.2, 0.9, N), np.cos(np.arange(N * N)).reshape(N, N)


def elements(x: Any, w: Any) -> Any:
    y = 0.1
    for k in range(N):
        y = np.sin(y) * x[k] + w[k, 2]
    return y


def rows(x: Any, w: Any) -> Any:
    h = x
    for k in range(N):
        h = np.tanh(w[k] * h)
    return h.sum()


def nested(x: Any, w: Any) -> Any:
    y = 0.1
    for i in range(N):
        for k in range(N):
            y = np.sin(y) * x[k] + w[i, k]
    return y


def in_branches(x: Any, w: Any) -> Any:
    y = 0.1
    for k in range(N):
        y = np.sin(y) * x[k] if w[k, 0] > 0.0 else np.sin(y) * w[0, k]
    return y


def computed_before(x: Any, w: Any) -> Any:
    v, y = np.exp(w), 0.1  # not kept for the elements that are read
    for k in range(N):
        y = np.sin(y) * v[k, 1] + x[k]
    return y


def of_any_number_of_trips(x: Any, w: Any) -> Any:
    y, k = 0.1, 0
    while y < 3.0 and k < N:
        y = y + np.exp(y) * x[k] + w[k, 1] ** 2
        k += 1
    return y


def changed_between(x: Any, w: Any) -> Any:
    """The inner loop reads an array that the outer one changes."""
    v, y = 1.0 * x, 0.1
    for i in range(N):
        for k in range(N):
            y = np.sin(y) * v[k]
        v[i] = y
    return v.sum() + w[0, 0]


def changed_in_the_loop(x: Any, w: Any) -> Any:
    v = 1.0 * x
    for k in range(1, N):
        v[k] = np.sin(v[k]) * v[0] + w[k, 0]
    return v.sum()


READING = [elements, rows, nested, in_branches]
CHANGING = [changed_between, changed_in_the_loop, computed_before, of_any_number_of_trips]


def records(program: Callable[..., Any]) -> list[TensorType]:
    """Return the types of the floats that the forward graph of a program records."""
    graph = traced(program, X, W)
    forward = vjp(graph, range(len(graph.params)), [0]).forward
    pushed = [node.operands[1].type for node in forward.walk() if node.op is lists.list_push]
    return [x for x in pushed if isinstance(x, TensorType) and x.dtype.kind == "f"]


@pytest.mark.parametrize("program", READING)
def test_one_value_a_trip_is_recorded(program: Callable[..., Any]) -> None:
    assert len(records(program)) == 1


@pytest.mark.parametrize("program", CHANGING)
def test_arrays_that_change_are_not_recorded_whole(program: Callable[..., Any]) -> None:
    assert all(type.shape == () for type in records(program))
    assert len(records(program)) > 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("program", [*READING, *CHANGING])
def test_derivatives(program: Callable[..., Any], backend: str) -> None:
    towards = np.sin(np.arange(N))

    def tilted(x: Any) -> Any:
        return program(x, W) + program(X, W * x)

    # The test of `of_any_number_of_trips` is no comparison of complex numbers
    step = 1e-4
    values = [tilted(X + k * step * towards) for k in (-2, -1, 0, 1, 2)]
    slope = (values[0] - 8.0 * values[1] + 8.0 * values[3] - values[4]) / (12.0 * step)
    curvature = (values[1] - 2.0 * values[2] + values[3]) / step**2
    with wend.config(backend=backend):
        gradient = wend.function(wend.grad(tilted))
        np.testing.assert_allclose(gradient(X) @ towards, slope, rtol=1e-9, atol=1e-12)
        twice = wend.function(wend.grad(lambda x: gradient(x) @ towards))
        np.testing.assert_allclose(twice(X) @ towards, curvature, rtol=1e-5, atol=1e-6)


@wend.function
def folded(x: Any) -> Any:
    y = 0.1
    for k in range(N):
        y = np.sin(y) * x[k]
    return y


def products(x: Any, w: Any, n: Any) -> Any:
    s = 0.0
    for k in range(n):
        s += w * x[k]
    return s


def factors(x: Any, w: Any, n: Any) -> Any:
    s = w
    for k in range(n):
        s = s * x[3 * k]
    return s


def in_the_rows(x: Any, w: Any, n: Any) -> Any:
    s, rows = w, x.reshape(3, 2)
    for k in range(n):
        for j in range(2):
            s = s + w * rows[k, j] if w > 0.0 else s * rows[k, j]
    return s


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("program", [products, factors, in_the_rows])
def test_reads_fail_where_the_value_is_not_asked_for(program: Any, backend: str) -> None:
    """The first read that is out of range fails, though the derivative needs others alone."""
    x = np.linspace(1.0, 2.0, 6)
    with pytest.raises(IndexError) as of_python:
        program(x, 0.5, 9)
    with wend.config(backend=backend):
        for form in (wend.grad, lambda f, argnums: wend.grad(wend.checkpoint(f), argnums=argnums)):
            with pytest.raises(IndexError) as error:
                wend.function(form(program, argnums=1))(x, 0.5, 9)
            assert str(error.value) == str(of_python.value)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_loops_that_make_no_trip_read_nothing(backend: str) -> None:
    def program(x: Any, k: Any, n: Any) -> Any:
        s = 1.0
        for _ in range(n):
            s = s * np.sin(x[k]) * np.exp(-s)
        return s

    with wend.config(backend=backend):
        slope = wend.function(wend.grad(program))
        np.testing.assert_array_equal(slope(X, 10**7, 0), np.zeros(N))


def test_a_function_is_called_with_an_array_that_changes_too() -> None:
    def calls(x: Any) -> Any:
        return folded(x) + 2.0 * folded(x)

    def calls_with_another(x: Any) -> Any:
        v, y = 1.0 * x, folded(x)
        for i in range(N):
            y = y + folded(v)
            v[i] = y
        return y

    loops = [traced(program, X) for program in (calls, calls_with_another)]
    assert [bool(read_only_arrays(graph)) for graph in loops] == [True, False]
