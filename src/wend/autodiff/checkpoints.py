"""The policy `Checkpoints(n)`: at most n states of a loop are kept at a time (D31).

The forward loop fills slots while it does not know how many trips it makes
(`checkpoint_placement.py`), the backward loop restarts from them (`checkpoint_restarts.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.autodiff.checkpoint_placement import Slots, append_placement
from wend.autodiff.checkpoint_restarts import append_restarts
from wend.autodiff.schedule import LoopSteps
from wend.autodiff.transpose import Transposer
from wend.ir.graph import Value
from wend.ops.build import Build
from wend.ops.control import WhileParts

_MIN_SEGMENT = 8  # trips


class CheckpointSchedule:
    """Keeps at most so many states, and places freed slots anew on the way back."""

    def __init__(self, slots: int) -> None:
        self.slots, self.segment = slots, max(slots // 2, _MIN_SEGMENT)

    def place(
        self, b: Build, w: WhileParts, operands: Sequence[Value], state: Sequence[int]
    ) -> tuple[Sequence[Value], Sequence[Value]]:
        """Append the loop; return what it forwards at its end, and the slots."""
        forwarded, slots = append_placement(b, w, operands, state, self.slots)
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
        """Append the loop over trips, from the last to the first."""
        return append_restarts(b, loop, self.slots, Slots.of(slots), cts, invariants)
