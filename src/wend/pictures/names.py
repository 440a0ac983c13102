"""Names of the values of a graph: given by the user, or derived from their role in a loop."""

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
    """Return the names of the values that have one, including those inside regions.

    An outer value passes its name to the value that stands for it in a region, and a result of a
    region passes its name to that of the node. Unnamed captures are named by their number in the
    graph's text. A list that a loop fills is named as a tape; a carry that counts from 0, as the
    trip count.
    """
    namer = _Namer(value_numbers(graph))
    namer.graph(graph)
    return namer.names


class _Namer:
    def __init__(self, numbers: dict[Value, int]) -> None:
        self.numbers = numbers
        self.names: dict[Value, str] = {}

    def graph(self, graph: Graph) -> None:
        self.add_names(graph.params)
        for node in graph.nodes:
            self.add_names(node.results)
            if node.op is while_:
                self.loop(node)
                continue
            operands = IfParts.of(node).operands if node.op is if_ else node.operands
            for region in node.regions:
                if node.op in (if_, call):
                    self.name_captures(operands, region.params)
                self.graph(region)
                if node.op in (if_, call):
                    self.propagate(region.results, node.results)

    def loop(self, node: Node) -> None:
        w = WhileParts.of(node)
        self.add_names((*w.before.params, *w.after.params))
        carried = zip(w.carry, w.before_carry, w.next_carry, strict=True)
        for position, (start, inside, next_value) in enumerate(carried, 1):
            if inside not in self.names:
                role = _role(w, start, next_value, self.names)
                self.names[inside] = role or f"carry {position}"
        self.name_captures(w.invariants, w.before_invariants)
        self.name_captures(w.invariants, w.after_invariants)
        self.graph(w.before)
        self.propagate(w.forwarded, w.after_forwarded)
        self.propagate(w.forwarded, node.results)
        self.graph(w.after)

    def name_captures(self, outer: Iterable[Value], params: Iterable[Value]) -> None:
        """Name the captures of a region; numbers are shown as such where they are used."""
        outer = list(outer)
        for value in outer:
            if value not in self.names and value in self.numbers:
                self.names[value] = f"%{self.numbers[value]}"
        self.propagate(outer, params)

    def propagate(self, sources: Iterable[Value], targets: Iterable[Value]) -> None:
        for source, target in zip(sources, targets, strict=True):
            name = _cleaned(target.name) or self.names.get(source)
            if name:
                self.names.setdefault(target, name)

    def add_names(self, values: Iterable[Value]) -> None:
        for value in values:
            if name := _cleaned(value.name):
                self.names[value] = name


def _role(w: WhileParts, start: Value, next_value: Value, names: dict[Value, str]) -> str | None:
    """Return the role of an unnamed carry, if it can be recognized."""
    node = next_value.node
    if node is None:
        return None
    if node.op is lists.list_push and isinstance(start.type, ListType):
        recorded = node.operands[1]
        if recorded in w.after_forwarded:
            recorded = w.forwarded[w.after_forwarded.index(recorded)]
        name = names.get(recorded) or _cleaned(recorded.name)
        op_name = None if recorded.node is None else recorded.node.op.name
        return f"tape of {name or op_name}" if name or op_name else "tape"
    if node.op is add and _is_number(start, 0) and any(_is_number(v, 1) for v in node.operands):
        return "trips" if any(v in w.after_forwarded for v in node.operands) else None
    return "trips left" if names.get(start) == "trips" and node.op is sub else None


def _is_number(value: Value, number: int) -> bool:
    node = value.node
    return node is not None and node.op is constant and bool((node.attrs["value"] == number).all())


def _cleaned(name: str | None) -> str | None:
    """Return a name without the decoration for messages."""
    return name.removeprefix("argument ").strip("`") if name else None
