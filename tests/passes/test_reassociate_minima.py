"""Minima of integers compare last what the trip before gave: values stay, chains are short."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import wend
from tests.helpers.counted_calls import count_calls
from tests.helpers.graphs import traced
from wend.ir.graph import Graph
from wend.ops import elementwise
from wend.ops.control import WhileParts, while_
from wend.passes.forward_stores import forward_stores
from wend.passes.in_bounds import mark_in_bounds
from wend.passes.pipeline import OPTIMIZE, run_passes
from wend.passes.reassociate_minima import reassociate_minima

EXTREMA = elementwise.minimum, elementwise.maximum
DTYPES = "int8", "uint8", "int32", "int64", "uint64"
FUNCTIONS: dict[str, Any] = {
    "min": min,
    "max": max,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "+": lambda x, y: x + y,
}

# A tree of minima and maxima: of what a trip reads, of what does not change, and of what the
# trips before gave
Tree = str | tuple[str, Any, Any]
LEAVES: Any = st.sampled_from(["x[k]", "x[k + 1]", "x[0]", "p", "q"])
TREES = st.recursive(
    LEAVES,
    lambda parts: st.tuples(st.sampled_from(sorted(FUNCTIONS)), parts, parts),
    max_leaves=8,
)


def value(tree: Tree, x: Any, k: Any, p: Any, q: Any) -> Any:
    if isinstance(tree, tuple):
        function, left, right = tree
        return FUNCTIONS[function](value(left, x, k, p, q), value(right, x, k, p, q))
    leaves = {"x[k]": x[k], "x[k + 1]": x[k + 1], "x[0]": x[0], "p": p, "q": q}
    return leaves[tree]


@given(trees=st.tuples(TREES, TREES), dtype=st.sampled_from(DTYPES), seed=st.integers(0, 99))
@example((("min", ("max", "x[k]", "p"), ("max", ("max", "q", "x[0]"), "x[k]")), "p"), "int8", 0)
@settings(deadline=None)
def test_as_numpy(trees: tuple[Tree, Tree], dtype: str, seed: int) -> None:
    def program(x: Any) -> Any:
        p, q = x[1], x[2]
        for k in range(6):
            p, q = value(trees[0], x, k, p, q), value(trees[1], x, k, p, q)
        return p, q

    x = np.random.default_rng(seed).integers(-20, 20, 7).astype(dtype)
    with np.errstate(over="ignore"):
        expected = program(x)
    for backend in ("numpy", "native"):
        with wend.config(backend=backend):
            assert wend.function(program)(x) == expected


def edit_distance(a: Any, b: Any) -> Any:
    row = np.arange(b.shape[0] + 1)
    for i in range(a.shape[0]):
        corner, row[0] = row[0], i + 1
        for k in range(b.shape[0]):
            here = min(row[k + 1] + 1, row[k] + 1, corner + (a[i] != b[k]))
            corner, row[k + 1] = row[k + 1], here
    return row[-1]


def steepest(a: Any, b: Any) -> Any:
    total = np.int64(0)
    for k in range(a.shape[0]):
        total = max(total + a[k], max(b[k], a[k]))
    return total


def latency(graph: Graph) -> int:
    """Return the most minima, one after another, from a carry of the inner loop to its next."""
    loop = [WhileParts.of(node) for node in graph.walk() if node.op is while_][-1]
    longest = 0
    for param, result in zip(loop.after_forwarded, loop.next_carry, strict=True):
        depths = {param: 0}
        for node in loop.after.nodes:
            depth = max((depths[x] for x in node.operands if x in depths), default=None)
            if depth is not None and node.results[0].tensor.shape == ():
                depths[node.results[0]] = depth + (node.op in EXTREMA)
        longest = max(longest, depths.get(result, 0))
    return longest


@pytest.mark.parametrize("program", [edit_distance, steepest])
def test_a_trip_waits_for_one_comparison(program: Callable[..., Any]) -> None:
    a, b = np.array([3, 1, 2, 2]), np.array([1, 3, 2, 0])
    assert latency(run_passes(traced(program, a, b), OPTIMIZE)) == 1
    assert wend.function(program)(a, b) == program(a, b)


def test_floats_stay_as_they_are() -> None:
    """With NaN and -0.0 another order gives another value."""

    def program(x: Any, y: Any) -> Any:
        least = 1.0
        for k in range(x.shape[0]):
            least = min(least, x[k], y[k])
        return least

    graph = forward_stores(mark_in_bounds(traced(program, np.ones(3), np.ones(3))))
    assert reassociate_minima(graph) is graph


def work(count: int) -> int:
    """Return how many calls of Python's functions the pass makes for so many minima in a trip."""

    def program(x: Any) -> Any:
        values = [x[k] for k in range(count)]
        for _ in range(3):
            values = [min(values[k], values[k - 1], x[k]) for k in range(count)]
        return sum(values)

    graph = traced(program, np.arange(count))
    reassociated, calls = count_calls(reassociate_minima, graph)
    assert reassociated is not graph
    return calls


def test_the_pass_is_linear_in_the_minima_of_a_trip() -> None:
    assert work(40) <= 4.5 * work(10)
