"""Reads of tapes that are known to be in range, so that backward loops check no position.

A backward loop counts down from the trips of the loop that recorded, and reads each record once. In
a nest, the tape of an inner loop and its number of trips are records of one trip of the outer one.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.ir.dataflow import region_flow, used_value
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import rewrite_nodes, with_operands
from wend.ops import lists, maybe, shaping
from wend.ops.control import WhileParts, if_, while_
from wend.ops.loop_counters import as_integer
from wend.ops.tape_lengths import excess_length, known_length, pushed_once
from wend.passes.in_bounds import in_bounds
from wend.passes.lane_maps import backward_counter, is_sum


def mark_tape_reads(graph: Graph) -> Graph:
    """Mark the reads of backward loops `in_bounds`, after the passes that move nodes."""
    if while_ not in graph.ops or lists.list_get not in graph.ops:
        return graph
    tapes = _Tapes(graph)
    marked = {
        node
        for loop in graph.walk()
        if loop.op is while_
        for node in tapes.reads(WhileParts.of(loop))
    }
    return _marked(graph, marked) if marked else graph


def _marked(graph: Graph, marked: set[Node]) -> Graph:
    def mark(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        if node in marked:
            copy = in_bounds(node, operands)
        else:
            regions = [_marked(region, marked) for region in node.regions]
            copy = with_operands(node, operands, regions)
        nodes.append(copy)
        return copy.results

    return rewrite_nodes(graph, mark)


class _Tapes:
    """The tapes of a graph, and what is known of their lengths."""

    def __init__(self, graph: Graph) -> None:
        self._sources: dict[Value, Value | None] = {}  # of params; None: there are several
        for node in graph.walk():
            for use, param in region_flow(node) if node.regions else ():
                if param.node is None:
                    source = used_value(use)
                    is_other = self._sources.setdefault(param, source) is not source
                    self._sources[param] = None if is_other else source

    def resolve(self, value: Value) -> Value:
        """Return what a param always stands for, in the trip that the run is in."""
        while True:
            if value.node is not None and value.node.op in (shaping.refine, maybe.present):
                value = value.node.operands[0]
            elif (source := self._sources.get(value)) is not None:
                value = source
            else:
                return value

    def reads(self, w: WhileParts) -> list[Node]:
        """Return the nodes of a backward loop that read records there are."""
        k = backward_counter(w)
        if k is None:
            return []
        counter = self.resolve(w.before_carry[k])
        return [
            node
            for region in (w.before, w.after)
            for node in _in_trips(region)
            if self._is_in_range(node, w, k, counter, is_in_trip=region is w.after)
        ]

    def _is_in_range(
        self, node: Node, w: WhileParts, k: int, counter: Value, *, is_in_trip: bool
    ) -> bool:
        if node.op is not lists.list_get:
            return False
        items, index = node.operands
        excess = self._excess(self.resolve(items), self.resolve(w.carry[k]))
        if excess is None or excess < 0:
            return False
        index = self.resolve(index)
        if index is counter:  # which is 0 after the last trip
            return excess > 0
        return is_in_trip and self._is_predecessor(index, counter)

    def _is_predecessor(self, value: Value, counter: Value) -> bool:
        operands = () if value.node is None else value.node.operands
        return any(self.resolve(x) is counter and is_sum(value, x, -1) for x in operands)

    def _excess(self, items: Value, trips: Value) -> int | None:
        """Return how much longer a tape is than a number of trips, as far as that is known."""
        number = as_integer(trips)
        if number is not None:
            length = self._length(items)
            return None if length is None or number < 0 else length - number
        nodes = items.node, trips.node
        if nodes[0] is None or nodes[1] is None:
            return None
        if nodes[0] is nodes[1] and nodes[0].op is if_:
            return self._excess_in_branches(nodes[0], items.index, trips.index)
        excess = excess_length(items, trips)
        if excess is not None:
            return excess
        records = self._record(items), self._record(trips)
        if records[0] is None or records[1] is None:
            return None
        is_one_trip = self._are_of_one_trip(items, trips)
        return self._excess(*records) if is_one_trip else None  # type: ignore[arg-type]

    def _excess_in_branches(self, node: Node, items: int, trips: int) -> int | None:
        """Return the least excess in those branches that have a tape."""
        pairs = [(branch.results[items], branch.results[trips]) for branch in node.regions]
        excesses = [self._excess(*map(self.resolve, x)) for x in pairs if not any(map(_is_zero, x))]
        return None if None in excesses else min(excesses, default=None)  # type: ignore[type-var]

    def _length(self, items: Value) -> int | None:
        record = self._record(items)
        return known_length(items) if record is None else self._length(record)

    def _record(self, value: Value) -> Value | None:
        """Return the value of one trip that a value read from a tape is."""
        if value.node is None or value.node.op is not lists.list_get:
            return None
        tape = self._origin(self.resolve(value.node.operands[0]))
        pushed = None if tape is None else pushed_once(tape)
        return None if pushed is None else self.resolve(pushed)

    def _origin(self, tape: Value) -> Value | None:
        """Return a tape as its loop gives it."""
        is_record = tape.node is not None and tape.node.op is lists.list_get
        return self._record(tape) if is_record else tape

    def _are_of_one_trip(self, x: Value, y: Value) -> bool:
        """Return whether two values read from tapes were recorded by one trip of one loop."""
        if x.node is None or y.node is None:
            return False
        tape, at = map(self.resolve, x.node.operands)
        other, other_at = map(self.resolve, y.node.operands)
        origin, other_origin = self._origin(tape), self._origin(other)
        if at is not other_at or origin is None or other_origin is None:
            return False
        is_one_loop = origin.node is other_origin.node
        return is_one_loop and (origin is tape or self._are_of_one_trip(tape, other))


def _is_zero(value: Value) -> bool:
    return value.node is not None and value.node.op is maybe.zero


def _in_trips(region: Graph) -> list[Node]:
    """Return the nodes of a region, and those of its branches."""
    nodes = []
    for node in region.nodes:
        nodes.append(node)
        if node.op is if_:
            nodes += [inner for branch in node.regions for inner in _in_trips(branch)]
    return nodes
