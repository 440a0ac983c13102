"""Lets calls of equal bodies call one: so a graph grows by a node for each call, not by a body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wend.ir.graph import Graph, Node, Value
from wend.ir.printer import to_text
from wend.ir.rewrite import on_operands, with_nodes
from wend.ops.control import call


def dedup_callees(graph: Graph) -> Graph:
    """Let calls whose callees are equal, the user's lines included, hold one graph.

    Transforms treat each call by itself. What they make of one callee is equal, and is put
    together here; inner calls first, so that what is shared is compared by name.
    """
    callees: set[Graph] = set()
    _note_callees(graph, callees, set())
    return graph if len(callees) < 2 else _Sharing().graph(graph)


def _note_callees(graph: Graph, callees: set[Graph], known: set[Graph]) -> None:
    known.add(graph)
    for node in graph.nodes:
        if node.op is call:
            callees.update(node.regions)
        for region in node.regions:
            if region not in known:
                _note_callees(region, callees, known)


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
            nodes.append(on_operands(node, operands, regions))
            return nodes[-1].results

        return with_nodes(graph, put)

    def _one_of_equals(self, callee: Graph) -> Graph:
        if callee in self.names:
            return callee
        text = to_text(callee, table=self.table, sources=True, named=self.names)
        found = self.callees.setdefault(f"{callee.name} {text}", callee)
        self.names.setdefault(found, f"#{len(self.names)}")
        return found
