"""Strip-mined loops: the derivatives of the loop, with one record for many trips."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.base.memory import Memory
from wend.ir.graph import Graph, Node
from wend.ops.control import while_

TRIPS = [0, 1, 2, 7, 20, 100]
POLICIES: list[Memory] = ["recompute", *map(wend.Every, (1, 2, 3, 5))]
BACKENDS = ["numpy", "native"]
IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"


def on_backends(policies: list[Memory], on_native: list[Memory]) -> pytest.MarkDecorator:
    """All policies on the reference; machine code of some, as that of others has other constants
    only: of all in long runs.
    """
    pairs = [("numpy", policy) for policy in policies]
    pairs += [("native", policy) for policy in (policies if IS_LONG else on_native)]
    return pytest.mark.parametrize(("backend", "policy"), pairs, ids=str)


def orbit(memory: Memory) -> Any:
    """A loop with an invariant that is differentiated, too."""

    def fun(x: Any, a: Any) -> Any:
        return wend.while_loop(
            lambda c: c[0] < 20.0,
            lambda c: (c[0] + wnp.exp(a * wnp.sin(c[1])), c[1] * 1.1 + a * c[0]),
            (x, x * 0.5),
            memory=memory,
        )[1]

    return fun


def rows(memory: Memory) -> Any:
    def fun(x: Any, a: Any) -> Any:
        steps = wnp.linspace(0.1, 1.0, 11)
        last, ys = wend.scan(lambda c, t: (wnp.sin(c * a + t), c * t), x, steps, memory=memory)
        return last + wnp.sum(ys * ys)

    return fun


def pendulum(memory: Memory, trips: int | None = None) -> Any:
    """A plain loop with a branch and an early exit, over a vector.

    The number of trips is an argument, or else known when the program is traced.
    """

    def fun(v: Any, a: Any, trips: Any = trips) -> Any:
        total = 0.0
        for k in wend.loop(range(trips), memory=memory):
            v = v + 0.1 * np.sin(a * v[::-1])
            total = total + (v[0] * v[1] if v[1] > 0.3 else v[1]) / (k + 1.0)
            if v[0] > 4.0:
                break
        return total + v[0]

    return fun


def derivatives(fun: Callable[..., Any]) -> wend.Function:
    """The value, both gradients, those of a gradient, and the tangent of a gradient: in one trace,
    for all calls that have arguments of the same shapes.
    """

    def gradient(*args: Any) -> Any:
        return wend.grad(fun)(*args)

    def all_of_them(x: Any, a: Any, *rest: Any) -> list[Any]:
        summed = wend.grad(lambda x, a: np.sum(gradient(x, a, *rest)), (0, 1))
        tangents = [np.ones(np.shape(v)) for v in (x, a)]
        return [
            fun(x, a, *rest),
            *wend.grad(fun, (0, 1))(x, a, *rest),
            *summed(x, a),
            wend.jvp(lambda x, a: gradient(x, a, *rest), (x, a), tangents)[1],
        ]

    return wend.function(all_of_them)


# Points, by program. From 25 on the loop of `orbit` makes no trip.
POINTS: dict[Any, list[Any]] = {
    orbit: [(0.5, 0.3), (25.0, 0.3)],
    rows: [(0.5, 0.3), (25.0, 0.3)],
    pendulum: [(np.array([0.4, 0.2]), 1.3, trips) for trips in TRIPS],
}


@cache
def by_keep(program: Any, backend: str) -> list[list[Any]]:
    """The derivatives at each point that `"keep"` gives."""
    with wend.config(backend=backend):
        known = derivatives(program("keep"))
        return [known(*point) for point in POINTS[program]]


def check_policy(program: Any, policy: Memory, backend: str) -> None:
    with wend.config(backend=backend):
        by_policy = derivatives(program(policy))
        for point, expected in zip(POINTS[program], by_keep(program, backend), strict=True):
            assert_same(by_policy(*point), expected)


def check_known_trips(trips: int, policy: Memory) -> None:
    *args, _ = POINTS[pendulum][0]
    expected = by_keep(pendulum, "numpy")[TRIPS.index(trips)]
    with wend.config(backend="numpy"):
        assert_same(derivatives(pendulum(policy, trips))(*args), expected)


def assert_same(actual: list[Any], expected: list[Any]) -> None:
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.sampled
@pytest.mark.parametrize("program", POINTS)
@on_backends(POLICIES, ["recompute", wend.Every(3)])
def test_policies_give_the_same_derivatives(program: Any, policy: Memory, backend: str) -> None:
    check_policy(program, policy, backend)


@pytest.mark.sampled
@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("trips", TRIPS)
def test_numbers_of_trips_that_a_trace_knows(trips: int, policy: Memory) -> None:
    check_known_trips(trips, policy)


@pytest.mark.parametrize("backend", BACKENDS)
def test_trips_that_run_again_make_no_checks(backend: str) -> None:
    def fun(x: Any) -> Any:
        def body(c: Any) -> Any:
            wend.raise_if(c > 50.0, ValueError, "{:.1f} is large", c)
            return c + wnp.exp(wnp.sin(c * x))

        return wend.while_loop(lambda c: c < 20.0 * x, body, x, memory=wend.Every(4))

    for transform in (wend.grad, lambda fun: wend.grad(wend.grad(fun))):
        derivative = wend.function(transform(fun), backend=backend)
        assert np.isfinite(derivative(0.5))
        with pytest.raises(ValueError, match="is large"):
            derivative(4.0)
        assert derivative.get_concrete_function(0.5).graph.count("raise_if") == 1


def loops(graph: Graph) -> list[Node]:
    """The loops that are not run again, wherever they stand."""
    nodes = [node for node in graph.nodes if not node.attrs.get("recompute")]
    inner = [loop for node in nodes for region in node.regions for loop in loops(region)]
    return [*(node for node in nodes if node.op is while_), *inner]


def test_a_segment_keeps_what_it_starts_from_and_no_more() -> None:
    graph = wend.grad(orbit(wend.Every(4))).get_concrete_function(0.5, 0.3).graph
    forward, backward = loops(graph)
    calls = [node for loop in (forward, backward) for node in loop.regions[1].nodes]
    assert [node.attrs for node in calls if node.op.name == "call"] == [{"recompute": True}] * 2
    (segment,) = [node for node in forward.regions[1].nodes if node.op.name == "call"]
    pushed = [
        node.operands[1]
        for region in forward.regions
        for node in region.nodes
        if node.op.name == "list_push"
    ]
    assert pushed
    assert {*pushed} <= {*forward.regions[1].params, *forward.regions[0].params}
    assert segment.regions[0].count("list_push") == 0
    assert [loop.attrs["applied"] for loop in (forward, backward)] == ["Every(4)"] * 2


def noisy(memory: Memory, seed: int) -> Any:
    def fun(x: Any) -> Any:
        key = wend.random.key(seed)
        for _ in wend.loop(range(23), memory=memory):
            key, drawn = wend.random.split(key)
            x = np.sin(x * (1.0 + 0.3 * wend.random.normal(drawn, (3,))))
        return np.sum(x)

    return fun


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "policy", ["recompute", "thin", "spill", wend.Every(5), wend.Checkpoints(3)], ids=str
)
def test_random_numbers_repeat(policy: Memory) -> None:
    x = np.linspace(0.2, 0.9, 3)
    with wend.config(backend="native"):
        expected = wend.grad(noisy("keep", 5))(x)
        np.testing.assert_allclose(wend.grad(noisy(policy, 5))(x), expected, rtol=1e-13)
        assert not np.allclose(wend.grad(noisy(policy, 6))(x), expected, rtol=1e-3)


@pytest.mark.parametrize(
    ("policy", "repeats"),
    [("keep", 0), ("recompute", 0), ("thin", 0), (wend.Checkpoints(4), 0), (wend.Every(7), 1)],
)
def test_the_test_of_a_loop_runs_once_more_than_its_trips(policy: Any, repeats: int) -> None:
    """What it says is carried to the next segment; `Every` runs it again with each trip."""

    def walk(x: Any) -> Any:
        while np.tan(x) < 1.2:
            x = x + 0.01 * np.cos(x)
        return x

    x, trips = 0.1, 0
    while np.tan(x) < 1.2:
        x, trips = x + 0.01 * np.cos(x), trips + 1
    with wend.config(memory=policy, backend="numpy"):
        slope = wend.grad(walk)
        slope(0.1)
        with wend.profile() as measured:
            slope(0.1)
    tests = sum(line.count for line in measured.lines() if line.what == "tan")
    assert tests == trips + 1 + repeats * trips
