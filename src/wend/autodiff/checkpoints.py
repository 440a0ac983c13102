"""The policy `Checkpoints(n)`: at most n states of a loop are kept at a time (D31).

The forward loop fills slots while it does not know how many trips it makes
(`checkpoint_placement.py`), the backward loop restarts from them (`checkpoint_restarts.py`).

Trips whose records are small are taken together. A slot is then the state before a segment of
trips, whose tape takes at most as much as a page, and less time than to run trips again for a state
before each of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.autodiff.checkpoint_placement import Slots, append_placement
from wend.autodiff.checkpoint_restarts import TripSegment, append_restarts
from wend.autodiff.copied_carries import bytes_a_trip
from wend.autodiff.residuals import estimated_bytes
from wend.autodiff.schedule import LoopSteps
from wend.autodiff.segment_back import segment_back
from wend.autodiff.transpose import Transposer
from wend.ir.graph import Value
from wend.ops.build import Build
from wend.ops.control import while_

_MIN_PLAIN_SEGMENT = 8  # trips
_MAX_TAPE = 4096  # bytes, of a segment


class CheckpointSchedule:
    """Keeps at most so many states, and places freed slots anew on the way back."""

    def __init__(self, slots: int) -> None:
        self.slots, self.segment = slots, max(slots // 2, _MIN_PLAIN_SEGMENT)
        self._of_loop: tuple[LoopSteps, TripSegment] | None = None

    def place(
        self, t: Transposer, b: Build, loop: LoopSteps, operands: Sequence[Value]
    ) -> tuple[Sequence[Value], Sequence[Value]]:
        """Append the loop; return what it forwards at its end, and the slots."""
        trips = self._segment(t, loop).trips
        forwarded, slots = append_placement(
            b, loop.w, operands, loop.state_positions, self.slots, trips
        )
        return forwarded, slots.values()

    def go_back(
        self,
        t: Transposer,
        b: Build,
        loop: LoopSteps,
        slots: Sequence[Value],
        cts: Sequence[Value],
        invariants: Sequence[Value],
    ) -> Sequence[Value]:
        """Append the loop over segments, from the last to the first."""
        segment = self._segment(t, loop)
        return append_restarts(b, loop, self.slots, Slots.of(slots), segment, cts, invariants)

    def _segment(self, t: Transposer, loop: LoopSteps) -> TripSegment:
        """Return the segments of a loop, the same to both ways."""
        if self._of_loop is None or self._of_loop[0] is not loop:
            self._of_loop = loop, _segment(t, loop)
        return self._of_loop[1]


def _segment(t: Transposer, loop: LoopSteps) -> TripSegment:
    """Return as many trips as have a small tape, at least one."""
    if sum(estimated_bytes(value.type) for value in loop.state) <= _MAX_TAPE / 2:
        back = segment_back(t, loop)
        recorded = sum(bytes_a_trip(node) for node in back.nodes if node.op is while_)
        trips = int(_MAX_TAPE / max(recorded, 1.0))
        if trips > 1:
            return TripSegment(trips, back)
    return TripSegment(1, None)
