"""The policy `"thin"`: the derivatives of the loop from about √T states, each trip run twice."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

import wend
from tests.autodiff.test_checkpoints import (
    growing,
    in_place,
    inner,
    power,
    reading_a_list,
    sines,
)
from tests.autodiff.test_strip_mine import (
    BACKENDS,
    POINTS,
    TRIPS,
    assert_same,
    check_known_trips,
    check_policy,
    derivatives,
    pendulum,
)


@pytest.mark.sampled
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", POINTS)
def test_it_gives_the_same_derivatives(program: Any, backend: str) -> None:
    check_policy(program, "thin", backend)


@pytest.mark.sampled
@pytest.mark.parametrize("trips", TRIPS)
def test_numbers_of_trips_that_a_trace_knows(trips: int) -> None:
    check_known_trips(trips, "thin")


def test_more_trips() -> None:
    args = np.array([0.4, 0.2]), 1.3
    expected, actual = derivatives(pendulum("keep")), derivatives(pendulum("thin"))
    for trips in (8, 9, 1000):
        assert_same(actual(*args, trips), expected(*args, trips))


def test_each_trip_runs_once_more_and_few_states_are_kept() -> None:
    with wend.config(memory="thin", backend="numpy"):
        slope = wend.grad(sines)
        slope(0.7, 2)
        for trips in (0, 1, 8, 9, 100, 1000, 5000):
            with wend.profile() as measured:
                slope(0.7, trips)
            counts: Counter[str] = Counter()
            for line in measured.lines():
                counts[line.what] += line.count
            assert counts["sin"] == 2 * trips
            assert counts["cos"] == trips
            # One push a record: the states, and those of the trips from one state to the next.
            states = counts["list_push"] - trips
            assert states <= max(8, math.sqrt(2 * trips))


@pytest.mark.sampled
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [in_place, growing, reading_a_list, inner])
def test_arrays_in_place_lists_and_loops_in_the_state(program: Any, backend: str) -> None:
    second = wend.grad(lambda x: np.sin(wend.grad(program)(x)))
    expected = [wend.grad(program)(0.7), second(0.7)]
    with wend.config(memory="thin", backend=backend):
        second = wend.grad(lambda x: np.sin(wend.grad(program)(x)))
        actual = [wend.grad(program)(0.7), second(0.7)]
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_exit_in_the_middle(backend: str) -> None:
    actual, expected = wend.grad(power), wend.grad(power)
    for trips in (0, 1, 13):
        value = expected(0.6, trips)
        with wend.config(memory="thin", backend=backend):
            np.testing.assert_allclose(actual(0.6, trips), value, rtol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_loop_whose_backward_pass_reads_nothing(backend: str) -> None:
    def doubled(x: Any) -> Any:
        for _ in range(30):
            x = 2.0 * x
        return x

    with wend.config(memory="thin", backend=backend):
        assert wend.grad(doubled)(0.7) == 2.0**30
        assert wend.grad(wend.grad(doubled))(0.7) == 0.0


def test_what_explain_says() -> None:
    with wend.config(memory="thin"):
        slope = wend.grad(sines)
        slope(0.7, 30)
    assert "8 bytes in each of at most √(2 T) slots of the loop" in str(slope.explain())
    assert '(memory="thin": runs each trip once more)' in str(slope.explain())
