"""Assignments to variables: left out, where values are only run again; to other variables."""

from __future__ import annotations

from collections.abc import Mapping

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_node
from wend.ops.state import store
from wend.runtime.place import Place


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


def with_places(graph: Graph, places: Mapping[Place, Place]) -> Graph:
    """Let stores be to other variables, in regions too."""
    if not any(node.attrs.get("variable") in places for node in graph.walk() if node.op is store):
        return graph
    mapping: dict[Value, Value] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        operands = [mapping.get(v, v) for v in node.operands]
        regions = [with_places(region, places) for region in node.regions]
        attrs = dict(node.attrs)
        if node.op is store:
            attrs["variable"] = places.get(attrs["variable"], attrs["variable"])
        types = [result.type for result in node.results]
        copy = Node(node.op, operands, attrs, regions, types, node.source)
        nodes.append(copy)
        mapping.update(zip(node.results, copy.results, strict=True))
    results = tuple(mapping.get(value, value) for value in graph.results)
    return Graph(graph.name, graph.params, tuple(nodes), results, graph.captures)
