"""Loops and branches out of primitives; graphs that are neither are refused by node."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from tests.helpers.dataflow import check_round_trip
from tests.helpers.graphs import traced

import wend
from wend.backends.dataflow.graph import DataflowGraph
from wend.backends.dataflow.node import DataflowNode, Output, Primitive
from wend.backends.dataflow.printer import equal
from wend.base.errors import GraphError
from wend.ir import TensorType
from wend.ops import elementwise

F64, BOOL = TensorType(np.dtype("f8"), ()), TensorType(np.dtype("?"), ())


def nested(x, n):
    total = 0.0
    for i in range(n):
        y = x
        while y < 10.0:
            y = y * 2.0 if i % 2 == 0 else y + 3.0
        total += y
    return total


def test_nested_loops_and_branches():
    check_round_trip(traced(nested, 1.5, np.int64(4)))


def test_the_order_of_nodes_does_not_matter():
    graph = wend.lower(traced(wend.grad(nested), 1.5, np.int64(4)))
    nodes = [*graph.nodes]
    for seed in range(5):
        random.Random(seed).shuffle(nodes)
        again = DataflowGraph(graph.name, graph.params, tuple(nodes), graph.results, graph.captures)
        assert equal(again, graph)
        back = wend.functionalize(again)
        args = [np.float64(1.5), np.int64(4), np.float64(1.0)][: len(back.params)]
        runs = [
            wend.backends.numpy.backend.BACKEND.compile(g)(args)
            for g in (back, wend.functionalize(graph))
        ]
        np.testing.assert_array_equal(*runs)


def loop(change: Callable[[dict[str, DataflowNode]], None]) -> DataflowGraph:
    """`while v < x: v = v + v`, after a change."""
    x = Output(F64, name="x")
    enter = DataflowNode(Primitive.ENTER, [x], [F64], attrs={"frame": "w", "is_constant": False})
    bound = DataflowNode(Primitive.ENTER, [x], [F64], attrs={"frame": "w", "is_constant": True})
    merge = DataflowNode(Primitive.MERGE, enter.outputs, [F64])
    test = DataflowNode(elementwise.lt, [*merge.outputs, *bound.outputs], [BOOL])
    cond = DataflowNode(Primitive.LOOP_COND, test.outputs, [BOOL])
    switch = DataflowNode(Primitive.SWITCH, [*merge.outputs, *cond.outputs], [F64, F64])
    add = DataflowNode(elementwise.add, [switch.outputs[1]] * 2, [F64])
    again = DataflowNode(Primitive.NEXT_ITERATION, add.outputs, [F64])
    merge.inputs = (*merge.inputs, *again.outputs)
    leave = DataflowNode(Primitive.EXIT, switch.outputs[:1], [F64])
    nodes = {
        "enter": enter, "bound": bound, "merge": merge, "test": test, "cond": cond,
        "switch": switch, "add": add, "again": again, "leave": leave,
    }  # fmt: skip
    change(nodes)
    return DataflowGraph("loop", (x,), tuple(nodes.values()), nodes["leave"].outputs)


def test_a_loop_made_by_hand():
    assert wend.functionalize(loop(lambda nodes: None)).count("while") == 1


def _second_cond(nodes):
    nodes["other"] = DataflowNode(Primitive.LOOP_COND, nodes["test"].outputs, [BOOL])


def _no_cond(nodes):
    nodes["switch"].inputs = (nodes["merge"].outputs[0], nodes["test"].outputs[0])


def _wrong_frame(nodes):
    nodes["merge"].inputs = nodes["merge"].inputs[::-1]


def _past_the_switch(nodes):
    nodes["add"].inputs = (nodes["merge"].outputs[0], nodes["switch"].outputs[1])


def _exit_of_nothing(nodes):
    nodes["leave"].inputs = (nodes["switch"].outputs[1],)


def _cycle(nodes):
    nodes["add"].inputs = (nodes["add"].outputs[0], nodes["switch"].outputs[1])


def _lone_merge(nodes):
    both = [nodes["leave"].outputs[0], nodes["leave"].outputs[0]]
    nodes["join"] = DataflowNode(Primitive.MERGE, both, [F64])


def _no_selector(nodes):
    nodes["switch"].inputs = nodes["switch"].inputs[:1]


def _no_frame(nodes):
    nodes["enter"].attrs = {}


def _next_to_nowhere(nodes):
    nodes["lost"] = DataflowNode(Primitive.NEXT_ITERATION, nodes["add"].outputs, [F64])


def _two_exits_of_two_loops(nodes):
    nodes["bound"].attrs = {"frame": "other", "is_constant": True}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_second_cond, "LoopCond is the second one of w"),
        (_no_cond, "NextIteration is not after the test of a loop"),
        (_wrong_frame, "Merge of w takes an Enter, then a NextIteration"),
        (_past_the_switch, "add gives a value|add takes values of two places|Merge gives a value"),
        (_exit_of_nothing, "Exit takes something else than what a Switch gives at the end"),
        (_cycle, "add is on a cycle that passes no NextIteration"),
        (_lone_merge, "Merge must join the ways of one Switch in order; input 0 is none of them"),
        (_no_selector, "Switch takes a value and a selector, not 1 inputs"),
        (_no_frame, "Enter has no frame"),
        (_next_to_nowhere, "NextIteration must lead to one Merge of w"),
        (_two_exits_of_two_loops, "takes values of two places"),
    ],
)
def test_refusals_name_the_node(change, message):
    with pytest.raises(GraphError, match=message):
        wend.functionalize(loop(change))


def test_a_result_inside_a_loop_is_refused():
    graph = loop(lambda nodes: None)
    inside = next(node for node in graph.nodes if node.name == "add").outputs
    with pytest.raises(GraphError, match="add is in a loop or branch, and gives a result"):
        wend.functionalize(DataflowGraph("loop", graph.params, graph.nodes, inside))
