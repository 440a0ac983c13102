"""The policy `"thin"`: about √T states of a loop are kept, and each trip runs once more (D31).

The forward loop keeps the state before every K-th trip, from K = 1 on. Whenever its S slots are
full, either S doubles, or every other state is dropped and K doubles, in turn. So T trips leave at
most S ≤ √(2 T) states, at a distance of K ≤ √(2 T). The backward loop goes from the last to the
first: it runs the trips from one state to the next again, with the tape of `"keep"`.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.autodiff.loop_tape import record_type
from wend.autodiff.schedule import LoopSteps
from wend.autodiff.segment_back import segment_back, went_back
from wend.autodiff.structured import emit_branches, emit_loop
from wend.autodiff.transpose import Transposer
from wend.ir.graph import Value
from wend.ir.rewrite import inline
from wend.ops.build import Build

_FIRST_SLOTS = 8  # a power of two


class ThinSchedule:
    """Keeps the states before every K-th trip, K being a power of two that grows."""

    segment = 16  # trips, of the form that derivatives are taken of

    def place(
        self, t: Transposer, b: Build, loop: LoopSteps, operands: Sequence[Value]
    ) -> tuple[Sequence[Value], Sequence[Value]]:
        """Append the loop; return what it forwards at its end, and (trips, K, used, lists…)."""
        w, state = loop.w, loop.state_positions
        carried, count = len(w.carry), len(w.forwarded)
        types = [record_type(w.after_forwarded[i]) for i in state]
        numbers = [b.integer(n) for n in (0, 1, 0, _FIRST_SLOTS)]
        start = [*operands[:carried], *numbers, *map(b.list_new, types)]
        like = [*w.before_carry, *start[carried:]]

        def body(b: Build, carry: Sequence[Value], invariants: Sequence[Value]) -> Sequence[Value]:
            forwarded, placement = carry[1:carried], carry[carried:]
            placement = _keep(b, placement, [forwarded[i] for i in state])
            return [*inline(w.after, [*forwarded, *invariants], b.nodes), *placement]

        outer = operands[carried:]
        results = emit_loop(
            b, start, outer, lambda b, c, _: c[0], body, like=like, applied=w.applied or w.memory
        )
        trips, distance, used, _, *lists = results[carried:]
        return results[1 : count + 1], [trips, distance, used, *lists]

    def go_back(
        self,
        t: Transposer,
        b: Build,
        loop: LoopSteps,
        slots: Sequence[Value],
        cts: Sequence[Value],
        invariants: Sequence[Value],
    ) -> Sequence[Value]:
        """Append the loop over the states, from the last to the first."""
        trips, distance, used, *lists = slots
        segment = segment_back(t, loop)
        outer = [distance, *lists, *invariants]

        def body(b: Build, carry: Sequence[Value], outer: Sequence[Value]) -> Sequence[Value]:
            trips, used, *cts = carry
            distance, lists, invariants = outer[0], outer[1 : len(lists_in) + 1], outer[first:]
            newest = b.sub(used, b.integer(1))
            pairs = zip(lists, loop.state, strict=True)
            state = [b.refine(b.list_get(list, newest), like.type) for list, like in pairs]
            start = b.mul(newest, distance)
            count = b.sub(trips, start)
            cts = went_back(b, loop, segment, state, invariants, count, cts)
            return [start, newest, *cts]

        def test(b: Build, carry: Sequence[Value], _: Sequence[Value]) -> Value:
            return b.gt(carry[1], b.integer(0))

        lists_in, first = lists, len(lists) + 1
        like = [trips, used, *loop.cts]
        return emit_loop(b, [trips, used, *cts], outer, test, body, like=like)[2:]


def _keep(b: Build, placement: Sequence[Value], state: Sequence[Value]) -> Sequence[Value]:
    """Keep the state before a trip, if it is among those to be kept; count the trip."""
    trip, distance, used, slots, *lists = placement
    size = len(lists)
    is_due = b.eq(trip, b.mul(used, distance))

    def skip(b: Build, values: Sequence[Value]) -> Sequence[Value]:
        return values[: size + 3]

    def store(b: Build, values: Sequence[Value]) -> Sequence[Value]:
        room, state = values[: size + 3], values[size + 3 :]
        is_full = b.eq(values[1], values[2])
        branches = [lambda _, values: values, _made_room]
        distance, used, slots, *lists = emit_branches(b, is_full, room, branches)
        return [distance, b.add(used, b.integer(1)), slots, *_stored(b, used, lists, state)]

    placed = emit_branches(b, is_due, [distance, used, slots, *lists, *state], [skip, store])
    return [b.add(trip, b.integer(1)), *placed]


def _made_room(b: Build, values: Sequence[Value]) -> Sequence[Value]:
    """Double the slots if they are not twice the distance, else drop every other state."""
    distance, _, slots, *_ = values

    def grow(b: Build, values: Sequence[Value]) -> Sequence[Value]:
        distance, used, slots, *lists = values
        return [distance, used, b.mul(slots, b.integer(2)), *lists]

    def thin(b: Build, values: Sequence[Value]) -> Sequence[Value]:
        distance, used, slots, *lists = values
        half = b.floor_divide(used, b.integer(2))
        return [b.mul(distance, b.integer(2)), half, slots, *_halved(b, lists, half)]

    is_thinned = b.ge(slots, b.mul(distance, b.integer(2)))
    return emit_branches(b, is_thinned, values, [grow, thin])


def _halved(b: Build, lists: Sequence[Value], half: Value) -> Sequence[Value]:
    """Move every other item to the front."""
    if not lists:
        return []

    def body(b: Build, carry: Sequence[Value], outer: Sequence[Value]) -> Sequence[Value]:
        k, *lists = carry
        source = b.mul(k, b.integer(2))
        moved = [b.list_set(list, k, b.list_get(list, source)) for list in lists]
        return [b.add(k, b.integer(1)), *moved]

    def test(b: Build, carry: Sequence[Value], outer: Sequence[Value]) -> Value:
        return b.lt(carry[0], outer[0])

    return emit_loop(b, [b.integer(1), *lists], [half], test, body)[1:]


def _stored(
    b: Build, used: Value, lists: Sequence[Value], state: Sequence[Value]
) -> Sequence[Value]:
    """Write a state behind the ones in use, which need not be the last of the lists."""
    if not lists:
        return []
    size = len(lists)

    def put(b: Build, values: Sequence[Value]) -> Sequence[Value]:
        pairs = zip(values[1 : size + 1], values[size + 1 :], strict=True)
        return [b.list_set(list, values[0], value) for list, value in pairs]

    def push(b: Build, values: Sequence[Value]) -> Sequence[Value]:
        pairs = zip(values[1 : size + 1], values[size + 1 :], strict=True)
        return [b.list_push(list, value) for list, value in pairs]

    is_new = b.eq(used, b.list_len(lists[0]))
    return emit_branches(b, is_new, [used, *lists, *state], [put, push])
