"""Loops in lanes: as many trips as each element needs, whatever the number of lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.graphs import traced
from tests.helpers.programs import PROGRAMS, Program
from tests.programs.test_vmap import batch, moved
from wend.backends.numpy.backend import BACKEND
from wend.ir import Graph, verify
from wend.passes import batch_lanes
from wend.passes.batch_maps import batch_maps
from wend.passes.inline import inline_calls
from wend.passes.pipeline import OPTIMIZE, run_passes

COUNT = 7


@pytest.fixture(params=[1, 2, 3, 5])
def lanes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """So many lanes, for few elements too."""
    monkeypatch.setattr(batch_lanes, "LANES", request.param)
    monkeypatch.setattr(batch_lanes, "MIN_ELEMENTS", 0)
    return request.param


def root(a: Any) -> Any:
    x = a
    while np.abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


def grow(x: Any, limit: Any) -> Any:
    n = 0
    while x < limit:
        x, n = 1.1 * x + 0.01, n + 1
    return x, n


class Trips:
    """Counts the trips of the loops of a run."""

    count = 0

    def saw(self, node: Any, operands: Any, results: Any) -> None: ...

    def enter(self, loop: Any) -> None: ...

    def next_trip(self) -> None:
        self.count += 1

    def leave(self) -> None: ...


def batched(fun: Any, *args: Any) -> Graph:
    return verify(batch_maps(inline_calls(traced(fun, *args))))


def same_bits(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(found, expected)
    assert np.asarray(found).dtype == np.asarray(expected).dtype


@pytest.mark.sampled(30)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_whole_programs(program: Program, lanes: int) -> None:
    rows = [[moved(arg, (3 * k) % 5) for arg in program.args] for k in range(COUNT)]
    found = wend.vmap(program.fun)(*batch(rows))
    expected = [program.fun(*row) for row in rows]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.sampled(30)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_tangents(program: Program, lanes: int) -> None:
    rows = [[moved(arg, (3 * k) % 5) for arg in program.args] for k in range(COUNT)]
    columns = batch(rows)
    ones = [np.ones_like(c) if c.dtype.kind == "f" else None for c in columns]

    def tangent(row: Any, direction: Any) -> Any:
        return wend.jvp(program.fun, tuple(row), tuple(direction))[1]

    expected = [
        tangent(row, [None if t is None else t[k] for t in ones]) for k, row in enumerate(rows)
    ]
    found = wend.vmap(tangent)(columns, ones)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 256, 257, 700])
def test_numbers_of_elements(count: int, backend: str) -> None:
    a = np.exp(np.random.default_rng(count).normal(size=count) * 3)
    one = wend.function(root)
    with wend.config(backend=backend):
        same_bits(wend.vmap(root)(a), np.array([one(x) for x in a], float))


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_numbers_of_elements_that_only_the_run_knows(backend: str) -> None:
    one, spec = wend.function(grow), wend.TensorSpec([None], "float64")
    mapped = wend.function(
        lambda x, limit: wend.vmap(grow, (None, 0))(x, limit),
        input_signature=[wend.TensorSpec([], "float64"), spec],
    )
    with wend.config(backend=backend):
        for count in (0, 1, 5, 300, 40, 257):
            limit = np.random.default_rng(count).exponential(size=count)
            found = mapped(0.1, limit)
            expected = [one(0.1, x) for x in limit]
            same_bits(found[0], np.array([x for x, _ in expected], float))
            same_bits(found[1], np.array([n for _, n in expected], int))


def test_the_cost_is_the_sum_of_the_trips(lanes: int) -> None:
    """Lanes that wait for others are few, although one element makes ten times the trips."""
    limits = np.array([1e3] * 60)
    limits[7] = 1e30
    expected = [grow(0.1, limit)[1] for limit in limits]
    counter = Trips()
    graph = run_passes(traced(wend.vmap(grow, (None, 0)), 0.1, limits), OPTIMIZE)
    _, trips = BACKEND.compile_observed(graph, counter)([np.float64(0.1), limits])
    same_bits(trips, np.array(expected))
    longest = max(expected)
    assert counter.count <= (sum(expected) - longest) / lanes * 4 / 3 + longest + 10 * lanes


def test_loops_inside_loops_that_all_elements_share(lanes: int) -> None:
    def fun(a):
        total = 0.0
        for k in range(5):
            total = total + root(a + k)
        return total

    a = np.array([0.5, 1.0, 9.0, 1e6, 3.0, 2.0])
    graph = batched(wend.vmap(fun), a)
    assert graph.count("parallel_map") == 0
    same_bits(wend.vmap(fun)(a), [wend.function(fun)(x) for x in a])


def test_what_each_element_reads_follows_it(lanes: int) -> None:
    def fun(x, step, shift):
        while x < 10.0:
            x = x + step * shift
        return x - shift

    x, step = np.arange(6.0), np.array([1.0, 0.3, 2.0, 7.0, 0.1, 1.5])
    found = wend.vmap(fun, (0, 0, None))(x, step, 0.7)
    same_bits(found, [wend.function(fun)(*row, 0.7) for row in zip(x, step, strict=True)])


def test_nan_and_inf_of_one_element_stay_there(lanes: int) -> None:
    found, trips = wend.vmap(grow)(np.array([0.1, np.nan, 0.2, np.inf, 5.0]), np.full(5, 4.0))
    expected = [wend.function(grow)(x, 4.0) for x in (0.1, np.nan, 0.2, np.inf, 5.0)]
    same_bits(found, [x for x, _ in expected])
    same_bits(trips, [n for _, n in expected])


def test_small_vectors_have_lanes(lanes: int) -> None:
    def fun(v):
        while wnp.sum(v * v) < 100.0:
            v = 1.5 * v + 0.1
        return v

    v = np.arange(14.0).reshape(7, 2) / 3
    assert batched(wend.vmap(fun), v).count("parallel_map") == 0
    np.testing.assert_allclose(wend.vmap(fun)(v), [wend.function(fun)(x) for x in v], rtol=1e-14)


def test_loops_that_may_fail_have_none() -> None:
    def fun(k, table):
        while table[k] > 0:
            k = k + 1
        return k

    table, starts = np.array([1.0, 1.0, 0.0, 2.0, 0.0]), np.arange(40) % 5
    assert batched(wend.vmap(fun, (0, None)), starts, table).count("parallel_map") == 1
    found = wend.vmap(fun, (0, None))(starts, table)
    same_bits(found, np.array([2, 2, 2, 4, 4] * 8))
