"""Passes over stores to variables: removal, where values are only recomputed, and retargeting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import rewrite_nodes, with_operands
from wend.ops.state import store
from wend.runtime.storage import Storage


def strip_stores(graph: Graph) -> Graph:
    """Replace every store by the value stored, in regions too."""
    if store not in graph.ops:
        return graph

    def strip(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        if node.op is store:
            return [operands[1]]
        nodes.append(with_operands(node, operands, [strip_stores(r) for r in node.regions]))
        return nodes[-1].results

    return rewrite_nodes(graph, strip)


def retarget_stores(graph: Graph, storages: Mapping[Storage, Storage]) -> Graph:
    """Redirect stores to other variables, in regions too."""
    if not any(node.attrs.get("variable") in storages for node in graph.walk() if node.op is store):
        return graph

    def retarget(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        regions = [retarget_stores(region, storages) for region in node.regions]
        attrs = dict(node.attrs)
        if node.op is store:
            attrs["variable"] = storages.get(attrs["variable"], attrs["variable"])
        types = [result.type for result in node.results]
        nodes.append(Node(node.op, operands, attrs, regions, types, node.source))
        return nodes[-1].results

    return rewrite_nodes(graph, retarget)
