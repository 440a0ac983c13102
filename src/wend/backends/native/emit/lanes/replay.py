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
from dataclasses import dataclass, field

from wend.backends.native.emit.lanes.elements import LaneElements
from wend.backends.native.emit.lanes.records import Tape
from wend.backends.native.emit.lanes.refill import is_time_to_refill
from wend.backends.native.emit.lanes.vectors import count_from, splat
from wend.backends.native.target.kinds import WORD
from wend.backends.native.target.value_layout import is_list
from wend.ir.graph import Node, Value
from wend.ops.control import WhileParts
from wend.passes.lane_maps import backward_counter

# Records of so many bytes stay in the second cache
MAX_BYTES = 1 << 17
# The vectors of a refill in the log, before those that the loop has forwarded
_TRIP, _LANES, _INDEX, _FIRST = range(4)


def emit_replayed(elements: LaneElements, loop: Node, backward: Node) -> None:
    """Emit a body with a loop and the loop that reads its records."""
    _Replay(elements, loop, backward).emit()


@dataclass(eq=False, slots=True)
class _Replay:
    """The two loops that are being emitted.

    Attributes:
        elements: the elements of the map.
        loop: the loop that writes records.
        backward: the loop that reads them.
        forwarded: what other nodes read of the results of the loop, but for lists.
        tape: the records.
        log: the refills. The first entry ends the backward loop, before the first trip.
    """

    elements: LaneElements
    loop: Node
    backward: Node
    forwarded: Sequence[Value] = field(init=False)
    tape: Tape = field(init=False)
    log: Tape = field(init=False)

    def __post_init__(self) -> None:
        e = self.elements
        body = e.body
        read = {x for node in body.nodes for x in node.operands}.union(body.results)
        self.forwarded = [x for x in self.loop.results if x in read and not is_list(x.type)]
        self.tape = e.regions.new_tape(self.loop, WhileParts.of(self.loop))
        e.regions.values.update((x, "") for x in self.loop.results if is_list(x.type))
        numbers = [e.regions.kind(x) for x in self.forwarded]
        self.log = Tape(e.low, [WORD, e.regions.flags, e.word, e.word, *numbers])

    def emit(self) -> None:
        """Emit the loops, for one part of the elements after the other."""
        w, count = self.elements.low.w, self.elements.count
        entry, head, inside, done = w.block, *map(w.new_label, ("head", "part", "done"))
        w.jump(head)
        w.start(head)
        first, close = w.open_phi("i64", "0", entry)
        w.branch(w.define(f"icmp slt i64 {first}, {count}"), inside, done)
        w.start(inside)
        following, trips, refills = self._emit_forward(first)
        self._emit_backward(trips, refills)
        close(following)
        w.jump(head)
        w.start(done)
        self.log.release()

    def _parts(self) -> tuple[Sequence[Node], Sequence[Node], Sequence[Node]]:
        """Return the nodes before the loops, between them and after them."""
        nodes = self.elements.body.nodes
        i, k = nodes.index(self.loop), nodes.index(self.backward)
        return nodes[:i], nodes[i + 1 : k], nodes[k + 1 :]

    def _emit_forward(self, first: str) -> tuple[str, str, str]:
        """Emit the loop that writes records.

        Returns the element that follows, the number of trips and that of entries of the log.
        """
        e, p = self.elements, WhileParts.of(self.loop)
        w, regions, word = e.low.w, e.regions, e.word
        before, *_ = self._parts()
        zeros = word.literal(0)
        index = count_from(e.low, e.lanes, first)
        mask = e.in_range(index)
        columns = e.loaded(first, mask, None)
        e.emit_nodes(before, columns, mask)
        operands = [regions.values[x] for x in self.loop.operands]
        everywhere, no_element = regions.flags.literal(True), splat(e.low, word, e.count)
        nothing = [regions.kind(x).literal(0) for x in self.forwarded]
        self._log_refill("0", ["-1", everywhere, no_element, zeros, *nothing])
        next_element = w.define(f"add i64 {first}, {e.lanes}")
        entry, head, refill, again, done = (
            w.block,
            *map(w.new_label, ("head", "refill", "again", "done")),
        )
        w.jump(head)
        w.start(head)
        state = [*e.columns, *p.before_carry, *p.before_invariants]
        index, close_index = w.open_phi(word.text, index, entry)
        born, close_born = w.open_phi(word.text, zeros, entry)
        following, close_following = w.open_phi("i64", next_element, entry)
        trip, close_trip = w.open_phi("i64", "0", entry)
        entries, close_entries = w.open_phi("i64", "1", entry)
        values, close_values = regions.open(state, [*columns, *operands], entry)
        columns, carry = values[: len(columns)], values[len(columns) :]
        carry, invariants = carry[: len(p.carry)], carry[len(p.carry) :]
        self.tape.reserve(trip)
        regions.record = self.tape.record(trip)
        active = e.in_range(index)
        test, *forwarded = regions.emit(p.before, [*carry, *invariants], active)
        goes_on = regions.both(active, test)
        is_done = w.define(f"xor {regions.flags.text} {active}, {goes_on}")
        next_carry = regions.emit(p.after, [*forwarded, *invariants], goes_on)
        next_carry = regions.choose(goes_on, p.next_carry, next_carry, carry)
        next_trip = w.define(f"add i64 {trip}, 1")
        done_count = e.number_of(is_done)
        is_time = is_time_to_refill(e, done_count, goes_on)
        from_trip = w.block
        w.branch(is_time, refill, again)
        w.start(refill)
        ended = dict(zip(self.loop.results, forwarded, strict=True))
        self._log_refill(entries, [trip, is_done, index, born, *(ended[x] for x in self.forwarded)])
        next_entries = w.define(f"add i64 {entries}, 1")
        most = max(1, MAX_BYTES // self.tape.size)
        is_full = w.define(f"icmp sge i64 {trip}, {most}")
        taken = w.define(
            f"select i1 {is_full}, {word.text} {no_element}, "
            f"{word.text} {e.taken(following, is_done)}"
        )
        new_index = regions.select(word, is_done, taken, index)
        in_range = e.in_range(new_index)
        fresh = regions.both(is_done, in_range)
        new_columns = e.loaded(following, fresh, columns)
        e.emit_nodes(before, new_columns, fresh)
        operands = [regions.values[x] for x in self.loop.operands]
        new_carry = regions.choose(fresh, p.carry, operands[: len(p.carry)], next_carry)
        new_born = regions.select(word, fresh, splat(e.low, word, next_trip), born)
        taken_count = w.define(f"select i1 {is_full}, i64 0, i64 {done_count}")
        new_following = w.define(f"add i64 {following}, {taken_count}")
        refilled = [new_index, new_born, new_following, next_entries]
        from_refill = w.block
        w.branch(regions.any(in_range), again, done)
        w.start(again)
        types = [word.text, word.text, "i64", "i64"]
        merged = w.merge(
            types, [([index, born, following, entries], from_trip), (refilled, from_refill)]
        )
        stayed = [*columns, *next_carry, *invariants]
        new_values = [*new_columns, *new_carry, *operands[len(p.carry) :]]
        next_values = [
            "" if is_list(x.type) else w.phi(regions.kind(x).text, (a, from_trip), (b, from_refill))
            for x, a, b in zip(state, stayed, new_values, strict=True)
        ]
        regions.end_trip()
        for close, value in zip(
            (close_index, close_born, close_following, close_entries), merged, strict=True
        ):
            close(value)
        close_trip(next_trip)
        close_values(next_values)
        w.jump(head)
        w.start(done)
        return new_following, next_trip, next_entries

    def _emit_backward(self, trips: str, entries: str) -> None:
        """Emit the loop that reads the records, the last first."""
        e, p = self.elements, WhileParts.of(self.backward)
        w, regions, word, log = e.low.w, e.regions, e.word, self.log
        tape, counter = regions.read_tapes(p), backward_counter(p)
        assert counter is not None
        state = [*self.forwarded, *p.before_carry, *p.before_invariants]
        zeros = ["" if is_list(x.type) else regions.kind(x).literal(0) for x in state]
        last = w.define(f"sub i64 {entries}, 1")
        last_trip, no_element = self._log_trip(last), splat(e.low, word, e.count)
        entry, head, refill, read, done = (
            w.block,
            *map(w.new_label, ("head", "refill", "read", "done")),
        )
        w.jump(head)
        w.start(head)
        left, close_left = w.open_phi("i64", trips, entry)
        number, close_number = w.open_phi("i64", last, entry)
        next_refill, close_next = w.open_phi("i64", last_trip, entry)
        index, close_index = w.open_phi(word.text, no_element, entry)
        born, close_born = w.open_phi(word.text, word.literal(0), entry)
        values, close_values = regions.open(state, zeros, entry)
        ended, carry, invariants = self._split(values)
        trip = w.define(f"sub i64 {left}, 1")
        from_head = w.block
        w.branch(w.define(f"icmp eq i64 {trip}, {next_refill}"), refill, read)
        w.start(refill)
        record = log.record(number)
        lanes = log.load(record, _LANES)
        self._finish(index, regions.both(lanes, e.in_range(index)), ended, carry, invariants)
        new_index = regions.select(word, lanes, log.load(record, _INDEX), index)
        new_born = regions.select(word, lanes, log.load(record, _FIRST), born)
        logged = [log.load(record, _FIRST + 1 + k) for k in range(len(self.forwarded))]
        new_ended = regions.choose(lanes, self.forwarded, logged, ended)
        self._between(new_index, e.in_range(new_index), new_ended)
        operands = [regions.values[x] for x in self.backward.operands]
        old = [*carry, *invariants]
        started = regions.choose(lanes, self.backward.operands, operands, old)
        before = w.define(f"sub i64 {number}, 1")
        new_number = w.define(f"call i64 @llvm.smax.i64(i64 {before}, i64 0)")
        new_next = self._log_trip(new_number)
        from_refill = w.block
        w.branch(w.define(f"icmp slt i64 {trip}, 0"), done, read)
        w.start(read)
        index, born, number, next_refill = w.merge(
            [word.text, word.text, "i64", "i64"],
            [
                ([index, born, number, next_refill], from_head),
                ([new_index, new_born, new_number, new_next], from_refill),
            ],
        )
        values = [
            "" if is_list(x.type) else w.phi(regions.kind(x).text, (a, from_head), (b, from_refill))
            for x, a, b in zip(state, values, [*new_ended, *started], strict=True)
        ]
        ended, carry, invariants = self._split(values)
        _, *forwarded = regions.emit(p.before, [*carry, *invariants], regions.flags.literal(True))
        end = w.define(f"add {word.text} {carry[counter]}, {born}")
        # A lane at the first trip of its element meets the refill there before the next trip
        goes_on = w.define(f"icmp eq {word.text} {end}, {splat(e.low, word, left)}")
        regions.record = tape.record(trip)
        following = regions.emit(p.after, [*forwarded, *invariants], goes_on)
        following = regions.choose(goes_on, p.next_carry, following, carry)
        regions.end_trip()
        close_left(trip)
        close_number(number)
        close_next(next_refill)
        close_index(index)
        close_born(born)
        close_values([*ended, *following, *invariants])
        w.jump(head)
        w.start(done)

    def _split(self, values: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
        """Return what the loop has forwarded, the carry of the backward loop, its invariants."""
        i = len(self.forwarded)
        k = i + len(WhileParts.of(self.backward).carry)
        return [*values[:i]], [*values[i:k]], [*values[k:]]

    def _between(self, index: str, mask: str, ended: Sequence[str]) -> None:
        """Emit the nodes between the loops again, from the numbers of elements."""
        e = self.elements
        before, between, _ = self._parts()
        e.emit_nodes(before, e.gathered(index, mask), mask)
        e.regions.values.update(zip(self.forwarded, ended, strict=True))
        e.regions.emit_nodes(between, mask)

    def _finish(
        self,
        index: str,
        mask: str,
        ended: Sequence[str],
        carry: Sequence[str],
        invariants: Sequence[str],
    ) -> None:
        """Emit the nodes after the loops, and store the results of the lanes of a mask."""
        e, p = self.elements, WhileParts.of(self.backward)
        *_, after = self._parts()
        self._between(index, mask, ended)
        _, *forwarded = e.regions.emit(p.before, [*carry, *invariants], mask)
        e.regions.values.update(zip(self.backward.results, forwarded, strict=True))
        e.regions.emit_nodes(after, mask)
        e.scatter(index, mask)

    def _log_refill(self, number: str, entry: Sequence[str]) -> None:
        self.log.reserve(number)
        record = self.log.record(number)
        for k, vector in enumerate(entry):
            self.log.store(record, k, vector)

    def _log_trip(self, number: str) -> str:
        """Emit after which trip there is a refill."""
        return self.log.load(self.log.record(number), _TRIP)
