"""Which lists may be changed in place: those of which no other version is read again.

A list value is owned where nothing else refers to its records. An operation may change an owned
list at its last use, if until then it was only read. A loop's carry is owned if it starts owned
and every trip hands on an owned one; a start that is not owned is copied once, at the entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from wend.backends.native.analysis.list_classes import ListClasses
from wend.backends.native.analysis.list_uses import READS, is_new_list
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import ListType, without_maybe
from wend.ops import lists, maybe, shaping
from wend.ops.control import WhileParts, call, if_, while_

_KEEPS = {maybe.instantiate, maybe.present, maybe.autograd_add, shaping.refine}
_MAKES = {
    *(lists.list_new, lists.list_zeros, lists.list_add, lists.list_set, lists.list_add_at),
    lists.list_unstack,
}


@dataclass(eq=False, repr=False, slots=True)
class Ownership:
    """What may be done in place.

    Attributes:
        in_place: nodes that pop or change a list which they own.
        copied: loops and the carries whose start they copy.
    """

    places: ListClasses
    in_place: set[Node] = field(default_factory=set)
    copied: set[tuple[Node, int]] = field(default_factory=set)

    def find(self, graph: Graph, owned: set[Value]) -> tuple[bool, ...]:
        """Mark the nodes of a graph whose owned params are these; say which results are owned."""
        uses = _Uses(graph)
        for position, node in enumerate(graph.nodes):
            given = [
                is_new_list(v) or (v in owned and uses.is_given(v, position)) for v in node.operands
            ]
            flags = self._node(node, given)
            owned.update(v for v, flag in zip(node.results, flags, strict=True) if flag)
        end = len(graph.nodes)
        return tuple(
            is_new_list(v) or (v in owned and uses.is_given(v, end)) for v in graph.results
        )

    def _node(self, node: Node, given: Sequence[bool]) -> Sequence[bool]:
        if node.op is while_:
            return self._while(node, given)
        if node.op is if_ or node.op is call:
            inputs = given[1:] if node.op is if_ else given
            found = [
                self.find(
                    branch, {p for p, flag in zip(branch.params, inputs, strict=True) if flag}
                )
                for branch in node.regions
            ]
            return [all(flags) for flags in zip(*found, strict=True)]
        if node.op in (lists.list_pop, lists.list_set, lists.list_add_at):
            (self.in_place.add if given[0] else self.in_place.discard)(node)
        if node.op in _MAKES:
            return [True]
        if node.op is lists.list_push:
            return [given[0]]
        if node.op is lists.list_pop:
            return [given[0], False]
        if node.op in _KEEPS:
            return [all(given)]
        return [False] * len(node.results)

    def _while(self, node: Node, given: Sequence[bool]) -> Sequence[bool]:
        w = WhileParts.of(node)
        owned = [self._is_wanted(w.carry[k], given[k]) for k in range(len(w.carry))]
        while True:
            handed = self.find(w.before, _chosen(w.before_carry, owned))[1:]
            back = self.find(w.after, _chosen(w.after_forwarded, handed))
            kept = [a and b for a, b in zip(owned, back, strict=True)]
            if kept == owned:
                break
            owned = kept
        for k, flag in enumerate(owned):
            copies = flag and not given[k]
            (self.copied.add if copies else self.copied.discard)((node, k))
        return handed

    def _is_wanted(self, start: Value, given: bool) -> bool:
        """Whether a carry should be owned: it is at no cost, or it pays to copy the start."""
        if not isinstance(without_maybe(start.type), ListType):
            return False
        return given or (isinstance(start.type, ListType) and bool(self.places.of(start).writes))


def _chosen(values: Sequence[Value], flags: Sequence[bool]) -> set[Value]:
    return {value for value, flag in zip(values, flags, strict=True) if flag}


class _Uses:
    """Where the values of a graph are used: the last time, and other than for reading."""

    def __init__(self, graph: Graph) -> None:
        self.last: dict[Value, int] = {}
        self.takers: dict[Value, int] = {}
        for position, node in enumerate(graph.nodes):
            for operand in node.operands:
                self._note(operand, position, node.op in READS)
        for result in graph.results:
            self._note(result, len(graph.nodes), reads=False)

    def _note(self, value: Value, position: int, reads: bool) -> None:
        self.last[value] = position
        self.takers[value] = self.takers.get(value, 0) + (not reads)

    def is_given(self, value: Value, position: int) -> bool:
        """Whether it is taken here, and neither taken before nor read after."""
        return self.last[value] == position and self.takers[value] == 1
