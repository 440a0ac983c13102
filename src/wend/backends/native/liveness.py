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

    def is_last(self, value: Value, position: int) -> bool:
        """Whether nobody takes a value after the node at a position."""
        return self._last.get(value, -1) <= position

    def is_taken_once(self, value: Value, node: Node, position: int) -> bool:
        """Whether a node is the last that takes a value, and takes it once."""
        return self.is_last(value, position) and node.operands.count(value) == 1
