"""The forward loop of `Checkpoints(n)`: which trips it keeps while their number is unknown.

How many trips n slots reverse, if none is run more than r times more, is a binomial coefficient:
β(n, r) = (n + r) over n (Griewank, 1992). Of such a schedule, the distance that precedes slot j is
at most β(n − j + 1, r − 1). The loop keeps its slots near those distances: once they are full, a
new one is taken every r trips, in place of the one whose removal leaves the least excess, the
latest of several. In the backward pass, freed slots are placed by the same numbers
(`checkpoint_restarts.py`). Online checkpointing is due to Stumm and Walther (2010), and Wang, Moin
and Iaccarino (2009), whose evaluation counts this stays below.

Where trips record little, a slot is the state before a segment of trips (`checkpoints.py`), and all
of these numbers count segments.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wend.autodiff.loop_tape import record_type
from wend.autodiff.structured import emit_branches, emit_loop
from wend.base.lazy.dataclass import dataclass
from wend.base.memory import segmented
from wend.ir.graph import Value
from wend.ir.rewrite import inline
from wend.ops import elementwise, reducing
from wend.ops.build import Build
from wend.ops.control import WhileParts

_FAR = np.int64(1) << 40  # more than any distance of two slots


@dataclass(frozen=True, slots=True)
class Slots:
    """Where the states of some trips are kept, as values of a graph.

    Attributes:
        trips: the number of trips, or segments, that were made.
        last: the trips of the last segment.
        positions: the trips whose states are kept, in rising order; as many as there are slots, the
            first ones of which are in use.
        places: for each of those, where in the lists its state is; the others are free places.
        lists: a list for each value of the state.
    """

    trips: Value
    last: Value
    positions: Value
    places: Value
    lists: Sequence[Value]

    def values(self) -> list[Value]:
        """Return the values, in order."""
        return [self.trips, self.last, self.positions, self.places, *self.lists]

    @staticmethod
    def of(values: Sequence[Value]) -> Slots:
        """Return the slots of values in that order."""
        trips, last, positions, places, *lists = values
        return Slots(trips, last, positions, places, lists)


def append_placement(
    b: Build,
    w: WhileParts,
    operands: Sequence[Value],
    state: Sequence[int],
    slots: int,
    segment: int,
) -> tuple[Sequence[Value], Slots]:
    """Append the rotated loop that also fills slots.

    Args:
        b: the builder.
        w: the parts of the rotated loop.
        operands: those of the loop.
        state: which forwarded values are kept.
        slots: the number of slots.
        segment: the trips of a segment.

    Returns:
        What the loop forwards at its end, and the slots.
    """
    carried, count = len(w.carry), len(w.forwarded)
    types = [record_type(w.after_forwarded[i]) for i in state]
    order = b.iota(slots)
    numbers = [b.integer(0), b.integer(1), b.integer(slots + 1)]
    distances = b.constant(np.ones(slots, np.int64))
    placement = [*numbers, distances, order, order, *map(b.list_new, types)]
    start = [*operands[:carried], b.integer(0), *placement]
    like = [*w.before_carry, *start[carried:]]

    def keep(b: Build, values: Sequence[Value]) -> Sequence[Value]:
        return _keep(b, values[: len(placement)], values[len(placement) :], slots)

    def body(b: Build, carry: Sequence[Value], invariants: Sequence[Value]) -> Sequence[Value]:
        forwarded, remaining, values = carry[1:carried], carry[carried], carry[carried + 1 :]
        values = [*values, *(forwarded[i] for i in state)]
        if segment == 1:
            values = keep(b, values)
        else:
            is_first = b.eq(remaining, b.integer(0))
            branches = [lambda _, values: values[: len(placement)], keep]
            values = emit_branches(b, is_first, values, branches)
            remaining = b.select(is_first, b.integer(segment), remaining)
            remaining = b.sub(remaining, b.integer(1))
        return [*inline(w.after, [*forwarded, *invariants], b.nodes), remaining, *values]

    outer = operands[carried:]
    applied = segmented(w.applied or w.memory, segment)
    results = emit_loop(b, start, outer, lambda b, c, _: c[0], body, like=like, applied=applied)
    remaining, trips, _, _, _, positions, places, *lists = results[carried:]
    last = b.sub(b.integer(segment), remaining)
    return results[1 : count + 1], Slots(trips, last, positions, places, lists)


def _keep(
    b: Build, placement: Sequence[Value], state: Sequence[Value], slots: int
) -> Sequence[Value]:
    """Keep the state before a trip, if it is among those to be kept; count the trip."""
    trip, repeats, limit, distances, positions, places, *lists = placement
    repeats, limit, distances = emit_branches(
        b,
        b.ge(trip, limit),
        [repeats, limit, distances],
        [lambda _, values: values, lambda b, values: _raised(b, values, slots)],
    )
    last = b.gather(positions, b.integer(slots - 1))
    is_due = b.ge(b.sub(trip, last), repeats)
    if slots == 1:
        is_due = b.constant(False)
    choice = b.select(is_due, b.integer(2), b.integer(0))
    choice = b.select(b.lt(trip, b.integer(slots)), b.integer(1), choice)

    def skip(b: Build, values: Sequence[Value]) -> Sequence[Value]:
        return [*values[2 : 4 + len(lists)]]

    def push(b: Build, values: Sequence[Value]) -> Sequence[Value]:
        _, _, positions, places, *others = values
        pairs = zip(others[: len(lists)], others[len(lists) :], strict=True)
        return [positions, places, *(b.list_push(list, value) for list, value in pairs)]

    def replace(b: Build, values: Sequence[Value]) -> Sequence[Value]:
        trip, distances, positions, places, *others = values
        positions, places, place = _replaced(b, trip, distances, positions, places, slots)
        pairs = zip(others[: len(lists)], others[len(lists) :], strict=True)
        return [positions, places, *(b.list_set(list, place, value) for list, value in pairs)]

    operands = [trip, distances, positions, places, *lists, *state]
    updated = emit_branches(b, choice, operands, [skip, push, replace])
    return [b.add(trip, b.integer(1)), repeats, limit, distances, *updated]


def _raised(b: Build, values: Sequence[Value], slots: int) -> Sequence[Value]:
    """Return r + 1, β(n, r + 1) and the distances β(n − j + 1, r), from those of r."""
    repeats, limit, distances = values
    following = b.add(repeats, b.integer(1))
    limit = b.floor_divide(b.mul(limit, b.add(following, b.integer(slots))), following)
    sizes = b.constant(np.arange(slots + 1, 1, -1))
    factors = b.add(sizes, b.broadcast_like(repeats, sizes))
    product = b.mul(distances, factors)
    return [following, limit, b.floor_divide(product, b.broadcast_like(repeats, product))]


def _replaced(
    b: Build, trip: Value, distances: Value, positions: Value, places: Value, slots: int
) -> tuple[Value, Value, Value]:
    """Drop the slot whose removal leaves the least excess, and append one for a trip.

    Returns:
        The positions, the places, and the place that has become free.
    """
    last = slots - 1
    newest = b.insert_axes(trip, axes=(0,))
    following = b.concat(b.part(positions, 1, slots), newest, axis=0)
    before = b.concat(b.part(positions, 0, 1), b.part(positions, 0, last), axis=0)
    gaps = b.sub(following, before)
    excess = b.emit(elementwise.maximum, b.sub(gaps, distances), b.zeros_like(gaps))
    # The first slot stays. Of equal ones, the latest has the smallest key.
    first = np.zeros(slots, np.int64)
    first[0] = _FAR
    ranks = np.arange(last, -1, -1)
    keys = b.add(
        b.mul(b.add(excess, b.constant(first)), b.full_like(excess, slots)), b.constant(ranks)
    )
    smallest = b.emit(reducing.reduce_min, keys, axes=(0,), keepdims=False)
    dropped = b.sub(b.integer(last), b.emit(elementwise.remainder, smallest, b.integer(slots)))
    place = b.gather(places, dropped)
    order = b.constant(np.arange(slots))
    is_before = b.lt(order, b.broadcast_like(dropped, order))
    later = b.concat(b.part(places, 1, slots), b.insert_axes(place, axes=(0,)), axis=0)
    return b.select(is_before, positions, following), b.select(is_before, places, later), place
