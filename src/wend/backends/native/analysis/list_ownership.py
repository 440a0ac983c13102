"""Ownership analysis: which lists may be updated in place.

A list value is owned if no other live value refers to its records. An operation may update an
owned list at its last use, provided that all earlier uses only read it. A loop carry is owned if
it starts owned and every iteration yields an owned one; a start that is not owned is copied once,
at loop entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from wend.backends.native.analysis.list_classes import ListClasses
from wend.backends.native.analysis.list_uses import READS, is_new_list
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import ListType, without_maybe
from wend.ops import lists
from wend.ops.control import WhileParts, call, if_, while_

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
        if node.op is while_:
            return self._while(node, operand_owned)
        if node.op is if_ or node.op is call:
            input_owned = operand_owned[1:] if node.op is if_ else operand_owned
            result_owned = [
                self.find(
                    branch, {p for p, flag in zip(branch.params, input_owned, strict=True) if flag}
                )
                for branch in node.regions
            ]
            return [all(flags) for flags in zip(*result_owned, strict=True)]
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

    def _while(self, node: Node, operand_owned: Sequence[bool]) -> Sequence[bool]:
        w = WhileParts.of(node)
        owned = [self._should_own(w.carry[k], operand_owned[k]) for k in range(len(w.carry))]
        while True:
            forwarded = self.find(w.before, _select(w.before_carry, owned))[1:]
            next_owned = self.find(w.after, _select(w.after_forwarded, forwarded))
            still_owned = [a and b for a, b in zip(owned, next_owned, strict=True)]
            if still_owned == owned:
                break
            owned = still_owned
        for k, flag in enumerate(owned):
            copies = flag and not operand_owned[k]
            (self.copied.add if copies else self.copied.discard)((node, k))
        return forwarded

    def _should_own(self, start: Value, is_owned: bool) -> bool:
        """Return whether a carry should be owned: for free, or because copying its start pays."""
        if not isinstance(without_maybe(start.type), ListType):
            return False
        return is_owned or (
            isinstance(start.type, ListType) and bool(self.list_classes.of(start).writes)
        )


def _select(values: Sequence[Value], flags: Sequence[bool]) -> set[Value]:
    return {value for value, flag in zip(values, flags, strict=True) if flag}


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
