"""Region unsharing: a region that occurs in several places gets its own values in each."""

from __future__ import annotations

from collections.abc import Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_graph, rewrite_nodes, with_operands


def unshare_regions(graph: Graph) -> Graph:
    """Copy regions at their second and later occurrences.

    Copies of a node share its regions, and passes leave alone what they do not change. Code
    generation needs one place for each value.
    """
    return _unshare_nested(graph, set())


def _unshare_nested(graph: Graph, seen: set[Value]) -> Graph:
    if not any(node.regions for node in graph.nodes):
        return graph

    def unshare(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        nodes.append(
            with_operands(
                node, operands, [_unshare_region(region, seen) for region in node.regions]
            )
        )
        return nodes[-1].results

    return rewrite_nodes(graph, unshare)


def _unshare_region(region: Graph, seen: set[Value]) -> Graph:
    if not seen.isdisjoint(_values(region)):
        region = copy_graph(region)
    seen.update(_values(region))
    return _unshare_nested(region, seen)


def _values(region: Graph) -> list[Value]:
    return [*region.params, *(result for node in region.nodes for result in node.results)]
