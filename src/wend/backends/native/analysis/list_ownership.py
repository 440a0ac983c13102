"""Ownership analysis: which lists may be updated in place.

A list value is owned if no other live value refers to its records. An operation may update an
owned list at its last use, provided that all earlier uses only read it. A loop carry is owned if
it starts owned and every iteration yields an owned one; a start that is not owned is copied once,
at loop entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from itertools import compress
from operator import and_

from wend.backends.native.analysis.list_classes import ListClasses
from wend.backends.native.analysis.list_uses import READS, is_new_list
from wend.base.lazy.dataclass import dataclass
from wend.ir.dataflow import flow_forward, region_edges
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import ListType, without_maybe
from wend.ops import lists
from wend.ops.control import WhileParts, while_

_RETURNS_OWNED = {
    *(lists.list_new, lists.list_zeros, lists.list_add, lists.list_set, lists.list_add_at),
    lists.list_unstack,
}


@dataclass(eq=False, repr=False, slots=True)
class Ownership:
    """The lists that are updated in place.

    Attributes:
        list_classes: the list classes of the graph.
        in_place: nodes that pop from or update a list that they own.
        copied: loops, each with a carry whose start it copies.
    """

    list_classes: ListClasses
    in_place: set[Node] = field(default_factory=set)
    copied: set[tuple[Node, int]] = field(default_factory=set)

    def find(self, graph: Graph, owned: set[Value]) -> tuple[bool, ...]:
        """Mark the in-place nodes of a graph with these owned params; return the owned results."""
        uses = _Uses(graph)
        for position, node in enumerate(graph.nodes):
            operand_owned = [
                is_new_list(v) or (v in owned and uses.is_consumed(v, position))
                for v in node.operands
            ]
            result_owned = self._node(node, operand_owned)
            owned.update(v for v, flag in zip(node.results, result_owned, strict=True) if flag)
        end = len(graph.nodes)
        return tuple(
            is_new_list(v) or (v in owned and uses.is_consumed(v, end)) for v in graph.results
        )

    def _node(self, node: Node, operand_owned: Sequence[bool]) -> Sequence[bool]:
        if region_edges(node):
            return self._regions(node, operand_owned)
        if node.op in (lists.list_pop, lists.list_set, lists.list_add_at):
            (self.in_place.add if operand_owned[0] else self.in_place.discard)(node)
        if node.op in _RETURNS_OWNED:
            return [True]
        if node.op is lists.list_push:
            return [operand_owned[0]]
        if node.op is lists.list_pop:
            return [operand_owned[0], False]
        if node.op.forwards_zero:
            return [all(operand_owned)]
        return [False] * len(node.results)

    def _regions(self, node: Node, operand_owned: Sequence[bool]) -> Sequence[bool]:
        """Follow ownership through regions; a region owns what each of its arguments is."""

        def transfer(region: int, owned: Sequence[bool]) -> tuple[bool, ...]:
            graph = node.regions[region]
            return self.find(graph, set(compress(graph.params, owned)))

        owned = list(operand_owned)
        for k in _read_again(node):
            owned[k] = False
        carry = WhileParts.of(node).carry if node.op is while_ else ()
        owned[: len(carry)] = map(self._should_own, carry, owned)
        flow = flow_forward(node, owned, and_, transfer)
        for k in range(len(carry)):
            copies = flow.entered[0][k] and not operand_owned[k]
            (self.copied.add if copies else self.copied.discard)((node, k))
        return flow.node

    def _should_own(self, start: Value, is_owned: bool) -> bool:
        """Return whether a carry should be owned: for free, or because copying its start pays."""
        if not isinstance(without_maybe(start.type), ListType):
            return False
        return is_owned or (
            isinstance(start.type, ListType) and bool(self.list_classes.of(start).writes)
        )


def _read_again(node: Node) -> set[int]:
    """Return the operands that a region reads anew whenever another one leads to it: invariants."""
    edges = region_edges(node)
    inner = [edge for edge in edges if edge.source is not None and edge.target is not None]
    carried = {(edge.target, k) for edge in inner for _, k in edge.positions()}
    return {
        use
        for edge in edges
        if edge.source is None and edge.target in {edge.target for edge in inner}
        for use, k in edge.positions()
        if (edge.target, k) not in carried
    }


class _Uses:
    """The last use, and the number of consuming uses, of the values of a graph."""

    def __init__(self, graph: Graph) -> None:
        self.last: dict[Value, int] = {}
        self.consumers: dict[Value, int] = {}
        for position, node in enumerate(graph.nodes):
            for operand in node.operands:
                self._record(operand, position, node.op in READS)
        for result in graph.results:
            self._record(result, len(graph.nodes), reads=False)

    def _record(self, value: Value, position: int, reads: bool) -> None:
        self.last[value] = position
        self.consumers[value] = self.consumers.get(value, 0) + (not reads)

    def is_consumed(self, value: Value, position: int) -> bool:
        """Return whether a value is consumed here: neither consumed before nor read after."""
        return self.last[value] == position and self.consumers[value] == 1
