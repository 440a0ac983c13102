"""Regions on vectors: a number of each lane, and a mask of the lanes that take part.

A lane that does not take part computes along; nothing that it computes is taken. The records of a
loop are vectors in memory, one for each trip of the longest element. The loop that reads them
begins with the last: an element takes part from its own last record on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.emit.lanes.records import Tape
from wend.backends.native.emit.lanes.stack_variables import StackVariable, StackVariables
from wend.backends.native.emit.lanes.vectors import emit_vector, splat, vector_kind
from wend.backends.native.target.kinds import WORD, Kind
from wend.backends.native.target.value_layout import is_list
from wend.ir.dtypes import BOOL
from wend.ir.graph import Graph, Node, Value
from wend.ops import creating, lists
from wend.ops.control import IfParts, WhileParts, if_, while_
from wend.passes.lane_maps import backward_counter

# A loop first reads the clock after this many trips
_FIRST_SAFEPOINT = 16


@dataclass(eq=False, slots=True)
class VectorRegions:
    """Emits the regions of a map.

    Attributes:
        low: the lowering of the function.
        lanes: the number of lanes.
        values: the vectors of the values so far.
        tapes: the tape of each list, and which vector of a record its items are.
        record: the address of the record of the current trip.
        counter: in a loop over records, the number of those that are left.
    """

    low: Lowering
    lanes: int
    values: dict[Value, str] = field(default_factory=dict)
    tapes: dict[Value, tuple[Tape, int]] = field(default_factory=dict)
    record: str = "null"
    counter: Value | None = None

    @property
    def flags(self) -> Kind:
        """The kind of masks."""
        return Kind(BOOL, self.lanes)

    def kind(self, value: Value) -> Kind:
        """Return the kind of a value of all lanes."""
        return vector_kind(value, self.lanes)

    def emit(self, graph: Graph, params: Sequence[str], mask: str) -> list[str]:
        """Emit a region; return its results. A list is named by an empty text."""
        self.values.update(zip(graph.params, params, strict=True))
        self.emit_nodes(graph.nodes, mask)
        return [self.values[x] for x in graph.results]

    def emit_nodes(self, nodes: Sequence[Node], mask: str) -> None:
        """Emit nodes on the values so far."""
        for node in nodes:
            args = [self.values[x] for x in node.operands]
            self.values.update(zip(node.results, self._node(node, args, mask), strict=True))

    def any(self, mask: str) -> str:
        """Emit whether a lane takes part."""
        name = f"@llvm.vector.reduce.or.{self.flags.suffix}"
        return self.low.w.define(f"call i1 {name}({self.flags.text} {mask})")

    def choose(
        self, mask: str, values: Sequence[Value], yes: Sequence[str], no: Sequence[str]
    ) -> list[str]:
        """Emit a choice for each lane, of each of some values."""
        return [
            a if a == b or is_list(x.type) else self.select(self.kind(x), mask, a, b)
            for x, a, b in zip(values, yes, no, strict=True)
        ]

    def select(self, kind: Kind, mask: str, yes: str, no: str) -> str:
        """Emit a choice for each lane."""
        operands = f"{kind.text} {yes}, {kind.text} {no}"
        return self.low.w.define(f"select {self.flags.text} {mask}, {operands}")

    def both(self, x: str, y: str) -> str:
        """Emit which lanes are in both of two masks."""
        return self.low.w.define(f"and {self.flags.text} {x}, {y}")

    def _node(self, node: Node, args: Sequence[str], mask: str) -> Sequence[str]:
        if node.op is creating.constant:
            return [self.kind(node.results[0]).literal(node.attrs["value"][()])]
        if node.op is while_:
            return self._loop(node, WhileParts.of(node), args, mask)
        if node.op is if_:
            return self._branch(IfParts.of(node), args, mask)
        if node.op is lists.list_new:
            return [""]
        if node.op is lists.list_push:
            tape, k = self.tapes[node.operands[0]]
            tape.store(self.record, k, args[1])
            return [""]
        if node.op is lists.list_get:
            tape, k = self.tapes[node.operands[0]]
            is_next = node.operands[1] is self.counter
            return [tape.load(tape.next(self.record) if is_next else self.record, k)]
        return [emit_vector(self.low, node, self.lanes, args)]

    def _branch(self, parts: IfParts, args: Sequence[str], mask: str) -> Sequence[str]:
        """Emit both branches, and choose."""
        test = args[0]
        negated = self.low.w.define(f"xor {self.flags.text} {test}, {self.flags.literal(True)}")
        no, yes = (
            self.emit(branch, args[1:], self.both(mask, side))
            for branch, side in zip(parts.branches, (negated, test), strict=True)
        )
        return self.choose(test, parts.branches[0].results, yes, no)

    def _loop(self, node: Node, p: WhileParts, args: Sequence[str], mask: str) -> Sequence[str]:
        count = len(p.carry)
        if any(is_list(x.type) for x in p.invariants):
            return self._reading_loop(p, args[:count], args[count:], mask)
        return self._forward_loop(node, p, args[:count], args[count:], mask)

    def _forward_loop(
        self,
        node: Node,
        p: WhileParts,
        starts: Sequence[str],
        invariants: Sequence[str],
        mask: str,
    ) -> Sequence[str]:
        """Emit a loop that runs until no lane goes on, and may keep a record of all lanes a trip.

        The carry of a lane that has ended stays, so what it forwards does, unless an inner loop
        computes it, which such a lane does not run.
        """
        w = self.low.w
        tape = self.new_tape(node, p) if any(is_list(x.type) for x in p.carry) else None
        keeps = any(inner.op is while_ for inner in p.before.walk())
        carry_variables = self.variables(p.before_carry, starts)
        live_variable = StackVariable.of(w, self.flags.text, mask)
        trip_variable = StackVariable.of(w, "i64", "0")
        last = p.forwarded if keeps else ()
        zeros = ["" if is_list(x.type) else self.kind(x).literal(0) for x in last]
        old = self.variables(last, zeros)
        head, inside, done = map(w.new_label, ("head", "trip", "done"))
        w.jump(head)
        w.start(head)
        carry, live, trip = carry_variables.load(), live_variable.load(), trip_variable.load()
        if tape is not None:
            tape.reserve(trip)
            self.record = tape.record(trip)
        test, *forwarded = self.emit(p.before, [*carry, *invariants], live)
        if keeps:
            forwarded = self.choose(live, p.forwarded, forwarded, old.load())
        goes_on = self.both(live, test)
        w.branch(self.any(goes_on), inside, done)
        w.start(inside)
        following = self.emit(p.after, [*forwarded, *invariants], goes_on)
        following = self.choose(goes_on, p.next_carry, following, carry)
        self.end_trip()
        carry_variables.store(following)
        live_variable.store(goes_on)
        trip_variable.store(w.define(f"add i64 {trip}, 1"))
        if keeps:
            old.store(forwarded)
        w.jump(head)
        w.start(done)
        if tape is not None:
            tape.trips = trip
        return forwarded

    def _reading_loop(
        self, p: WhileParts, starts: Sequence[str], invariants: Sequence[str], mask: str
    ) -> Sequence[str]:
        """Emit a loop over records, the last first."""
        w = self.low.w
        counter = backward_counter(p)
        assert counter is not None
        tape = self.read_tapes(p)
        carry_variables = self.variables(p.before_carry, starts)
        left_variable = StackVariable.of(w, "i64", tape.trips)
        head, inside, done = map(w.new_label, ("head", "trip", "done"))
        w.jump(head)
        w.start(head)
        carry, left = carry_variables.load(), left_variable.load()
        _, *forwarded = self.emit(p.before, [*carry, *invariants], mask)
        w.branch(w.define(f"icmp sgt i64 {left}, 0"), inside, done)
        w.start(inside)
        word = Kind(WORD.dtype, self.lanes)
        last = splat(self.low, word, left)
        reached = w.define(f"icmp eq {word.text} {carry[counter]}, {last}")
        goes_on = self.both(mask, reached)
        next_left = w.define(f"sub i64 {left}, 1")
        self.record = tape.record(next_left)
        following = self.emit(p.after, [*forwarded, *invariants], goes_on)
        following = self.choose(goes_on, p.next_carry, following, carry)
        self.end_trip()
        carry_variables.store(following)
        left_variable.store(next_left)
        w.jump(head)
        w.start(done)
        return forwarded

    def end_trip(self) -> None:
        """Emit the end of a trip."""
        points = self.low.safepoints
        points.count_trip(points.new_counter(_FIRST_SAFEPOINT))

    def variables(self, values: Sequence[Value], starts: Sequence[str]) -> StackVariables:
        """Emit variables for the values of a loop, but for lists."""
        types = ["" if is_list(x.type) else self.kind(x).text for x in values]
        return StackVariables.of(self.low.w, types, starts)

    def new_tape(self, node: Node, p: WhileParts) -> Tape:
        """Return the tape of a loop, whose lists have their items in it."""
        listed = [k for k, x in enumerate(p.forwarded) if is_list(x.type)]
        pushes = [
            p.forwarded[k].node or p.next_carry[p.before_carry.index(p.forwarded[k])].node
            for k in listed
        ]
        items = [push.operands[1] for push in pushes if push is not None]
        tape = Tape(self.low, [self.kind(x) for x in items])
        for place, (k, push) in enumerate(zip(listed, pushes, strict=True)):
            assert push is not None
            self.tapes[push.operands[0]] = self.tapes[node.results[k]] = tape, place
        return tape

    def read_tapes(self, p: WhileParts) -> Tape:
        """Return the tape that the invariants of a loop have, from which it is to read."""
        pairs = zip(p.invariants, p.after_invariants, strict=True)
        listed = {y: self.tapes[x] for x, y in pairs if is_list(x.type)}
        self.tapes.update(listed)
        at = backward_counter(p)
        assert at is not None
        self.counter = p.after_forwarded[p.forwarded.index(p.before_carry[at])]
        return next(tape for tape, _ in listed.values())

    def release_tapes(self) -> None:
        """Release the memory of all tapes."""
        for tape in dict.fromkeys(tape for tape, _ in self.tapes.values()):
            tape.release()
