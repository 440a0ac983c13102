"""A loop and its backward loop, whose lanes take the next elements: refills are replayed backwards.

The loop writes a record of all lanes each trip, and logs its refills: after which trip, in which
lanes, and of the elements that ended there, their numbers, their first trips and what the loop has
forwarded. The backward loop goes through the records from the last to the first. Where it meets a
refill, the elements that lanes have gone back through are done, and the lanes take those that ended
there.

When the records fill the cache, lanes take no more elements. The backward loop goes through the
records, and the next elements begin with none. So the memory is bounded, but for the longest
elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from wend.backends.native.emit.lanes.elements import LaneElements
from wend.backends.native.emit.lanes.records import Tape
from wend.backends.native.emit.lanes.refill import RefilledLoop
from wend.backends.native.emit.lanes.stack_variables import StackVariable, StackVariables
from wend.backends.native.emit.lanes.vectors import splat
from wend.backends.native.target.kinds import WORD
from wend.backends.native.target.value_layout import is_list
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Node, Value
from wend.ops.control import WhileParts
from wend.passes.lane_maps import backward_counter

# Records of so many bytes stay in the second cache; when they are read, lanes wait for the longest
# element, so there are so many trips at least
MAX_BYTES, FEWEST_TRIPS = 1 << 17, 256


def emit_replayed(elements: LaneElements, loop: Node, backward: Node) -> None:
    """Emit a body with a loop and the loop that reads its records."""
    read = {x for node in elements.body.nodes for x in node.operands}
    read.update(elements.body.results)
    forwarded = [x for x in loop.results if x in read and not is_list(x.type)]
    elements.regions.values.update((x, "") for x in loop.results if is_list(x.type))
    tape = elements.regions.new_tape(loop, WhileParts.of(loop))
    log = _Log.of(elements, forwarded)
    low = elements.low
    first = StackVariable.of(low.w, "i64", "0")
    head, part, done = map(low.w.new_label, ("head", "part", "done"))
    low.w.jump(head)
    low.w.start(head)
    low.w.branch(low.w.define(f"icmp slt i64 {first.load()}, {elements.count}"), part, done)
    low.w.start(part)
    forward = _AugmentedLoop(elements, loop, tape, log)
    forward.emit(first.load())
    _BackwardLoop(elements, loop, backward, tape, log).emit(forward.trip.load())
    first.store(forward.following.load())
    low.w.jump(head)
    low.w.start(done)
    log.tape.release()


@dataclass(eq=False, slots=True)
class _Log:
    """The refills of a loop. The first entry ends the backward loop, before the first trip.

    Attributes:
        elements: the elements of the map.
        forwarded: what other nodes read of the results of the loop, but for lists.
        tape: for each refill its trip and its lanes, and of the elements that ended there their
            numbers, their first trips and what the loop has forwarded.
        count: the number of entries.
    """

    elements: LaneElements
    forwarded: Sequence[Value]
    tape: Tape
    count: StackVariable

    @staticmethod
    def of(e: LaneElements, forwarded: Sequence[Value]) -> _Log:
        numbers = [e.regions.kind(x) for x in forwarded]
        tape = Tape(e.low, [WORD, e.regions.flags, e.word, e.word, *numbers])
        return _Log(e, forwarded, tape, StackVariable.of(e.low.w, "i64", "0"))

    def clear(self) -> None:
        """Emit the first entry, of no element that ended."""
        self.count.store("0")
        e = self.elements
        _, flags, _, *vectors = self.tape.kinds
        no_element = splat(e.low, e.word, e.count)
        self.push("-1", flags.literal(True), no_element, *(kind.literal(0) for kind in vectors))

    def push(self, trip: str, lanes: str, *vectors: str) -> None:
        """Emit another entry."""
        number = self.count.load()
        self.tape.reserve(number)
        record = self.tape.record(number)
        for k, vector in enumerate((trip, lanes, *vectors)):
            self.tape.store(record, k, vector)
        self.count.store(self.count.w.define(f"add i64 {number}, 1"))

    def pop(self) -> tuple[str, str, str, list[str]]:
        """Emit the last entry, and drop it: its lanes, elements, first trips, and the vectors."""
        number = self.count.w.define(f"sub i64 {self.count.load()}, 1")
        record = self.tape.record(number)
        self.count.store(number)
        _, lanes, index, first, *forwarded = (
            self.tape.load(record, k) for k in range(len(self.tape.kinds))
        )
        return lanes, index, first, forwarded

    def last_trip(self) -> str:
        """Emit the trip of the last entry; where there is none, that of the first."""
        w = self.count.w
        number = w.define(f"sub i64 {self.count.load()}, 1")
        number = w.define(f"call i64 @llvm.smax.i64(i64 {number}, i64 0)")
        return self.tape.load(self.tape.record(number), 0)


@dataclass(eq=False, slots=True)
class _AugmentedLoop(RefilledLoop):
    """The loop that writes records.

    Attributes:
        tape: the records.
        log: the refills.
        trip: the number of trips so far.
        born: the trips in which the elements in the lanes began.
    """

    tape: Tape
    log: _Log
    trip: StackVariable = field(init=False)
    born: StackVariable = field(init=False)

    def emit(self, first: str) -> None:
        e = self.elements
        self.log.clear()
        self.trip = StackVariable.of(e.low.w, "i64", "0")
        self.born = StackVariable.of(e.low.w, e.word.text, e.word.literal(0))
        RefilledLoop.emit(self, first)
        for inner in e.regions.items_of(self.tape):
            inner.set_end("0")

    def begin_trip(self) -> None:
        w, trip = self.elements.low.w, self.trip.load()
        self.tape.reserve(trip)
        self.elements.regions.record = self.tape.record(trip)
        self.trip.store(w.define(f"add i64 {trip}, 1"))

    def may_take(self) -> str:
        w, tape = self.elements.low.w, self.tape
        written = w.define(f"mul i64 {self.trip.load()}, {tape.size}")
        for inner in self.elements.regions.items_of(tape):
            written = w.define(
                f"add i64 {written}, {w.define(f'mul i64 {inner.end()}, {inner.size}')}"
            )
        return w.define(f"icmp sle i64 {written}, {max(MAX_BYTES, FEWEST_TRIPS * tape.size)}")

    def finish(self, index: str, is_done: str, forwarded: Sequence[str]) -> None:
        e, trip, born = self.elements, self.trip.load(), self.born.load()
        ended = dict(zip(self.loop.results, forwarded, strict=True))
        last = e.low.w.define(f"sub i64 {trip}, 1")
        self.log.push(last, is_done, index, born, *(ended[x] for x in self.log.forwarded))
        next_trip = splat(e.low, e.word, trip)
        self.born.store(e.regions.select(e.word, is_done, next_trip, born))


@dataclass(eq=False, slots=True)
class _BackwardLoop:
    """The loop that reads the records, the last first.

    Attributes:
        elements: the elements of the map.
        loop: the loop that has written the records.
        backward: the loop that reads them.
        tape: the records.
        log: the refills, which it takes away.
        index: the numbers of the elements in the lanes.
        born: their first trips.
        columns: their numbers in memory.
        ended: what the loop has forwarded of them.
        state: the carry and the invariants of the backward loop.
    """

    elements: LaneElements
    loop: Node
    backward: Node
    tape: Tape
    log: _Log
    index: StackVariable = field(init=False)
    born: StackVariable = field(init=False)
    columns: StackVariables = field(init=False)
    ended: StackVariables = field(init=False)
    state: StackVariables = field(init=False)

    def emit(self, trips: str) -> None:
        """Emit the loop for so many records."""
        e, p = self.elements, WhileParts.of(self.backward)
        w, kind = e.low.w, e.regions.kind
        e.regions.read_tapes(p)
        left, next_refill = (
            StackVariable.of(w, "i64", trips),
            StackVariable.of(w, "i64", self.log.last_trip()),
        )
        self.index = StackVariable.of(w, e.word.text, splat(e.low, e.word, e.count))
        self.born = StackVariable.of(w, e.word.text, e.word.literal(0))
        self.columns, self.ended, self.state = (
            e.regions.variables(
                values, ["" if is_list(x.type) else kind(x).literal(0) for x in values]
            )
            for values in (
                e.columns,
                self.log.forwarded,
                (*p.before_carry, *p.before_invariants),
            )
        )
        head, read, done = map(w.new_label, ("head", "read", "done"))
        w.jump(head)
        w.start(head)
        trip = w.define(f"sub i64 {left.load()}, 1")
        e.regions.record = self.tape.record(trip)

        def take_back() -> None:
            self._take_back(p)
            next_refill.store(self.log.last_trip())

        is_refill = w.define(f"icmp eq i64 {trip}, {next_refill.load()}")
        w.when(("refill", "again"), lambda: is_refill, take_back)
        w.branch(w.define(f"icmp slt i64 {trip}, 0"), done, read)
        w.start(read)
        self._emit_trip(p, trip)
        left.store(trip)
        w.jump(head)
        w.start(done)

    def _emit_trip(self, p: WhileParts, trip: str) -> None:
        e, counter = self.elements, backward_counter(p)
        assert counter is not None
        w, regions, word = e.low.w, e.regions, e.word
        state = self.state.load()
        carry, invariants = state[: len(p.carry)], state[len(p.carry) :]
        end = w.define(f"add {word.text} {carry[counter]}, {self.born.load()}")
        left = splat(e.low, word, w.define(f"add i64 {trip}, 1"))
        # A lane at the first trip of its element meets the refill there before the next trip
        goes_on = w.define(f"icmp eq {word.text} {end}, {left}")
        _, *forwarded = regions.emit(p.before, state, goes_on)
        following = regions.emit(p.after, [*forwarded, *invariants], goes_on)
        self.state.store([*regions.choose(goes_on, p.next_carry, following, carry), *invariants])
        regions.end_trip()

    def _take_back(self, p: WhileParts) -> None:
        """Emit what follows the loop for elements that are done, and take those of an entry."""
        e, regions, word = self.elements, self.elements.regions, self.elements.word
        lanes, index, first, forwarded = self.log.pop()
        state, ended, old = self.state.load(), self.ended.load(), self.index.load()
        self._finish(p, old, regions.both(lanes, e.in_range(old)), ended, state)
        index = regions.select(word, lanes, index, old)
        mask = e.in_range(index)
        ended = regions.choose(lanes, self.log.forwarded, forwarded, ended)
        columns = e.gathered(index, mask)
        self._emit_between(columns, mask, ended)
        self.columns.store(columns)
        operands = [regions.values[x] for x in self.backward.operands]
        self.index.store(index)
        self.born.store(regions.select(word, lanes, first, self.born.load()))
        self.ended.store(ended)
        self.state.store(regions.choose(lanes, self.backward.operands, operands, state))

    def _emit_between(self, columns: Sequence[str], mask: str, ended: Sequence[str]) -> None:
        """Emit the nodes between the loops, from the numbers of elements in memory."""
        e, nodes = self.elements, self.elements.body.nodes
        at = nodes.index(self.loop)
        e.emit_nodes(nodes[:at], columns, mask)
        e.regions.values.update(zip(self.log.forwarded, ended, strict=True))
        e.regions.emit_nodes(nodes[at + 1 : nodes.index(self.backward)], mask)

    def _finish(
        self, p: WhileParts, index: str, mask: str, ended: Sequence[str], state: Sequence[str]
    ) -> None:
        """Emit the nodes after the loops, and store the results of the lanes of a mask."""
        e, nodes = self.elements, self.elements.body.nodes
        self._emit_between(self.columns.load(), mask, ended)
        _, *forwarded = e.regions.emit(p.before, state, mask)
        e.regions.values.update(zip(self.backward.results, forwarded, strict=True))
        e.regions.emit_nodes(nodes[nodes.index(self.backward) + 1 :], mask)
        e.scatter(index, mask)
