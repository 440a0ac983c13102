"""Gradients whose lanes take the next elements: refills are replayed, bits are those alone."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.backends.native.emit.lanes import lane_map, replay
from wend.passes import lane_maps

RNG = np.random.default_rng(1)
COUNT = 300
STARTS = RNG.uniform(0.1, 1.0, COUNT)
LENGTHS = RNG.geometric(0.08, COUNT) - 1


@pytest.fixture(params=[4, 16], autouse=True)
def lanes(request: pytest.FixtureRequest) -> Iterator[int]:
    """So many lanes, for few elements too."""
    width = request.param
    with mock.patch.multiple(lane_maps, NARROW=width, WIDE=width, MIN_ELEMENTS=0):
        yield width


@pytest.fixture(params=[1, 2000, 1 << 30], autouse=True)
def bytes_of_records(request: pytest.FixtureRequest) -> Iterator[None]:
    """So many bytes of records until lanes take no more elements."""
    with mock.patch.multiple(replay, MAX_BYTES=request.param, FEWEST_TRIPS=1):
        yield


@pytest.fixture(autouse=True)
def compiled_anew() -> Iterator[None]:
    """Every test compiles such loops."""
    with mock.patch.object(lane_map, "emit_replayed", wraps=replay.emit_replayed) as emitted:
        with wend.config(cache_dir=""):
            yield
    assert emitted.call_count


def decay(x: Any, n: Any) -> Any:
    while n > 0:
        x, n = 0.25 * x * x + 0.3, n - 1
    return x


def weighted(x: Any, n: Any) -> Any:
    """What the loop forwards, and an argument, are read after it, and by its backward loop."""
    k, y = 0, x
    while k < n:
        y, k = y * (1.0 - 0.1 * x * y) + 0.05, k + 1
    return y * y * x + k


def branching(x: Any, n: Any) -> Any:
    """Records have numbers, integers and flags."""
    k, up = 0, False
    while k < n:
        if x > 0.7:
            x, up = x * x, not up
        else:
            x = np.sqrt(x + 0.1 * k) if up else x + 0.125 * x * x
        k = k + 1
    return x


def single(x: Any, n: Any) -> Any:
    x = np.float32(x)
    while n > 0:
        x, n = x * x * np.float32(0.5) + np.float32(0.25), n - 1
    return x


def inner(x: Any, n: Any) -> Any:
    """A loop in each trip, which no derivative goes through."""
    while n > 0:
        steps, rest = 0.0, wend.stop_gradient(x)
        while rest > 0.2:
            rest, steps = 0.5 * rest, steps + 1.0
        x, n = x * (0.75 + 0.05 * steps * x), n - 1
    return x


def of_results(x: Any, n: Any) -> Any:
    """The backward loop reads what each trip has computed, which is recorded before a test."""
    while n > 0:
        x, n = np.sqrt(x + 0.3), n - 1
    return x


def of_both(x: Any, n: Any) -> Any:
    """It reads that, and what each trip began with."""
    y = x
    while n > 0:
        x, y, n = np.sqrt(x + 0.3), y * y * x + 0.1, n - 1
    return x * y


def until(x: Any, n: Any) -> Any:
    """What is recorded last has ended the loop."""
    while x < 3.0 + 0.1 * n:
        x = np.sqrt(x * x + 1.0)
    return x * x


PROGRAMS = [decay, weighted, branching, single, inner, of_results, of_both, until]


def alone(fun: Any, *columns: Any) -> Any:
    compiled = wend.function(fun)
    rows = [compiled(*row) for row in zip(*columns, strict=True)]
    return [np.array(x) for x in zip(*rows, strict=True)]


@pytest.mark.sampled(30)
@pytest.mark.parametrize("count", [7, COUNT])
@pytest.mark.parametrize("fun", PROGRAMS)
def test_values_and_gradients_have_the_bits_of_elements(fun: Any, count: int) -> None:
    xs, trips = STARTS[:count], LENGTHS[:count]
    both = wend.value_and_grad(fun)
    found = wend.vmap(both)(xs, trips)
    for x, y in zip(found, alone(both, xs, trips), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("trips", [np.zeros(40, int), np.full(40, 9), np.arange(40) ** 2])
def test_trips_that_are_none_alike_or_long(trips: Any) -> None:
    both, xs = wend.value_and_grad(decay), STARTS[:40]
    for x, y in zip(wend.vmap(both)(xs, trips), alone(both, xs, trips), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.sampled(2)
def test_flags_of_elements() -> None:
    def signed(x: Any, n: Any, up: Any) -> Any:
        while n > 0:
            x, n = (x * x + 0.1 if up else 0.5 * x - x * x), n - 1
        return x if up else -x

    ups, both = RNG.random(COUNT) < 0.5, wend.value_and_grad(signed)
    found = wend.vmap(both)(STARTS, LENGTHS, ups)
    for x, y in zip(found, alone(both, STARTS, LENGTHS, ups), strict=True):
        np.testing.assert_array_equal(x, y)


def test_an_element_with_nan_changes_no_other() -> None:
    xs = STARTS.copy()
    gradient = wend.vmap(wend.grad(weighted))
    expected = gradient(xs, LENGTHS)
    xs[[3, 4, 200]] = np.nan
    others = np.isfinite(xs)
    np.testing.assert_array_equal(gradient(xs, LENGTHS)[others], expected[others])


@pytest.mark.sampled(3)
def test_what_elements_share() -> None:
    def scaled(scale: Any, x: Any, n: Any) -> Any:
        while n > 0:
            x, n = scale * x * x + 0.3, n - 1
        return x

    def total(scale: Any) -> Any:
        return wnp.sum(wend.vmap(scaled, in_axes=(None, 0, 0))(scale, STARTS, LENGTHS))

    one = wend.grad(wend.function(scaled))
    expected = sum(one(0.25, x, n) for x, n in zip(STARTS, LENGTHS, strict=True))
    np.testing.assert_allclose(wend.grad(total)(0.25), expected, rtol=1e-12)


@pytest.mark.sampled(3)
def test_bits_depend_on_no_thread() -> None:
    xs, trips, found = np.resize(STARTS, 5000), np.resize(LENGTHS, 5000), []
    for threads in (1, 2, 5):
        with wend.config(threads=threads):
            found.append(wend.vmap(wend.grad(decay))(xs, trips))
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


@pytest.mark.sampled(3)
def test_records_of_results_in_groups() -> None:
    """Of two loops in a row, each lane waits for the longest."""

    def twice(x: Any, n: Any) -> Any:
        return of_both(decay(of_results(x, n), n), n)

    vmapped, both = wend.vmap(wend.value_and_grad(twice)), wend.value_and_grad(twice)
    results = vmapped(STARTS, LENGTHS)
    for x, y in zip(results, alone(both, STARTS, LENGTHS), strict=True):
        np.testing.assert_array_equal(x, y)
    assert "lanes, for one group" in vmapped.explain()
    wend.vmap(wend.grad(decay))(STARTS, LENGTHS)  # which is replayed, as the fixture asks


@pytest.mark.sampled(2)
def test_an_endless_element_is_interrupted() -> None:
    """Ctrl-C ends the loop that writes records; later calls are as those before."""

    def slow(x: Any, n: Any) -> Any:
        while n > 0:
            x = np.sin(np.sin(np.sin(np.sin(np.sin(np.sin(np.sin(np.sin(x))))))) + 0.1)
            n = n - 1
        return x

    slopes = wend.vmap(wend.grad(slow))
    expected = slopes(STARTS[:40], LENGTHS[:40])
    counts = LENGTHS[:40].copy()
    counts[17] = 2**40
    timer = threading.Timer(0.05, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        slopes(STARTS[:40], counts)
    timer.join()
    np.testing.assert_array_equal(slopes(STARTS[:40], LENGTHS[:40]), expected)
