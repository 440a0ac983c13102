"""Regions on vectors: a number of each lane, and a mask of the lanes that take part.

A lane that does not take part computes along; nothing that it computes is taken. The records of a
loop are vectors in memory, one for each trip of the longest element. The loop that reads them
begins with the last: an element takes part from its own last record on.

A loop whose records are an item of another's records runs in each trip of that. Its records follow
those of its earlier runs, and the item is the number of the first. All elements have the same, as
the lanes that take part in a trip are those that take part when it is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.emit.lanes.records import Tape
from wend.backends.native.emit.lanes.stack_variables import StackVariable, StackVariables
from wend.backends.native.emit.lanes.vectors import emit_vector, splat, vector_kind
from wend.backends.native.target.kinds import WORD, Kind
from wend.backends.native.target.value_layout import is_list
from wend.base.lazy.dataclass import dataclass
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
        firsts: the number of the first record of each list; a list that is not in it has record 0.
        items: for a vector of records that is the first record of lists: what those lists have.
        pushed: the lists that are items of others.
        record: the address of the record of the current trip.
        counters: in a loop over records, the number of those that are left, in both regions.
    """

    low: Lowering
    lanes: int
    values: dict[Value, str] = field(default_factory=dict)
    tapes: dict[Value, tuple[Tape, int]] = field(default_factory=dict)
    firsts: dict[Value, str] = field(default_factory=dict)
    items: dict[tuple[Tape, int], tuple[Tape, int]] = field(default_factory=dict)
    pushed: set[Value] = field(default_factory=set)
    record: str = "null"
    counters: Sequence[Value] = ()

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
        self.pushed |= {
            x.operands[1] for x in nodes if x.op is lists.list_push and is_list(x.operands[1].type)
        }
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
            list, item = node.operands
            tape, k = self.tapes[list]
            if not is_list(item.type):
                tape.store(self.record, k, args[1])
                return [""]
            self.items[tape, k] = self.tapes[item]
            tape.store(self.record, k, self.firsts[item])
            return [""]
        if node.op is lists.list_get:
            return [self._item(node)]
        return [emit_vector(self.low, node, self.lanes, args)]

    def _item(self, node: Node) -> str:
        """Emit a read of an item of the record."""
        (result,) = node.results
        tape, k = self.tapes[node.operands[0]]
        is_next = node.operands[1] in self.counters
        item = tape.load(tape.next(self.record) if is_next else self.record, k)
        if not is_list(result.type):
            return item
        self.tapes[result] = self.items[tape, k]
        self.firsts[result] = item
        return ""

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
        lists_of_records = [x for x in node.results if is_list(x.type)]
        first = "0"
        if tape is not None and not self.pushed.isdisjoint(lists_of_records):
            first = tape.end()
            self.firsts.update(dict.fromkeys(lists_of_records, first))
        outer_record = self.record
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
            number = w.define(f"add i64 {first}, {trip}")
            tape.reserve(number)
            self.record = tape.record(number)
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
        self.record = outer_record
        if tape is not None and first == "0":
            for inner in self.items_of(tape):
                inner.set_end("0")
        elif tape is not None:
            # One more, as the test that ends the loop may have a record, too
            tape.set_end(w.define(f"add i64 {w.define(f'add i64 {first}, {trip}')}, 1"))
        return forwarded

    def _reading_loop(
        self, p: WhileParts, starts: Sequence[str], invariants: Sequence[str], mask: str
    ) -> Sequence[str]:
        """Emit a loop over records, the last first."""
        w = self.low.w
        counter = backward_counter(p)
        assert counter is not None
        word = Kind(WORD.dtype, self.lanes)
        outer_record, outer_counters = self.record, self.counters
        tape, first = self.read_tapes(p)
        trips = self.select(word, mask, starts[counter], word.literal(0))
        name = f"@llvm.vector.reduce.smax.{word.suffix}"
        carry_variables = self.variables(p.before_carry, starts)
        left_variable = StackVariable.of(
            w, "i64", w.define(f"call i64 {name}({word.text} {trips})")
        )
        head, inside, done = map(w.new_label, ("head", "trip", "done"))
        w.jump(head)
        w.start(head)
        carry, left = carry_variables.load(), left_variable.load()
        last = splat(self.low, word, left)
        reached = w.define(f"icmp eq {word.text} {carry[counter]}, {last}")
        goes_on = self.both(mask, reached)
        next_left = w.define(f"sub i64 {left}, 1")
        self.record = tape.record(w.define(f"add i64 {first}, {next_left}"))
        _, *forwarded = self.emit(p.before, [*carry, *invariants], goes_on)
        w.branch(w.define(f"icmp sgt i64 {left}, 0"), inside, done)
        w.start(inside)
        following = self.emit(p.after, [*forwarded, *invariants], goes_on)
        following = self.choose(goes_on, p.next_carry, following, carry)
        self.end_trip()
        carry_variables.store(following)
        left_variable.store(next_left)
        w.jump(head)
        w.start(done)
        self.record, self.counters = outer_record, outer_counters
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
        tape = Tape(self.low, [WORD if is_list(x.type) else self.kind(x) for x in items])
        for place, (k, push) in enumerate(zip(listed, pushes, strict=True)):
            assert push is not None
            self.tapes[push.operands[0]] = self.tapes[node.results[k]] = tape, place
        return tape

    def items_of(self, tape: Tape) -> list[Tape]:
        """Return the tapes whose records are items of the records of one, and items of those."""
        inner = dict.fromkeys(x for (outer, _), (x, _) in self.items.items() if outer is tape)
        return [y for x in inner for y in (x, *self.items_of(x))]

    def read_tapes(self, p: WhileParts) -> tuple[Tape, str]:
        """Return the tape from which a loop is to read, and the number of its first record."""
        listed = [x for x in p.invariants if is_list(x.type)]
        for x, *params in zip(p.invariants, p.before_invariants, p.after_invariants, strict=True):
            if x in listed:
                self.tapes.update(dict.fromkeys(params, self.tapes[x]))
        at = backward_counter(p)
        assert at is not None
        counter = p.before_carry[at]
        self.counters = counter, p.after_forwarded[p.forwarded.index(counter)]
        tape, _ = self.tapes[listed[0]]
        return tape, self.firsts.get(listed[0], "0")

    def release_tapes(self) -> None:
        """Release the memory of all tapes."""
        for tape in dict.fromkeys(tape for tape, _ in self.tapes.values()):
            tape.release()
