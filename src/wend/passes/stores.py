"""Leaves assignments to variables out: a run that gives values again must not repeat them."""

from __future__ import annotations

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_node
from wend.ops.state import store


def without_stores(graph: Graph) -> Graph:
    """Put what is stored in place of every store, in regions too."""
    if not any(node.op is store for node in graph.walk()):
        return graph
    mapping: dict[Value, Value] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        operands = [mapping.get(v, v) for v in node.operands]
        if node.op is store:
            mapping[node.results[0]] = operands[1]
            continue
        copy = copy_node(node, operands, [without_stores(region) for region in node.regions])
        nodes.append(copy)
        mapping.update(zip(node.results, copy.results, strict=True))
    results = tuple(mapping.get(value, value) for value in graph.results)
    return Graph(graph.name, graph.params, tuple(nodes), results, graph.captures)
