"""What the values of a graph are called: by the user, else by what loops do with them."""

from __future__ import annotations

from collections.abc import Iterable

from wend.ir.graph import Graph, Node, Value
from wend.ir.printer import value_numbers
from wend.ir.types import ListType
from wend.ops import lists
from wend.ops.control import IfParts, WhileParts, call, if_, while_
from wend.ops.creating import constant
from wend.ops.elementwise import add, sub


def names_of(graph: Graph) -> dict[Value, str]:
    """The values that have a name, inside regions too.

    A name goes from an outer value to what stands for it in a region, and from a region's results
    to those of its node; what has none is given to a region by its number in the graph's text. A
    list that a loop fills is a tape of something; a carry that counts from 0, a number of trips.
    """
    namer = _Namer(value_numbers(graph))
    namer.graph(graph)
    return namer.names


class _Namer:
    def __init__(self, numbers: dict[Value, int]) -> None:
        self.numbers = numbers
        self.names: dict[Value, str] = {}

    def graph(self, graph: Graph) -> None:
        self.own(graph.params)
        for node in graph.nodes:
            self.own(node.results)
            if node.op is while_:
                self.loop(node)
                continue
            operands = IfParts.of(node).operands if node.op is if_ else node.operands
            for region in node.regions:
                if node.op in (if_, call):
                    self.give(operands, region.params)
                self.graph(region)
                if node.op in (if_, call):
                    self.pass_on(region.results, node.results)

    def loop(self, node: Node) -> None:
        w = WhileParts.of(node)
        self.own((*w.before.params, *w.after.params))
        carried = zip(w.carry, w.before_carry, w.next_carry, strict=True)
        for number, (start, inside, following) in enumerate(carried, 1):
            if inside not in self.names:
                role = _role(w, start, following, self.names)
                self.names[inside] = role or f"carry {number}"
        self.give(w.invariants, w.before_invariants)
        self.give(w.invariants, w.after_invariants)
        self.graph(w.before)
        self.pass_on(w.forwarded, w.after_forwarded)
        self.pass_on(w.forwarded, node.results)
        self.graph(w.after)

    def give(self, outer: Iterable[Value], params: Iterable[Value]) -> None:
        """Name what is given to a region; numbers are shown as such where they are used."""
        outer = list(outer)
        for value in outer:
            if value not in self.names and value in self.numbers:
                self.names[value] = f"%{self.numbers[value]}"
        self.pass_on(outer, params)

    def pass_on(self, given: Iterable[Value], taken: Iterable[Value]) -> None:
        for value, other in zip(given, taken, strict=True):
            name = _cleaned(other.name) or self.names.get(value)
            if name:
                self.names.setdefault(other, name)

    def own(self, values: Iterable[Value]) -> None:
        for value in values:
            if name := _cleaned(value.name):
                self.names[value] = name


def _role(w: WhileParts, start: Value, following: Value, names: dict[Value, str]) -> str | None:
    """What an unnamed carry is for, if that can be seen."""
    node = following.node
    if node is None:
        return None
    if node.op is lists.list_push and isinstance(start.type, ListType):
        kept = node.operands[1]
        if kept in w.after_forwarded:
            kept = w.forwarded[w.after_forwarded.index(kept)]
        name = names.get(kept) or _cleaned(kept.name)
        made = None if kept.node is None else kept.node.op.name
        return f"tape of {name or made}" if name or made else "tape"
    if node.op is add and _is_number(start, 0) and any(_is_number(v, 1) for v in node.operands):
        return "trips" if any(v in w.after_forwarded for v in node.operands) else None
    return "trips left" if names.get(start) == "trips" and node.op is sub else None


def _is_number(value: Value, number: int) -> bool:
    node = value.node
    return node is not None and node.op is constant and bool((node.attrs["value"] == number).all())


def _cleaned(name: str | None) -> str | None:
    """A name without what messages put around it."""
    return name.removeprefix("argument ").strip("`") if name else None
