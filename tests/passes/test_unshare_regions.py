"""Passes share what they leave as it is, and what is compiled has one place for each value."""

from __future__ import annotations

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.ir.graph import Graph, Value
from wend.ir.rewrite import with_operands
from wend.passes.merge_ifs import merge_ifs
from wend.passes.pipeline import CANONICALIZE, OPTIMIZE, run_passes
from wend.passes.unshare_regions import unshare_regions


def looping(x):
    while x < 10.0:
        x = x * 2.0 if x > 3.0 else x + 1.0
    return x


def twice(x):
    part = wend.function(looping)
    return part(x) + part(x * 0.5)


def values(graph: Graph) -> list[Value]:
    found = [*graph.params]
    for node in graph.nodes:
        found += node.results
        for region in node.regions:
            found += values(region)
    return found


def rebuild_graph(fun, *args) -> Graph:
    return wend.function(fun).get_concrete_function(*args).graph


@pytest.mark.parametrize("fun", [twice, wend.grad(twice), wend.grad(wend.grad(twice))])
def test_what_is_run_has_one_place_for_each_value(fun) -> None:
    optimized = run_passes(rebuild_graph(fun, 2.0), OPTIMIZE)
    found = values(optimized)
    assert len({*found}) == len(found)
    assert unshare_regions(optimized) is optimized


@pytest.mark.parametrize("fun", [looping, wend.grad(looping), lambda x: wnp.sin(x) * x])
def test_passes_that_find_nothing_to_do_give_the_graph_itself(fun) -> None:
    graph = rebuild_graph(fun, 2.0)
    for transform in CANONICALIZE:
        assert transform(graph) is graph
    optimized = run_passes(run_passes(graph, OPTIMIZE), OPTIMIZE)
    for transform in OPTIMIZE:
        if transform is not merge_ifs:  # which makes each `if` anew
            assert transform(optimized) is optimized, transform


def test_a_node_is_copied_where_anything_is_another() -> None:
    graph = rebuild_graph(looping, 2.0)
    loop = graph.nodes[-1]
    assert with_operands(loop, list(loop.operands), list(loop.regions)) is loop
    assert with_operands(loop, list(loop.operands), [loop.regions[0], loop.regions[0]]) is not loop
    other = [Value(operand.type) for operand in loop.operands]
    assert with_operands(loop, other).operands == tuple(other)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_function_that_is_called_twice(backend: str) -> None:
    with wend.config(backend=backend):
        value, slope = wend.value_and_grad(twice)(np.float64(2.0))
    assert value == twice(2.0)
    assert slope == wend.grad(looping)(2.0) + 0.5 * wend.grad(looping)(1.0)
