"""Liveness: the last use of each value of a region."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.traverse import users_of


class LastUses:
    """The last use, and all users, of each value of a region.

    Results count as used after all nodes, at position `end`. `needs` are further uses: values by
    the last nodes that need them, such as the contents of frame states.
    """

    def __init__(self, graph: Graph, needs: Mapping[int, Sequence[Value]] | None = None) -> None:
        self.end = len(graph.nodes)
        self._needs = needs or {}
        self._last: dict[Value, int] = {}
        for position, node in enumerate(graph.nodes):
            self._last.update(dict.fromkeys((*node.operands, *self.needs(position)), position))
        self._last.update(dict.fromkeys(graph.results, self.end))
        self._results = frozenset(graph.results)
        self._users = users_of(graph.nodes)

    def needs(self, position: int) -> Sequence[Value]:
        """Return values that the node at a position is the last to need."""
        return self._needs.get(position, ())

    def is_last(self, value: Value, position: int) -> bool:
        """Return whether a value has no use after the node at a position."""
        return self._last.get(value, -1) <= position

    def users(self, value: Value) -> Sequence[Node]:
        """Return the nodes of the region that use a value, in order."""
        return self._users.get(value, ())

    def is_result(self, value: Value) -> bool:
        return value in self._results

    def is_sole_last_use(self, value: Value, node: Node, position: int) -> bool:
        """Return whether a node is the last user of a value and uses it once."""
        return self.is_last(value, position) and node.operands.count(value) == 1
