"""Callee deduplication: calls of equal bodies share one graph.

A graph then grows by one node for each call, not by one body.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from wend.ir.graph import Graph, Node, Value
from wend.ir.printer import to_text
from wend.ir.rewrite import rewrite_nodes, with_operands
from wend.ops.control import call


def dedup_callees(graph: Graph) -> Graph:
    """Make calls whose callees are equal, source lines included, hold one graph.

    Transforms treat each call separately, and produce equal callees; those are merged here. Inner
    calls come first, so that shared callees are compared by name.
    """
    callees: set[Graph] = set()
    _collect_callees(graph, callees, set())
    return graph if len(callees) < 2 else _CalleeTable().graph(graph)


def _collect_callees(graph: Graph, callees: set[Graph], visited: set[Graph]) -> None:
    visited.add(graph)
    for node in graph.nodes:
        if node.op is call:
            callees.update(node.regions)
        for region in node.regions:
            if region not in visited:
                _collect_callees(region, callees, visited)


class _CalleeTable:
    """The distinct callees met so far.

    They are keyed by name and operations; among those that share a key the text decides.
    """

    def __init__(self) -> None:
        self.done: dict[Graph, Graph] = {}
        self.callees: dict[Hashable, dict[str, Graph] | Graph] = {}
        self.names: dict[Graph, str] = {}
        self.table: list[Any] = []  # side table shared by all texts, so that equal text is equal

    def graph(self, graph: Graph) -> Graph:
        """Return the graph with equal callees merged."""
        if graph not in self.done:
            self.done[graph] = self._rewrite(graph)
        return self.done[graph]

    def _rewrite(self, graph: Graph) -> Graph:
        def share(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
            regions = [self.graph(region) for region in node.regions]
            if node.op is call:
                regions = [self._representative(region) for region in regions]
            nodes.append(with_operands(node, operands, regions))
            return nodes[-1].results

        return rewrite_nodes(graph, share)

    def _representative(self, callee: Graph) -> Graph:
        if callee in self.names:
            return callee
        key = callee.name, len(callee.params), tuple([node.op.name for node in callee.nodes])
        alike = self.callees.setdefault(key, callee)
        if isinstance(alike, Graph):
            if alike is callee:
                self.names[callee] = f"#{len(self.names)}"
                return callee
            alike = self.callees[key] = {self._text(alike): alike}
        representative = alike.setdefault(self._text(callee), callee)
        self.names.setdefault(representative, f"#{len(self.names)}")
        return representative

    def _text(self, callee: Graph) -> str:
        return to_text(callee, table=self.table, sources=True, named=self.names)
