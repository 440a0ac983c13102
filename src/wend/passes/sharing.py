"""Lets calls of equal bodies call one: so a graph grows by a node for each call, not by a body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wend.ir.graph import Graph, Node, Value
from wend.ir.printer import to_text
from wend.ir.rewrite import copy_node, with_nodes
from wend.ops.control import call


def share_callees(graph: Graph) -> Graph:
    """Let calls whose callees are equal, the user's lines included, hold one graph.

    Transforms treat each call by itself. What they make of one callee is equal, and is put
    together here; inner calls first, so that what is shared is compared by name.
    """
    if not _has_calls(graph, {}):
        return graph
    return _Sharing().graph(graph)


def _has_calls(graph: Graph, known: dict[Graph, bool]) -> bool:
    if graph not in known:
        known[graph] = any(
            node.op is call or any(_has_calls(region, known) for region in node.regions)
            for node in graph.nodes
        )
    return known[graph]


class _Sharing:
    """The callees met so far, by their text."""

    def __init__(self) -> None:
        self.done: dict[Graph, Graph] = {}
        self.callees: dict[str, Graph] = {}
        self.names: dict[Graph, str] = {}
        self.table: list[Any] = []  # arrays that texts refer to: of all, so equal means the same

    def graph(self, graph: Graph) -> Graph:
        """The graph with callees shared."""
        if graph not in self.done:
            self.done[graph] = self._rewritten(graph)
        return self.done[graph]

    def _rewritten(self, graph: Graph) -> Graph:
        def put(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
            regions = [self.graph(region) for region in node.regions]
            if node.op is call:
                regions = [self._one_of_equals(region) for region in regions]
            is_same = all(new is old for new, old in zip(regions, node.regions, strict=True))
            is_same = is_same and operands == [*node.operands]
            nodes.append(node if is_same else copy_node(node, operands, regions))
            return nodes[-1].results

        new = with_nodes(graph, put)
        is_same = all(a is b for a, b in zip(new.nodes, graph.nodes, strict=True))
        return graph if is_same else new

    def _one_of_equals(self, callee: Graph) -> Graph:
        if callee in self.names:
            return callee
        text = to_text(callee, table=self.table, sources=True, named=self.names)
        found = self.callees.setdefault(f"{callee.name} {text}", callee)
        self.names.setdefault(found, f"#{len(self.names)}")
        return found
