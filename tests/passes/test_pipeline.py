"""Passes leave alone what has none of their operations, and find that out once for each graph."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import numpy as np

import wend
from wend.backends.build import passes_of
from wend.ir.graph import Graph
from wend.ir.rewrite import rewrite_nodes
from wend.passes.pipeline import run_passes

CALLS = {Graph.walk.__code__: "walk", rewrite_nodes.__code__: "rewrite"}


def passes_over(graph: Graph) -> Counter[str]:
    """Return how often the passes walk a graph or its regions, and how often they rewrite them."""
    counts: Counter[str] = Counter()

    def count(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code in CALLS and frame.f_back.f_code not in CALLS:
            counts[CALLS[frame.f_code]] += 1

    sys.setprofile(count)
    try:
        run_passes(graph, passes_of("native"))
    finally:
        sys.setprofile(None)
    return counts


def graph_of(f: Any, x: Any) -> Graph:
    return wend.function(f).get_concrete_function(x).graph


def test_straight_code_is_not_walked_and_rewritten_by_few() -> None:
    counts = passes_over(graph_of(lambda x: np.sin(x) * x + 1.0, 2.0))
    assert counts["walk"] == 0
    assert counts["rewrite"] <= 3  # fold, algebra, cse


def test_the_regions_of_a_loop_are_rewritten_by_few() -> None:
    def newton(a: Any) -> Any:
        x = a
        while np.abs(x * x - a) > 1e-10:
            x = 0.5 * (x + a / x)
        return x

    graph = graph_of(newton, 2.0)
    counts = passes_over(graph)
    assert counts["walk"] <= 12
    # Passes that look for loops skip its two regions
    assert counts["rewrite"] <= 16


def test_the_operations_of_a_graph_are_those_at_any_depth() -> None:
    def f(x: Any) -> Any:
        while x < 10.0:
            x = np.exp(x) if x > 1.0 else np.sin(x) + 1.0
        return x

    graph = graph_of(f, 0.5)
    assert graph.ops == {node.op for node in graph.walk()}
    assert graph.ops is graph.ops


def test_the_types_of_a_graph_are_those_of_all_values() -> None:
    def f(x: Any, n: Any) -> Any:
        rows = []
        for k in range(n):
            rows.append(np.sin(x) * k if k > 1 else x)
        return np.stack(rows)

    graph = wend.function(f).get_concrete_function(np.ones(3), 4).graph
    regions = [region for node in graph.walk() for region in node.regions]
    values = [value for region in (graph, *regions) for value in region.params]
    values += [value for node in graph.walk() for value in node.results]
    assert graph.types == {value.type for value in values}


def test_asking_a_graph_changes_nothing_in_it() -> None:
    graph = graph_of(lambda x: np.sin(x) * x, 2.0)
    names = [name for name in Graph.__slots__ if name != "__weakref__"]
    before = [getattr(graph, name) for name in names]
    assert graph.ops
    assert graph.types
    assert all(
        new is old for new, old in zip(map(graph.__getattribute__, names), before, strict=True)
    )
