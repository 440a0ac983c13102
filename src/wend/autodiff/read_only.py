"""Arrays that a backward pass may read again, so that no loop records what it has read of them.

They are arguments, which the caller keeps, and nothing changes them in place: to read one again
takes no copy, however often the loops run.
"""

from __future__ import annotations

from collections.abc import Iterable

from wend.ir.graph import Graph, Node, Value
from wend.ops.control import WhileParts, call, if_, while_


def read_only_arrays(graph: Graph) -> set[Value]:
    """Return the params of regions that hold arguments of a graph which never change."""
    arrays = _ReadOnlyArrays()
    arrays.visit(graph, {*graph.params} - arrays.changed(graph))
    return arrays.read_only - arrays.others


class _ReadOnlyArrays:
    """Collects params of regions.

    Attributes:
        read_only: those that hold what never changes, where some node holds the region.
        others: those that hold something else, where another node holds it.
    """

    def __init__(self) -> None:
        self.read_only: set[Value] = set()
        self.others: set[Value] = set()
        self._changed: dict[Graph, set[Value]] = {}
        self._visited: set[tuple[Graph, frozenset[Value]]] = set()

    def visit(self, graph: Graph, read_only: set[Value]) -> None:
        """Collect the params of the regions of a graph, given its values that never change."""
        key = graph, frozenset(read_only)
        if key in self._visited:
            return
        self._visited.add(key)
        for node in graph.nodes:
            for region, pairs in _params_of(node):
                constant = {param for param, value in pairs if value in read_only}
                constant -= self.changed(region)
                self.read_only |= constant
                self.others.update(param for param in region.params if param not in constant)
                self.visit(region, constant)

    def changed(self, graph: Graph) -> set[Value]:
        """Return the values of a graph that its nodes may change in place, or pass on."""
        if graph not in self._changed:
            changed: set[Value] = set()
            for node in graph.nodes:
                if node.op.updates is not None:
                    changed.add(node.operands[node.op.updates])
                changed |= self._changed_by_regions(node)
            self._changed[graph] = changed
        return self._changed[graph]

    def _changed_by_regions(self, node: Node) -> set[Value]:
        pairs = [(region, x) for region, pairs in _params_of(node) for x in pairs]
        constant = {value for _, (_, value) in pairs}
        changed = {
            value
            for region, (param, value) in pairs
            if param in self.changed(region) or param in region.results
        }
        carried = node.operands[: node.attrs["carry"]] if node.op is while_ else ()
        others = (x for x in node.operands if node.regions and x not in constant)
        return changed.union(carried, others)


def _params_of(node: Node) -> Iterable[tuple[Graph, list[tuple[Value, Value]]]]:
    """Yield the regions of a node, with the params that hold operands in each run of them."""
    if node.op is while_:
        w = WhileParts.of(node)
        yield w.before, [*zip(w.before_invariants, w.invariants, strict=True)]
        yield w.after, [*zip(w.after_invariants, w.invariants, strict=True)]
    elif node.op is if_ or node.op is call:
        operands = node.operands[1:] if node.op is if_ else node.operands
        for region in node.regions:
            yield region, [*zip(region.params, operands, strict=True)]
