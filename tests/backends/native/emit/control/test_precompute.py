"""What backward loops compute ahead, eight trips at once: the same numbers as without."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.helpers.graphs import gradient, loops
from tests.helpers.shares import sized

import wend
import wend.numpy as wnp
from wend.backends.native.backend import BACKEND
from wend.backends.native.emit.control.precompute import find_lookahead
from wend.ops.control import WhileParts

TRIPS = (0, 1, 2, 7, 8, 9, 15, 16, 17, 50)


def one_record(x: Any, a: Any, trips: Any) -> Any:
    return wend.fori_loop(0, trips, lambda i, x: x + a * wnp.sin(x) * 1e-2 + 1e-2, x)


def two_records(x: Any, a: Any, trips: Any) -> Any:
    """Records of two numbers, and of each more than one function."""

    def step(i: Any, c: Any) -> Any:
        x, y = c
        return 0.9 * x + a * wnp.cos(y) * wnp.exp(-x * x), wnp.tanh(x) - 0.1 * wnp.sin(y)

    x, y = wend.fori_loop(0, trips, step, (x, 0.3 * x))
    return x + y * a


def until(x: Any, a: Any, bound: Any) -> Any:
    """As many trips as it takes, with functions that have limits."""
    step = lambda x: x + 0.05 / wnp.log1p(x) + a * wnp.sqrt(x) * 0.01  # noqa: E731
    return wend.while_loop(lambda x: x < bound, step, x)


def in_a_loop(x: Any, a: Any, trips: Any) -> Any:
    """Trips from 0 on, so that vectors start anew each time."""

    def outer(i: Any, x: Any) -> Any:
        return wend.fori_loop(0, 7 * i, lambda j, x: x * 0.99 + a * wnp.sin(x) * 1e-2, x)

    return wend.fori_loop(0, 4, outer, x) + 0.0 * trips


def agree(fun: Callable[..., Any], *args: Any) -> None:
    found = []
    for backend in ("numpy", "native"):
        with wend.config(backend=backend):
            found.append(fun(*args))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("fun", [one_record, two_records, in_a_loop])
def test_trips(fun: Callable[..., Any]) -> None:
    for trips in TRIPS if fun is not in_a_loop else TRIPS[:1]:
        agree(wend.grad(fun, (0, 1)), 0.4, 0.7, trips)


@pytest.mark.parametrize("fun", [one_record, two_records])
def test_second_order(fun: Callable[..., Any]) -> None:
    for trips in (0, 1, 9, 20):
        agree(wend.grad(wend.grad(fun), 1), 0.4, 0.7, trips)


@given(st.floats(0.3, 3.0), st.floats(-0.5, 0.5), st.floats(0.0, 9.0))
@settings(max_examples=sized(12, 30))
def test_trips_that_data_decide(x: float, a: float, bound: float) -> None:
    agree(wend.grad(until, (0, 1)), x, a, bound)


@pytest.mark.parametrize("start", [np.nan, np.inf, 0.0, -0.0, 1e300])
def test_odd_numbers(start: float) -> None:
    agree(wend.grad(one_record, (0, 1)), start, 0.7, 20)


@pytest.mark.parametrize("fun", [one_record, two_records])
def test_it_is_in_vectors(fun: Callable[..., Any]) -> None:
    assert "sincos.v8" in BACKEND.text(gradient(fun, 0.4, 0.7, 3))


def test_what_pays_nothing_is_left_alone() -> None:
    def fun(x: Any) -> Any:
        return wend.while_loop(lambda x: x < 9.0, lambda x: x * x + 0.1, x)

    for loop in loops(gradient(fun, 1.1)):
        assert find_lookahead(WhileParts.of(loop)) is None
