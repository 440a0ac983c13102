"""The backward loop of `Checkpoints(n)`: it runs trips again from the nearest slot.

To go back over l trips from a slot, s slots being free with it, the first of them is placed after d
trips. Every d for which both parts can do with the fewest repetitions r is optimal (Griewank and
Walther, 2000); the smallest is taken: max(β(s, r − 2), l − β(s − 1, r)), where β(s, r) is (s + r)
over s.

Where trips record little, l counts segments of trips. One segment is gone back over at a time, with
the tape of `"keep"`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wend.autodiff.checkpoint_placement import Slots
from wend.autodiff.schedule import LoopSteps
from wend.autodiff.segment_back import went_back
from wend.autodiff.structured import emit_branches, emit_loop
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Value
from wend.ir.rewrite import inline
from wend.ops import elementwise
from wend.ops.build import Build


@dataclass(frozen=True, slots=True)
class TripSegment:
    """The trips that are gone back over at a time.

    Attributes:
        trips: how many.
        back: what `segment_back` gives; None for one trip.
    """

    trips: int
    back: Graph | None


def append_restarts(
    b: Build,
    loop: LoopSteps,
    count: int,
    slots: Slots,
    segment: TripSegment,
    cts: Sequence[Value],
    invariants: Sequence[Value],
) -> Sequence[Value]:
    """Append the loop over segments, from the last to the first; return the last cotangents.

    Args:
        b: the builder.
        loop: the loop to go back over.
        count: the number of slots.
        slots: the slots as the forward loop has left them.
        segment: how long a segment is, and how to go back over it.
        cts: the cotangents and sums to start from.
        invariants: the invariants of the loop.
    """
    used = b.emit(elementwise.minimum, slots.trips, b.integer(count))
    carry = [*slots.values(), used, *cts]
    first = len(carry) - len(cts)

    def body(b: Build, carry: Sequence[Value], invariants: Sequence[Value]) -> Sequence[Value]:
        slots, used, cts = Slots.of(carry[: first - 1]), carry[first - 1], carry[first:]
        state, slots, used = _restored(b, loop, count, slots, used, segment.trips, invariants)
        if segment.back is None:
            cts = inline(loop.step_back, [*state, *invariants, *cts], b.nodes)
        else:
            # What is written here is known where a program needs room for all records of a segment
            trips = b.emit(elementwise.minimum, slots.last, b.integer(segment.trips))
            cts = went_back(b, loop, segment.back, state, invariants, trips, cts)
        trips, full = b.sub(slots.trips, b.integer(1)), b.integer(segment.trips)
        return [trips, full, *slots.values()[2:], used, *cts]

    def test(b: Build, carry: Sequence[Value], _: Sequence[Value]) -> Value:
        return b.gt(carry[0], b.integer(0))

    like = [*carry[:first], *loop.cts]
    return emit_loop(b, carry, invariants, test, body, like=like)[first:]


def _restored(
    b: Build,
    loop: LoopSteps,
    count: int,
    slots: Slots,
    used: Value,
    segment: int,
    invariants: Sequence[Value],
) -> tuple[Sequence[Value], Slots, Value]:
    """Return the state before the last segment, the slots, and how many of them are in use."""
    newest = b.sub(used, b.integer(1))
    trip, place = b.gather(slots.positions, newest), b.gather(slots.places, newest)
    pairs = zip(slots.lists, loop.state, strict=True)
    state = [b.refine(b.list_get(list, place), like.type) for list, like in pairs]
    # The state before the last segment is read for the last time.
    is_last = b.eq(b.add(trip, b.integer(1)), slots.trips)
    used = b.select(is_last, newest, used)
    size = len(state)
    outer = [slots.trips, *invariants]
    carry = [trip, used, slots.positions, slots.places, *slots.lists, *state]
    like = [*carry[: len(carry) - size], *loop.state]

    def test(b: Build, carry: Sequence[Value], outer: Sequence[Value]) -> Value:
        return b.lt(b.add(carry[0], b.integer(1)), outer[0])

    def body(b: Build, carry: Sequence[Value], outer: Sequence[Value]) -> Sequence[Value]:
        trip, used, positions, places, *others = carry
        lists, state = others[:size], others[size:]
        length = b.sub(outer[0], trip)
        free = b.sub(b.integer(count), used)
        distance = _distance(b, length, b.add(free, b.integer(1)))
        trips = distance if segment == 1 else b.mul(distance, b.integer(segment))
        state = [*_advanced(b, loop, state, trips, outer[1:])]
        trip = b.add(trip, distance)
        is_before = b.lt(b.add(trip, b.integer(1)), outer[0])
        placed = emit_branches(
            b,
            is_before,
            [used, trip, positions, places, *lists, *state],
            [lambda b, v: [v[0], *v[2 : 4 + size]], lambda b, v: _push(b, v, size)],
        )
        return [trip, *placed, *state]

    results = emit_loop(b, carry, outer, test, body, like=like)
    _, used, positions, places, *others = results
    slots = Slots(slots.trips, slots.last, positions, places, others[:size])
    return others[size:], slots, used


def _push(b: Build, values: Sequence[Value], size: int) -> Sequence[Value]:
    """Keep a state in the next free place."""
    used, trip, positions, places, *others = values
    place = b.gather(places, used)
    pairs = zip(others[:size], others[size:], strict=True)
    lists = [b.list_set(list, place, value) for list, value in pairs]
    return [b.add(used, b.integer(1)), b.scatter_set(positions, trip, used), places, *lists]


def _advanced(
    b: Build, loop: LoopSteps, state: Sequence[Value], distance: Value, invariants: Sequence[Value]
) -> Sequence[Value]:
    """Make so many trips."""

    def body(b: Build, carry: Sequence[Value], invariants: Sequence[Value]) -> Sequence[Value]:
        remaining, *state = carry
        state = list(inline(loop.step, [*state, *invariants], b.nodes))
        return [b.sub(remaining, b.integer(1)), *state]

    def test(b: Build, carry: Sequence[Value], _: Sequence[Value]) -> Value:
        return b.gt(carry[0], b.integer(0))

    like = [distance, *loop.state]
    return emit_loop(b, [distance, *state], invariants, test, body, like=like)[1:]


def _distance(b: Build, length: Value, slots: Value) -> Value:
    """Return after how many trips to place the next slot; without one, how many to make."""
    one = b.integer(1)

    def test(b: Build, carry: Sequence[Value], outer: Sequence[Value]) -> Value:
        return b.lt(carry[1], outer[0])

    def body(b: Build, carry: Sequence[Value], outer: Sequence[Value]) -> Sequence[Value]:
        repeats = b.add(carry[0], b.integer(1))
        return [repeats, b.floor_divide(b.mul(carry[1], b.add(outer[1], repeats)), repeats)]

    def without_slots(b: Build, values: Sequence[Value]) -> Sequence[Value]:
        return [b.sub(values[0], b.integer(1))]

    def placed(b: Build, values: Sequence[Value]) -> Sequence[Value]:
        length, slots = values
        zero, one = b.integer(0), b.integer(1)
        repeats, most = emit_loop(b, [zero, one], [length, slots], test, body)
        total = b.add(slots, repeats)
        once_less = b.floor_divide(b.mul(most, repeats), total)
        twice_less = b.floor_divide(b.mul(once_less, b.sub(repeats, one)), b.sub(total, one))
        one_slot_less = b.floor_divide(b.mul(most, slots), total)
        distance = _maximum(b, twice_less, b.sub(length, one_slot_less))
        longest = b.sub(length, one)
        return [_maximum(b, one, b.emit(elementwise.minimum, distance, longest))]

    branches: list[Callable[[Build, Sequence[Value]], Sequence[Value]]] = [without_slots, placed]
    (distance,) = emit_branches(b, b.gt(slots, one), [length, slots], branches)
    return distance


def _maximum(b: Build, x: Value, y: Value) -> Value:
    return b.emit(elementwise.maximum, x, y)
