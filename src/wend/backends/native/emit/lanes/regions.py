"""Regions on vectors: a number of each lane, and a mask of the lanes that take part.

A lane that does not take part computes along; nothing that it computes is taken. The records of a
loop are vectors in memory, one for each trip of the longest element. The loop that reads them
begins with the last: an element takes part from its own last record on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from wend.backends.native.codegen.lowering import Lowering
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
_FIRST_RECORDS = 64
_RECORD_ALIGNMENT = 64


@dataclass(eq=False, slots=True)
class Tape:
    """The records of a loop.

    Attributes:
        address: the stack slot that holds where the records are.
        capacity: the one that holds how many there is room for.
        size: the bytes of a record of all lanes.
        trips: how many records the last run has left.
    """

    address: str
    capacity: str
    size: int
    trips: str = "0"


@dataclass(eq=False, slots=True)
class VectorRegions:
    """Emits the regions of a map.

    Attributes:
        low: the lowering of the function.
        lanes: the number of lanes.
        values: the vectors of the values so far.
        tapes: the tape of each list, and where its items are in a record.
        record: the address of the record of the current trip.
    """

    low: Lowering
    lanes: int
    values: dict[Value, str] = field(default_factory=dict)
    tapes: dict[Value, tuple[Tape, int]] = field(default_factory=dict)
    record: str = "null"

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
            self._store(node.operands[1], args[1], self._item_address(node.operands[0]))
            return [""]
        if node.op is lists.list_get:
            return [self._load(node.results[0], self._item_address(node.operands[0]))]
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
        if any(is_list(x.type) for x in p.carry):
            return self._writing_loop(node, p, args[:count], args[count:], mask)
        if any(is_list(x.type) for x in p.invariants):
            return self._reading_loop(p, args[:count], args[count:], mask)
        return self._plain_loop(p, args[:count], args[count:], mask)

    def _plain_loop(
        self, p: WhileParts, starts: Sequence[str], invariants: Sequence[str], mask: str
    ) -> Sequence[str]:
        """Emit a loop that runs until no lane goes on.

        The carry of a lane that has ended stays, so what it forwards does, unless an inner loop
        computes it, which such a lane does not run.
        """
        w = self.low.w
        keeps = any(node.op is while_ for node in p.before.walk())
        entry, head, inside, done = w.block, *map(w.new_label, ("head", "trip", "done"))
        w.jump(head)
        w.start(head)
        carry, close = self._open(p.before_carry, starts, entry)
        live, close_live = w.open_phi(self.flags.text, mask, entry)
        zeros = [self.kind(x).literal(0) for x in p.forwarded] if keeps else []
        old, close_old = self._open(p.forwarded if keeps else (), zeros, entry)
        test, *forwarded = self.emit(p.before, [*carry, *invariants], live)
        if keeps:
            forwarded = self.choose(live, p.forwarded, forwarded, old)
        goes_on = self.both(live, test)
        w.branch(self.any(goes_on), inside, done)
        w.start(inside)
        following = self.emit(p.after, [*forwarded, *invariants], goes_on)
        following = self.choose(goes_on, p.next_carry, following, carry)
        self.end_trip()
        close(following)
        close_live(goes_on)
        if keeps:
            close_old(forwarded)
        w.jump(head)
        w.start(done)
        return forwarded

    def _writing_loop(
        self,
        node: Node,
        p: WhileParts,
        starts: Sequence[str],
        invariants: Sequence[str],
        mask: str,
    ) -> Sequence[str]:
        """Emit a loop that keeps a record of all lanes each trip."""
        w = self.low.w
        tape, places = self._tape_of(node, p)
        entry, head, inside, done = w.block, *map(w.new_label, ("head", "trip", "done"))
        w.jump(head)
        w.start(head)
        carry, close = self._open(p.before_carry, starts, entry)
        live, close_live = w.open_phi(self.flags.text, mask, entry)
        trip, close_trip = w.open_phi("i64", "0", entry)
        test, *forwarded = self.emit(p.before, [*carry, *invariants], live)
        goes_on = self.both(live, test)
        w.branch(self.any(goes_on), inside, done)
        w.start(inside)
        self._reserve(tape, trip)
        self.record = self._record_address(tape, trip)
        for x, inner in zip(p.forwarded, p.after_forwarded, strict=True):
            if is_list(x.type):
                self.tapes[inner] = tape, places[p.before_carry.index(x)]
        following = self.emit(p.after, [*forwarded, *invariants], goes_on)
        following = self.choose(goes_on, p.next_carry, following, carry)
        self.end_trip()
        close(following)
        close_live(goes_on)
        close_trip(w.define(f"add i64 {trip}, 1"))
        w.jump(head)
        w.start(done)
        tape.trips = trip
        for x, result in zip(p.forwarded, node.results, strict=True):
            if is_list(x.type):
                self.tapes[result] = tape, places[p.before_carry.index(x)]
        return forwarded

    def _reading_loop(
        self, p: WhileParts, starts: Sequence[str], invariants: Sequence[str], mask: str
    ) -> Sequence[str]:
        """Emit a loop over records, the last first."""
        w = self.low.w
        counter = backward_counter(p)
        assert counter is not None
        for outer, inner in zip(p.invariants, p.after_invariants, strict=True):
            if is_list(inner.type):
                self.tapes[inner] = self.tapes[outer]
        (tape, *_) = (self.tapes[x][0] for x in p.invariants if is_list(x.type))
        entry, head, inside, done = w.block, *map(w.new_label, ("head", "trip", "done"))
        w.jump(head)
        w.start(head)
        carry, close = self._open(p.before_carry, starts, entry)
        left, close_left = w.open_phi("i64", tape.trips, entry)
        _, *forwarded = self.emit(p.before, [*carry, *invariants], mask)
        w.branch(w.define(f"icmp sgt i64 {left}, 0"), inside, done)
        w.start(inside)
        word = Kind(WORD.dtype, self.lanes)
        last = splat(self.low, word, left)
        reached = w.define(f"icmp eq {word.text} {carry[counter]}, {last}")
        goes_on = self.both(mask, reached)
        next_left = w.define(f"sub i64 {left}, 1")
        self.record = self._record_address(tape, next_left)
        following = self.emit(p.after, [*forwarded, *invariants], goes_on)
        following = self.choose(goes_on, p.next_carry, following, carry)
        self.end_trip()
        close(following)
        close_left(next_left)
        w.jump(head)
        w.start(done)
        return forwarded

    def end_trip(self) -> None:
        """Emit the end of a trip."""
        points = self.low.safepoints
        points.count_trip(points.new_counter(_FIRST_SAFEPOINT))

    def _open(
        self, values: Sequence[Value], starts: Sequence[str], entry: str
    ) -> tuple[list[str], Callable[[Sequence[str]], None]]:
        """Append phis for the values of a loop, but for lists; return them and their end."""
        phis = [
            None if is_list(x.type) else self.low.w.open_phi(self.kind(x).text, start, entry)
            for x, start in zip(values, starts, strict=True)
        ]

        def close(following: Sequence[str]) -> None:
            for phi, value in zip(phis, following, strict=True):
                if phi is not None:
                    phi[1](value)

        return ["" if phi is None else phi[0] for phi in phis], close

    # Records
    def _tape_of(self, node: Node, p: WhileParts) -> tuple[Tape, dict[int, int]]:
        """Return the tape of a loop, and where its carries have their items in a record."""
        w, size = self.low.w, 0
        places: dict[int, int] = {}
        listed = [k for k, x in enumerate(p.carry) if is_list(x.type)]
        for k in sorted(listed, key=lambda k: -self._item_bytes(p.carry[k])):
            places[k] = size
            size += self.lanes * self._item_bytes(p.carry[k])
        size += -size % _RECORD_ALIGNMENT
        tape = Tape(w.allocate("ptr"), w.allocate("i64"), size)
        w.at_entry(f"store ptr null, ptr {tape.address}")
        w.at_entry(f"store i64 0, ptr {tape.capacity}")
        return tape, places

    def _item_bytes(self, list: Value) -> int:
        return list.type.element.dtype.itemsize  # type: ignore[union-attr]

    def release_tapes(self) -> None:
        """Release the memory of all tapes."""
        w = self.low.w
        for tape in dict.fromkeys(tape for tape, _ in self.tapes.values()):
            self.low.arrays.release(w.define(f"load ptr, ptr {tape.address}"))
            w.do(f"store ptr null, ptr {tape.address}")
            w.do(f"store i64 0, ptr {tape.capacity}")

    def _reserve(self, tape: Tape, trip: str) -> None:
        """Make room for a record, in twice the memory where it is full."""
        w, arrays = self.low.w, self.low.arrays
        capacity = w.define(f"load i64, ptr {tape.capacity}")

        def grow() -> None:
            wider = w.define(f"shl i64 {capacity}, 1")
            wider = w.define(f"call i64 @llvm.smax.i64(i64 {wider}, i64 {_FIRST_RECORDS})")
            old = w.define(f"load ptr, ptr {tape.address}")
            new = arrays.allocate(w.define(f"mul i64 {wider}, {tape.size}"))
            arrays.memcpy(new, old, w.define(f"mul i64 {capacity}, {tape.size}"))
            arrays.release(old)
            w.do(f"store ptr {new}, ptr {tape.address}")
            w.do(f"store i64 {wider}, ptr {tape.capacity}")

        w.when(("grow", "room"), lambda: w.define(f"icmp sge i64 {trip}, {capacity}"), grow)

    def _record_address(self, tape: Tape, trip: str) -> str:
        w = self.low.w
        base = w.define(f"load ptr, ptr {tape.address}")
        offset = w.define(f"mul i64 {trip}, {tape.size}")
        return w.define(f"getelementptr i8, ptr {base}, i64 {offset}")

    def _item_address(self, list: Value) -> str:
        _, place = self.tapes[list]
        return self.low.w.define(f"getelementptr i8, ptr {self.record}, i64 {place}")

    def _store(self, value: Value, vector: str, address: str) -> None:
        kind, w = self.kind(value), self.low.w
        if kind.is_bool:
            vector = w.define(f"zext {kind.text} {vector} to <{self.lanes} x i8>")
        align = min(_RECORD_ALIGNMENT, self.lanes * kind.dtype.itemsize)
        w.do(f"store {memory_text(kind)} {vector}, ptr {address}, align {align}")

    def _load(self, value: Value, address: str) -> str:
        kind, w = self.kind(value), self.low.w
        align = min(_RECORD_ALIGNMENT, self.lanes * kind.dtype.itemsize)
        vector = w.define(f"load {memory_text(kind)}, ptr {address}, align {align}")
        return as_register(self.low, kind, vector)


def memory_text(kind: Kind) -> str:
    """Return the LLVM type of a vector in memory, where bools are bytes."""
    return f"<{kind.lanes} x i8>" if kind.is_bool else kind.text


def as_register(low: Lowering, kind: Kind, vector: str) -> str:
    """Emit a vector in registers from one in memory."""
    if not kind.is_bool:
        return vector
    return low.w.define(f"icmp ne <{kind.lanes} x i8> {vector}, zeroinitializer")
