"""Flows through regions, against reachability in the one flat graph of all values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import or_

import numpy as np
import pytest

import wend
from tests.helpers.graphs import gradient, traced
from tests.helpers.programs import PROGRAMS
from wend.autodiff.vjp import linear_blocks
from wend.ir.dataflow import flow_backward, flow_forward, region_edges, region_flow, used_value
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import TABLE
from wend.ir.types import accepts, without_maybe
from wend.ops.parallel_map import parallel_map
from wend.passes.unshare_regions import unshare_regions


def graphs() -> list[Graph]:
    """Programs with loops, branches and calls, their gradients, and backward graphs with blocks."""
    sampled = PROGRAMS[::3]
    recorded = [traced(program.fun, *program.args) for program in sampled]
    joint = [gradient(program.fun, *program.args) for program in sampled]
    mapped = [traced(wend.vmap(scaled_sum, (0, None)), np.ones((3, 2)), 2.0)]
    blocks = [linear_blocks(graph, [0], [0]).backward for graph in recorded]
    return [unshare_regions(graph) for graph in (*recorded, *joint, *blocks, *mapped)]


def scaled_sum(x: np.ndarray, y: float) -> object:
    return np.sum(x) * y


GRAPHS = graphs()
Analysis = Callable[[Graph, Sequence[bool]], list[bool]]


def region_nodes(graph: Graph) -> list[Node]:
    return [node for node in graph.walk() if region_edges(node)]


def test_every_kind_of_region_node_is_tried() -> None:
    names = {node.op.name for graph in GRAPHS for node in region_nodes(graph)}
    assert names == {op.name for op in TABLE.values() if op.region_edges is not None}


def test_edges_reach_every_param_and_every_result_and_fit_their_types() -> None:
    for graph in GRAPHS:
        for node in region_nodes(graph):
            inputs = [value for _, value in region_flow(node)]
            params = [param for region in node.regions for param in region.params]
            assert {*inputs} == {*params, *node.results}
            if node.op is parallel_map:  # its edges lead from an array to its elements, and back
                continue
            for use, value in region_flow(node):
                type = used_value(use).type
                assert accepts(without_maybe(value.type), without_maybe(type), {}), (node, use)


def successors(graph: Graph) -> dict[Value, list[Value]]:
    """From each value of a graph and its regions, those that it flows into at once."""
    edges: dict[Value, list[Value]] = {}
    for node in graph.walk():
        pairs = [(used_value(use), value) for use, value in region_flow(node)]
        if not node.op.region_edges:
            pairs = [(operand, result) for operand in node.operands for result in node.results]
        for start, end in pairs:
            edges.setdefault(start, []).append(end)
    return edges


def reached(edges: dict[Value, list[Value]], starts: Sequence[Value]) -> set[Value]:
    seen, pending = set(starts), list(starts)
    while pending:
        for value in edges.get(pending.pop(), ()):
            if value not in seen:
                seen.add(value)
                pending.append(value)
    return seen


def on_regions(node: Node, analysis: Analysis) -> Callable[[int, Sequence[bool]], list[bool]]:
    return lambda k, states: analysis(node.regions[k], states)


def forward(graph: Graph, params: Sequence[bool]) -> list[bool]:
    """Whether each result depends on a marked param, by flows alone (not by predicates)."""
    marked = {param for param, flag in zip(graph.params, params, strict=True) if flag}
    for node in graph.nodes:
        flags = [operand in marked for operand in node.operands]
        states: Sequence[bool] = [any(flags)] * len(node.results)
        if node.op.region_edges:
            states = flow_forward(node, flags, or_, on_regions(node, forward)).node
        marked.update(result for result, flag in zip(node.results, states, strict=True) if flag)
    return [result in marked for result in graph.results]


def backward(graph: Graph, results: Sequence[bool]) -> list[bool]:
    """Whether each param flows into a marked result."""
    marked = {value for value, flag in zip(graph.results, results, strict=True) if flag}
    for node in reversed(graph.nodes):
        flags = [result in marked for result in node.results]
        states: Sequence[bool] = [any(flags)] * len(node.operands)
        if node.op.region_edges:
            flow = flow_backward(node, flags, or_, on_regions(node, backward), unforwarded=False)
            states = flow.node
        marked.update(value for value, flag in zip(node.operands, states, strict=True) if flag)
    return [param in marked for param in graph.params]


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_flows_in_both_directions_are_reachability(graph: Graph) -> None:
    edges = successors(graph)
    per_param = [reached(edges, [param]) for param in graph.params]
    for i, values in enumerate(per_param):
        flags = [k == i for k in range(len(graph.params))]
        assert forward(graph, flags) == [result in values for result in graph.results]
    for j, result in enumerate(graph.results):
        flags = [k == j for k in range(len(graph.results))]
        assert backward(graph, flags) == [
            any(other is result for other in graph.results[:j]) or result in values
            for values in per_param
        ]


def rotation(n: int) -> Graph:
    """A loop that hands each of its `n` carries on to the next one."""

    def rotate(*xs: float) -> object:
        def body(carry):
            i, *turned = carry
            return (i + 1, turned[-1], *turned[:-1])

        return wend.while_loop(lambda carry: carry[0] < 3, body, (0, *xs))

    return traced(rotate, *np.arange(float(n)))


def test_a_flow_takes_as_many_rounds_as_the_longest_way_round_the_loop() -> None:
    graph = rotation(5)
    (node,) = region_nodes(graph)
    runs: list[int] = []

    def transfer(region: int, params: Sequence[bool]) -> list[bool]:
        runs.append(region)
        return forward(node.regions[region], params)

    flags = [k == 1 for k in range(len(node.operands))]
    flow = flow_forward(node, flags, or_, transfer)
    assert list(flow.node) == [False, *[True] * 5]
    assert runs.count(0) == runs.count(1) == 5


def test_uses_that_no_edge_passes_on_have_the_state_that_is_said() -> None:
    graph = traced(lambda x: wend.cond(x > 0, lambda x: x + 1, lambda x: x * 2, x), 1.0)
    (node,) = region_nodes(graph)
    flow = flow_backward(node, [False], or_, lambda k, r: [False], unforwarded=True)
    assert list(flow.node) == [True, False]
