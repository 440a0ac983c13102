"""`Checkpoints(n)`: the derivatives of the loop from at most n states, and how often trips run."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import wend
from tests.autodiff.test_strip_mine import (
    BACKENDS,
    POINTS,
    TRIPS,
    check_known_trips,
    check_policy,
    on_backends,
)
from wend.autodiff import checkpoints
from wend.base.memory import Memory

SLOTS = [1, 2, 3, 5]
POLICIES: list[Memory] = [wend.Checkpoints(n) for n in SLOTS]

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


def set_segment(monkeypatch: pytest.MonkeyPatch, trips: int) -> None:
    """Let a segment have about so many trips whose record is a number, if the state is small."""
    monkeypatch.setattr(checkpoints, "_MAX_TAPE", 16 * trips if trips > 1 else 0)


@pytest.mark.sampled
@pytest.mark.parametrize("program", POINTS)
@on_backends(POLICIES, [wend.Checkpoints(1), wend.Checkpoints(3)])  # one slot is never replaced
def test_policies_give_the_same_derivatives(
    program: Any, policy: Memory, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_segment(monkeypatch, 1)
    check_policy(program, policy, backend)


@pytest.mark.sampled
@pytest.mark.parametrize("program", POINTS)
@on_backends(POLICIES, [wend.Checkpoints(2)])
def test_segments_give_the_same_derivatives(
    program: Any, policy: Memory, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_segment(monkeypatch, 5)  # of `pendulum` 2 trips, of `rows` 10
    check_policy(program, policy, backend)


@pytest.mark.sampled
@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("trips", TRIPS)
def test_numbers_of_trips_that_a_trace_knows(
    trips: int, policy: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_segment(monkeypatch, 1)
    check_known_trips(trips, policy)


def sines(x: Any, trips: Any) -> Any:
    for _ in range(trips):
        x = np.sin(1.1 * x)
    return np.sum(x)


def counts_of(slots: int, x: Any, *numbers: int) -> list[Counter[str]]:
    """How often operations run in the gradient, by numbers of trips."""
    counts = []
    with wend.config(memory=wend.Checkpoints(slots), backend="numpy"):
        slope = wend.grad(sines)
        slope(x, 2)
        for trips in numbers:
            with wend.profile() as measured:
                assert np.all(np.isfinite(slope(x, trips)))
            counts.append(Counter[str]())
            for line in measured.lines():
                counts[-1][line.what] += line.count
    return counts


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("slots", "trips"), BOUNDS)
def test_how_often_trips_run(slots: int, trips: int) -> None:
    (counts,) = counts_of(slots, np.full(1000, 0.7), trips)
    again = counts["sin"] - trips
    assert again + counts["cos"] <= BOUNDS[slots, trips]
    assert counts["cos"] == trips  # each is differentiated once
    assert counts["list_push"] == min(slots, trips)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("slots", "trips"), BOUNDS)
def test_how_often_trips_with_small_records_run(slots: int, trips: int) -> None:
    """In segments, whose tape takes a page: each trip runs again at most once to be taped."""
    (counts,) = counts_of(slots, 0.7, trips)
    assert counts["sin"] - trips <= min(BOUNDS[slots, trips], trips * -(-trips // (slots * 512)))
    assert counts["cos"] == trips
    assert counts["list_push"] == -(-trips // 512) + trips


def test_segments_of_any_number_of_trips(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last segment may be short; slots are placed by segments as they are by trips."""
    monkeypatch.setattr(checkpoints, "_MAX_TAPE", 24)
    numbers = (0, 1, 2, 3, 4, 6, 7, 29, 30, 31, 299, 300)
    for trips, counts in zip(numbers, counts_of(4, 0.7, *numbers), strict=True):
        assert counts["cos"] == trips
        assert counts["list_push"] - trips == min(4, -(-trips // 3))
        if trips in (30, 300):
            assert counts["sin"] - trips <= 3 * BOUNDS[4, trips // 3]
    expected = wend.grad(sines)
    with wend.config(memory=wend.Checkpoints(4), backend="native"):
        actual = wend.grad(sines)
        for trips in numbers:
            np.testing.assert_allclose(actual(0.7, trips), expected(0.7, trips), rtol=1e-12)
    assert "again at most once for up to 12 trips, twice for up to 15, 3 times for up to 45" in str(
        actual.explain()
    )


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
@pytest.mark.parametrize("segment", [1, 4])
def test_an_exit_in_the_middle(segment: int, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    set_segment(monkeypatch, segment)
    expected = [wend.grad(power), wend.grad(wend.grad(power))]
    actual = [wend.grad(power), wend.grad(wend.grad(power))]
    for trips in (0, 1, 13):
        values = [f(0.6, trips) for f in expected]
        with wend.config(memory=wend.Checkpoints(3), backend=backend):
            np.testing.assert_allclose([f(0.6, trips) for f in actual], values, rtol=1e-12)


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


@pytest.mark.sampled
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [in_place, growing, reading_a_list, inner])
def test_arrays_in_place_lists_and_loops_in_the_state(
    program: Any, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_segment(monkeypatch, 1 if backend == "native" else 4)
    second = wend.grad(lambda x: np.sin(wend.grad(program)(x)))
    expected = [wend.grad(program)(0.7), second(0.7)]
    with wend.config(memory=wend.Checkpoints(4), backend=backend):
        second = wend.grad(lambda x: np.sin(wend.grad(program)(x)))
        actual = [wend.grad(program)(0.7), second(0.7)]
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_what_explain_says() -> None:
    with wend.config(memory=wend.Checkpoints(4)):
        slope = wend.grad(sines)
        slope(np.full(1000, 0.7), 30)
    assert "8,008 bytes in each of at most 4 slots of the loop" in str(slope.explain())
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
