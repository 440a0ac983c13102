"""Puts the bodies of called functions in place of the calls."""

from __future__ import annotations

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_node, inline
from wend.ops.control import CallParts, call


def inline_calls(graph: Graph) -> Graph:
    """Replace every `call` by what it calls, in regions too."""
    mapping: dict[Value, Value] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        operands = [mapping.get(v, v) for v in node.operands]
        if node.op is call:
            results = inline(inline_calls(CallParts.of(node).callee), operands, nodes)
        else:
            copy = copy_node(node, operands, [inline_calls(region) for region in node.regions])
            nodes.append(copy)
            results = copy.results
        mapping.update(zip(node.results, results, strict=True))
    new_results = tuple(mapping.get(value, value) for value in graph.results)
    return Graph(graph.name, graph.params, tuple(nodes), new_results, graph.captures)
