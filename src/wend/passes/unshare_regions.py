"""Gives a region that stands in several places values of its own in each."""

from __future__ import annotations

from collections.abc import Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_graph, on_operands, with_nodes


def unshare_regions(graph: Graph) -> Graph:
    """Copy regions that stand in a second place.

    Copies of a node share its regions, and passes leave alone what they do not change. What is
    compiled has one place for each value.
    """
    return _apart(graph, set())


def _apart(graph: Graph, taken: set[Value]) -> Graph:
    def put(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        nodes.append(on_operands(node, operands, [_own(region, taken) for region in node.regions]))
        return nodes[-1].results

    return with_nodes(graph, put)


def _own(region: Graph, taken: set[Value]) -> Graph:
    if not taken.isdisjoint(_values(region)):
        region = copy_graph(region)
    taken.update(_values(region))
    return _apart(region, taken)


def _values(region: Graph) -> list[Value]:
    return [*region.params, *(result for node in region.nodes for result in node.results)]
