"""Rematerialization of fills: loops that read their elements compute them.

A loop that reads an array which repeats a number, or counts, would load what its own code computes
in registers, and would not know that it reads at neighbouring positions. Such arrays, which `hoist`
has taken out of loops, move back to the operations that read them element by element (Briggs,
Cooper and Torczon, 1992).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_node, copy_nodes, rewrite_nodes, with_operands
from wend.ir.traverse import users_of
from wend.ops import creating, shaping
from wend.ops.control import WhileParts, while_
from wend.ops.indexing import gather
from wend.passes.dce import dce
from wend.passes.lane_maps import is_elementwise

_FILLS = creating.iota, shaping.broadcast_to


def rematerialize_fills(graph: Graph) -> Graph:
    """Compute arrays that repeat a number, or count, in the loops that read their elements."""
    if while_ not in graph.ops or graph.ops.isdisjoint(_FILLS):
        return graph

    def rematerialize(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        copy = with_operands(node, operands)
        if copy.op is while_:
            copy = _with_fills(copy)
        regions = [rematerialize_fills(region) for region in copy.regions]
        nodes.append(with_operands(copy, copy.operands, regions))
        return nodes[-1].results

    result = rewrite_nodes(graph, rematerialize)
    return graph if result is graph else dce(result)


def _is_fill(node: Node) -> bool:
    """Return whether a node gives an array of known size that counts, or repeats a number."""
    if node.op not in _FILLS or not node.results[0].tensor.is_static:
        return False
    return node.results[0].tensor.shape != () and all(x.tensor.shape == () for x in node.operands)


class _Users:
    """The nodes that use each value of a region, computed once for a region."""

    def __init__(self) -> None:
        self._of: dict[Graph, Mapping[Value, Sequence[Node]]] = {}

    def are_by_element(self, value: Value, region: Graph) -> bool:
        """Return whether an array is read by element, also where loops of the region take it."""
        if value in region.results:
            return False
        if region not in self._of:
            self._of[region] = users_of(region.nodes)
        for node in self._of[region].get(value, ()):
            if node.op is while_:
                w = WhileParts.of(node)
                positions = [k for k, x in enumerate(w.invariants) if x is value]
                if value in w.carry or not all(self.are_by_element_in(w, k) for k in positions):
                    return False
            elif node.op is gather:
                if node.operands[0] is value:
                    return False
            elif not is_elementwise(node):
                return False
        return True

    def are_by_element_in(self, w: WhileParts, k: int) -> bool:
        """Return whether both regions of a loop read an invariant by element."""
        params = (w.before, w.before_invariants[k]), (w.after, w.after_invariants[k])
        return all(self.are_by_element(param, region) for region, param in params)


def _with_fills(loop: Node) -> Node:
    """Return a loop that computes the arrays it reads by element."""
    w, users = WhileParts.of(loop), _Users()
    fills = {
        k: x.node
        for k, x in enumerate(w.invariants)
        if x.node is not None and _is_fill(x.node) and users.are_by_element_in(w, k)
    }
    if not fills:
        return loop
    numbers = list(dict.fromkeys(x for node in fills.values() for x in node.operands))
    regions = []
    for region, invariants in ((w.before, w.before_invariants), (w.after, w.after_invariants)):
        params = [Value(x.type) for x in numbers]
        inner = dict(zip(numbers, params, strict=True))
        copies = {
            invariants[k]: copy_node(node, [inner[x] for x in node.operands])
            for k, node in fills.items()
        }
        mapping = {old: copy.results[0] for old, copy in copies.items()}
        nodes = (*copies.values(), *copy_nodes(region.nodes, mapping))
        others = [x for x in region.params if x not in copies]
        results = tuple(mapping.get(x, x) for x in region.results)
        regions.append(Graph(region.name, (*others, *params), nodes, results))
    unmoved = [x for k, x in enumerate(w.invariants) if k not in fills]
    return copy_node(loop, [*w.carry, *unmoved, *numbers], regions)
