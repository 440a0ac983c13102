"""Arrays that a backward pass may read again, so that no loop records what it has read of them.

They are arguments, which the caller keeps, and nothing changes them in place: to read one again
takes no copy, however often the loops run.
"""

from __future__ import annotations

from wend.autodiff.changes_in_place import MayChange, constant_params
from wend.ir.graph import Graph, Value


def read_only_arrays(graph: Graph) -> set[Value]:
    """Return the params of regions that hold arguments of a graph which never change."""
    arrays = _ReadOnlyArrays()
    arrays.visit(graph, {*graph.params} - arrays.may_change.values(graph))
    return arrays.read_only - arrays.others


class _ReadOnlyArrays:
    """Collects params of regions.

    Attributes:
        may_change: what nodes may change in place.
        read_only: those that hold what never changes, where some node holds the region.
        others: those that hold something else, where another node holds it.
    """

    def __init__(self) -> None:
        self.may_change = MayChange()
        self.read_only: set[Value] = set()
        self.others: set[Value] = set()
        self._visited: set[tuple[Graph, frozenset[Value]]] = set()

    def visit(self, graph: Graph, read_only: set[Value]) -> None:
        """Collect the params of the regions of a graph, given its values that never change."""
        key = graph, frozenset(read_only)
        if key in self._visited:
            return
        self._visited.add(key)
        for node in graph.nodes:
            for region, operands in constant_params(node):
                constant = {param for param, x in operands.items() if x in read_only}
                constant -= self.may_change.values(region)
                self.read_only |= constant
                self.others.update(param for param in region.params if param not in constant)
                self.visit(region, constant)
