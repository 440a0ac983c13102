"""Where the values of a region are used for the last time."""

from __future__ import annotations

from wend.ir.graph import Graph, Node, Value


class LastUses:
    """For each value of a region the position of the last node that takes it.

    Results count as taken after all nodes, at `end`.
    """

    def __init__(self, graph: Graph) -> None:
        self.end = len(graph.nodes)
        self._last: dict[Value, int] = {}
        for position, node in enumerate(graph.nodes):
            self._last.update(dict.fromkeys(node.operands, position))
        self._last.update(dict.fromkeys(graph.results, self.end))
        self._results = frozenset(graph.results)
        self._takers: dict[Value, list[Node]] = {}
        for node in graph.nodes:
            for operand in dict.fromkeys(node.operands):
                self._takers.setdefault(operand, []).append(node)

    def is_last(self, value: Value, position: int) -> bool:
        """Whether nobody takes a value after the node at a position."""
        return self._last.get(value, -1) <= position

    def users(self, value: Value) -> list[Node]:
        """The nodes of the region that take a value, in order."""
        return self._takers.get(value, [])

    def is_result(self, value: Value) -> bool:
        return value in self._results

    def is_taken_once(self, value: Value, node: Node, position: int) -> bool:
        """Whether a node is the last that takes a value, and takes it once."""
        return self.is_last(value, position) and node.operands.count(value) == 1
