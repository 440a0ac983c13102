"""Assignments to variables: left out, where values are only run again; to other variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import on_operands, with_nodes
from wend.ops.state import store
from wend.runtime.storage import Storage


def strip_stores(graph: Graph) -> Graph:
    """Put what is stored in place of every store, in regions too."""
    if not any(node.op is store for node in graph.walk()):
        return graph

    def put(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        if node.op is store:
            return [operands[1]]
        nodes.append(on_operands(node, operands, [strip_stores(r) for r in node.regions]))
        return nodes[-1].results

    return with_nodes(graph, put)


def with_places(graph: Graph, places: Mapping[Storage, Storage]) -> Graph:
    """Let stores be to other variables, in regions too."""
    if not any(node.attrs.get("variable") in places for node in graph.walk() if node.op is store):
        return graph

    def put(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        regions = [with_places(region, places) for region in node.regions]
        attrs = dict(node.attrs)
        if node.op is store:
            attrs["variable"] = places.get(attrs["variable"], attrs["variable"])
        types = [result.type for result in node.results]
        nodes.append(Node(node.op, operands, attrs, regions, types, node.source))
        return nodes[-1].results

    return with_nodes(graph, put)
