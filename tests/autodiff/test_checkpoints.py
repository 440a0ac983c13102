"""`Checkpoints(n)`: the derivatives of the loop from at most n states, and how often trips run."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import wend
from tests.autodiff.test_strip_mine import (
    BACKENDS,
    TRIPS,
    assert_same,
    derivatives,
    orbit,
    pendulum,
    rows,
)

SLOTS = [1, 2, 3, 5]
POLICIES = [wend.Checkpoints(n) for n in SLOTS]

# By slots and trips: how often the body may run in the backward pass. Equinox needs as many.
BOUNDS = {
    (4, 10): 16,
    (4, 100): 403,
    (16, 100): 184,
    (32, 1000): 3330,
    (64, 1000): 1936,
    (1, 20): 210,
    (2, 0): 0,
    (5, 1): 1,
    (5, 5): 5,
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [orbit, rows])
@pytest.mark.parametrize("x", [0.5, 25.0])  # 25: the first loop makes no trip
def test_policies_give_the_same_derivatives(program: Any, x: float, backend: str) -> None:
    with wend.config(backend=backend):
        expected = derivatives(program("keep"), x, 0.3)
        for policy in (wend.Checkpoints(2), wend.Checkpoints(5)):
            assert_same(derivatives(program(policy), x, 0.3), expected)


@pytest.mark.sampled
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("trips", TRIPS)
def test_any_number_of_trips(trips: int, policy: Any, backend: str) -> None:
    args = np.array([0.4, 0.2]), 1.3
    with wend.config(backend=backend):
        expected = derivatives(pendulum("keep", trips), *args)
        assert_same(derivatives(pendulum(policy, trips), *args), expected)


def sines(x: Any, trips: Any) -> Any:
    for _ in range(trips):
        x = np.sin(1.1 * x)
    return x


@pytest.mark.parametrize(("slots", "trips"), BOUNDS)
def test_how_often_trips_run(slots: int, trips: int) -> None:
    with wend.config(memory=wend.Checkpoints(slots), backend="numpy"):
        slope = wend.grad(sines)
        assert slope(0.7, 2)
        with wend.profile() as measured:
            slope(0.7, trips)
    counts: Counter[str] = Counter()
    for line in measured.lines():
        counts[line.what] += line.count
    again = counts["sin"] - trips
    assert again + counts["cos"] <= BOUNDS[slots, trips]
    assert counts["cos"] == trips  # each is differentiated once
    assert counts["list_push"] == min(slots, trips)


def power(x: Any, trips: Any) -> Any:
    """A loop whose `before` computes what is forwarded, and that ends in the middle of a trip."""
    y = x
    while True:
        z = y * np.cos(x)
        trips = trips - 1
        if trips < 0:
            break
        y = z + 0.1 * y * y
    return z + y


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("trips", [0, 1, 13])
def test_an_exit_in_the_middle(trips: int, backend: str) -> None:
    expected = [wend.grad(power)(0.6, trips), wend.grad(wend.grad(power))(0.6, trips)]
    with wend.config(memory=wend.Checkpoints(3), backend=backend):
        actual = [wend.grad(power)(0.6, trips), wend.grad(wend.grad(power))(0.6, trips)]
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


def in_place(x: Any) -> Any:
    y = np.zeros(40) + x
    for k in range(39):
        y[k + 1] = np.sin(y[k]) * 1.1 + 0.5 * y[k + 1]
    return np.sum(y * y)


def growing(x: Any) -> Any:
    out = []
    for k in range(30):
        x = np.sin(x) + 0.1 * k
        out.append(x)
    return np.sum(np.stack(out) ** 2)


def reading_a_list(x: Any) -> Any:
    out = [x]
    for k in range(30):
        out.append(np.sin(out[k]) + 0.1 * k)
    return np.sum(np.stack(out) ** 2)


def inner(x: Any) -> Any:
    for k in range(12):
        y = x
        while np.abs(y) > 0.05:
            y = 0.5 * np.sin(y)
        x = x + y - 0.01 * k * x
    return x


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [in_place, growing, reading_a_list, inner])
def test_arrays_in_place_lists_and_loops_in_the_state(program: Any, backend: str) -> None:
    second = wend.grad(lambda x: np.sin(wend.grad(program)(x)))
    expected = [wend.grad(program)(0.7), second(0.7)]
    with wend.config(memory=wend.Checkpoints(4), backend=backend):
        second = wend.grad(lambda x: np.sin(wend.grad(program)(x)))
        actual = [wend.grad(program)(0.7), second(0.7)]
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_what_explain_says() -> None:
    with wend.config(memory=wend.Checkpoints(4)):
        slope = wend.grad(sines)
        slope(0.7, 30)
    assert "8 bytes in each of at most 4 slots of the loop" in str(slope.explain())
    again = (
        "runs each trip again at most once for up to 5 trips, "
        "twice for up to 15, 3 times for up to 35"
    )
    assert f"(memory=wend.Checkpoints(4): {again})" in str(slope.explain())


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_loop_whose_backward_pass_reads_nothing(backend: str) -> None:
    def doubled(x: Any) -> Any:
        for _ in range(30):
            x = 2.0 * x
        return x

    with wend.config(memory=wend.Checkpoints(3), backend=backend):
        assert wend.grad(doubled)(0.7) == 2.0**30
        assert wend.grad(wend.grad(doubled))(0.7) == 0.0
