"""How many trips lanes run, and how often they take elements, against what the elements need."""

from __future__ import annotations

import contextlib
import ctypes
import operator
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest

import wend
from wend.backends.native.emit.lanes.elements import LaneElements
from wend.backends.native.emit.lanes.refill import RefilledLoop
from wend.backends.native.emit.lanes.regions import VectorRegions
from wend.backends.native.emit.lanes.replay import _BackwardLoop

RNG = np.random.default_rng(3)
COUNT = 2000
LENGTHS = {
    "alike": np.full(COUNT, 100),
    "close": RNG.integers(100, 104, COUNT),
    "geometric": RNG.geometric(0.01, COUNT),
}
# The trips that lanes may run for one that is needed. The test of each element is one more, those
# that end first miss some, and the last elements of a chunk run alone.
MOST_TRIPS = {"alike": 1.02, "close": 1.06, "geometric": 1.35}


def decay(x: Any, n: Any) -> Any:
    while n > 0:
        x, n = 0.25 * x * x + 0.3, n - 1
    return x


def counting(
    number: ctypes.c_int64,
    method: Callable[..., Any],
    low_of: Callable[[Any], Any] = operator.attrgetter("low"),
) -> Callable[..., Any]:
    """Return a method that emits an addition to a number of this process, too."""
    at = f"inttoptr (i64 {ctypes.addressof(number)} to ptr)"

    def emit(self: Any, *args: Any) -> Any:
        low = low_of(self)
        old = low.w.define(f"load i64, ptr {at}")
        low.w.do(f"store i64 {low.w.define(f'add i64 {old}, 1')}, ptr {at}")
        return method(self, *args)

    return emit


@pytest.mark.sampled(3)
@pytest.mark.parametrize("loops", [1, 2], ids=["value", "gradient"])
@pytest.mark.parametrize("lanes", [8, 16])
@pytest.mark.parametrize("kind", LENGTHS)
def test_trips_and_refills(kind: str, lanes: int, loops: int) -> None:
    lengths, xs = LENGTHS[kind], RNG.uniform(0.1, 1.0, COUNT)
    trips, refills = ctypes.c_int64(), ctypes.c_int64()
    of_trips = mock.patch.object(VectorRegions, "end_trip", counting(trips, VectorRegions.end_trip))
    of_refills = mock.patch.object(LaneElements, "taken", counting(refills, LaneElements.taken))
    fun = decay if loops == 1 else wend.grad(decay)
    with of_trips, of_refills, wend.config(cache_dir="", threads=1):
        wend.vmap(fun, lanes=lanes)(xs, lengths)
    needed = loops * lengths.sum()
    assert needed <= lanes * trips.value <= MOST_TRIPS[kind] * needed
    groups = COUNT / lanes
    assert groups <= refills.value <= (COUNT if kind == "geometric" else 2 * groups)


def long_decay(x: Any, n: Any) -> Any:
    while n > 0:
        x = 0.25 * np.tanh(np.sin(np.exp(np.tanh(np.sin(np.exp(x)))))) + 0.3
        n = n - 1
    return x


def short_root(a: Any, n: Any) -> Any:
    x = a
    while np.abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


def test_lanes_wait_as_long_as_a_refill_takes() -> None:
    """Those of long trips for few, and those of short ones for each other."""
    lengths, xs = LENGTHS["geometric"], RNG.uniform(0.1, 1.0, COUNT)
    counted = {}
    for fun in (decay, long_decay, short_root):
        trips, refills = ctypes.c_int64(), ctypes.c_int64()
        of_trips = counting(trips, RefilledLoop._emit_trip, operator.attrgetter("elements.low"))
        of_refills = counting(refills, LaneElements.taken)
        with (
            mock.patch.object(RefilledLoop, "_emit_trip", of_trips),
            mock.patch.object(LaneElements, "taken", of_refills),
            wend.config(cache_dir="", threads=1),
        ):
            wend.vmap(fun, lanes=8)(xs, lengths)
        counted[fun] = trips.value, refills.value
    assert 8 * counted[long_decay][0] <= 1.08 * lengths.sum() < 8 * counted[decay][0]
    assert counted[long_decay][1] > 1.2 * counted[decay][1]
    assert counted[short_root][1] <= 1.1 * COUNT / 8


@pytest.mark.parametrize("kind", LENGTHS)
def test_the_backward_loop_makes_the_trips_of_the_forward_loop(kind: str) -> None:
    """Also where records fill the cache, and lanes take no more elements until they are read."""
    lengths, xs = LENGTHS[kind], RNG.uniform(0.1, 1.0, COUNT)
    numbers = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(wend.config(cache_dir="", threads=1))
        for loop in (RefilledLoop, _BackwardLoop):
            numbers.append(ctypes.c_int64())
            low_of = operator.attrgetter("elements.low")
            emit_trip = counting(numbers[-1], loop._emit_trip, low_of)
            stack.enter_context(mock.patch.object(loop, "_emit_trip", emit_trip))
        wend.vmap(wend.grad(decay), lanes=8)(xs, lengths)
    forward, backward = (number.value for number in numbers)
    assert forward == backward
    assert 8 * backward >= lengths.sum()
