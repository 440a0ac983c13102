"""Arrays of one number, or that count, are computed where loops read their elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
from tests.helpers.graphs import traced
from wend.backends.build import passes_of
from wend.ir.graph import Graph
from wend.ops import creating, elementwise, shaping
from wend.ops.control import WhileParts, while_
from wend.passes.pipeline import run_passes

N, WINDOW = 40, 12  # a loop of fewer trips would be unrolled


def windows(x: Any, w: Any) -> Any:
    """The trips of `i` run at once: they read elements of `x` at `i + k`."""
    total = 0.0
    for i in range(N):
        s = 0.0
        for k in range(WINDOW):
            s += x[i + k] * w[k]
        total += s * s
    return total


def added_in_each_trip(x: Any, w: Any) -> Any:
    ones, count = np.full(N, w[0]), np.arange(N)
    y = x[:N]
    for _ in range(30):
        y = np.sin(y) * ones + count
    return y


def added_in_an_inner_loop(x: Any, w: Any) -> Any:
    ones = np.full(N, w[0])
    y = x[:N]
    for _ in range(3):
        for _ in range(4):
            y = np.sin(y) + ones
        y = y * ones
    return y


def read_by_position(x: Any, w: Any) -> Any:
    """An array of many numbers is not made again in each trip for one of them."""
    ones, y = np.full(5 * N, w[0]), x[0]
    for k in range(N):
        y = np.sin(y) + ones[k] * np.full(4 * N, w[1])[k]
    return y


def changed_in_place(x: Any, w: Any) -> Any:
    ones = np.full(N, w[0])
    for k in range(N):
        ones[k] += x[k]
    return ones


def carried(x: Any, w: Any) -> Any:
    start = np.full(N, w[0])
    total = np.zeros(N)
    for k in range(3):
        y = start
        for _ in range(4):
            y = np.sin(y) + x[:N] * k
        total = total + y + start
    return total


PROGRAMS = [
    windows,
    added_in_each_trip,
    added_in_an_inner_loop,
    read_by_position,
    changed_in_place,
    carried,
]
X, W = np.linspace(0.1, 2.0, N + WINDOW), np.cos(np.arange(float(WINDOW)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_values_and_gradients(program: Any, backend: str) -> None:
    weights = np.sin(np.arange(np.size(program(X, W))))
    with wend.config(backend=backend):
        np.testing.assert_allclose(wend.function(program)(X, W), program(X, W), rtol=1e-13)
        gradient = wend.function(wend.grad(lambda x: np.sum(weights * program(x, W))))
        moved = np.sum(weights * program_along(program, X)) * 1e30
        np.testing.assert_allclose(gradient(X) @ np.cos(X), moved, rtol=1e-11)


def program_along(program: Any, x: Any) -> Any:
    """Return the imaginary part of a program of NumPy for a complex step along cos(x)."""

    class Numbers:
        """NumPy with complex zeros, in which the program stores."""

        def __getattr__(self, name: str) -> Any:
            return getattr(np, name)

        @staticmethod
        def zeros(n: int) -> Any:
            return np.zeros(n, complex)

        @staticmethod
        def full(n: int, x: Any) -> Any:
            return np.full(n, x, complex)

    names = {**program.__globals__, "np": Numbers()}
    complex_program = type(program)(program.__code__, names)
    return np.imag(complex_program(x + 1e-30j * np.cos(x), W))


def loops(graph: Graph) -> list[WhileParts]:
    return [WhileParts.of(node) for node in graph.walk() if node.op is while_]


def fills(region: Graph) -> int:
    """Return how many nodes of a region count, or repeat a number."""
    return sum(node.op in (creating.iota, shaping.broadcast_to) for node in region.nodes)


@pytest.mark.parametrize("program", [windows, added_in_each_trip, added_in_an_inner_loop])
def test_loops_take_no_array_that_their_code_computes(program: Any) -> None:
    graph = run_passes(traced(program, X, W), passes_of("native"))
    invariants = [x for loop in loops(graph) for x in loop.invariants]
    made = (x.node.op for x in invariants if x.node is not None)
    assert not {creating.iota, shaping.broadcast_to}.intersection(made)
    assert sum(fills(loop.after) for loop in loops(graph)) > 0


def invariant(x: Any, w: Any) -> Any:
    """What repeats a number here is a factor of what no trip changes."""
    y, total = x[:N], 0.0
    for k in range(N):
        y = 0.5 * y + np.exp(-0.5 * x[:N])
        total += (2.0 * x)[k] + (np.arange(N) * w[0])[k]
    return y * total


def test_what_reads_a_fill_leaves_the_loop() -> None:
    graph = run_passes(traced(invariant, X, W), passes_of("native"))
    (loop,) = loops(graph)
    assert elementwise.exp not in loop.after.ops
    # 0.5 * y and its sum with the exponential are what is left for arrays
    arrays = [x for node in loop.after.nodes for x in node.results if x.tensor.shape == (N,)]
    assert len(arrays) == 3
    np.testing.assert_allclose(wend.function(invariant)(X, W), invariant(X, W), rtol=1e-13)


@pytest.mark.parametrize("program", [read_by_position, changed_in_place])
def test_arrays_that_are_read_by_position_stay_outside(program: Any) -> None:
    graph = run_passes(traced(program, X, W), passes_of("native"))
    assert [fills(loop.after) for loop in loops(graph)] == [0]
