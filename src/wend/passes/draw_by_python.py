"""Leaves draws of random numbers to Python, which notes what it has given to a run."""

from __future__ import annotations

from collections.abc import Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import keep_names, rewrite_nodes, with_operands
from wend.ops.effects import host_action


def draw_by_python(graph: Graph) -> Graph:
    """Return a graph whose draws native code leaves to Python, in regions too."""
    if host_action not in graph.ops:
        return graph

    def rewrite(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        copy = with_operands(node, operands, [draw_by_python(r) for r in node.regions])
        if node.op is host_action:
            attrs = {**node.attrs, "action": node.attrs["action"].by_python()}
            copy = Node(node.op, operands, attrs, (), [x.type for x in node.results], node.source)
            keep_names(node.results, copy.results)
        nodes.append(copy)
        return copy.results

    return rewrite_nodes(graph, rewrite)
