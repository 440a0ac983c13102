"""Schedules: policies whose loops decide in the run which states they keep (D31)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from wend.autodiff.loop_transpose import LoopCotangentActivity
from wend.autodiff.transpose import Transposer
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Value
from wend.ops.build import Build
from wend.ops.control import WhileParts


@dataclass(frozen=True, slots=True)
class LoopSteps:
    """A rotated loop, as its backward pass runs it.

    Attributes:
        w: the parts of the loop.
        nonzero: the positions of the cotangents.
        state_positions: the forwarded values from which trips can be run again.
        cts: values like the cotangents of what is forwarded, then like the sums of invariants.
        step: (state…, invariants…) to the next state.
        step_back: (state…, invariants…, cotangents…) to the cotangents one trip earlier.
    """

    w: WhileParts
    nonzero: LoopCotangentActivity
    state_positions: Sequence[int]
    cts: Sequence[Value]
    step: Graph
    step_back: Graph

    @property
    def state(self) -> list[Value]:
        """Values like those of the state."""
        return [self.w.after_forwarded[k] for k in self.state_positions]


class Schedule(Protocol):
    """Appends a loop that keeps some of its states, and the backward loop that reads them.

    Attributes:
        segment: the trips of a segment in the strip-mined form, of which derivatives are taken.
    """

    segment: int

    def place(
        self, t: Transposer, b: Build, loop: LoopSteps, operands: Sequence[Value]
    ) -> tuple[Sequence[Value], Sequence[Value]]:
        """Append the loop.

        Args:
            t: the transposer.
            b: the builder.
            loop: the loop.
            operands: those of the loop.

        Returns:
            What the loop forwards at its end; and what the backward loop reads: numbers, arrays of
            them, and lists.
        """
        ...

    def go_back(
        self,
        t: Transposer,
        b: Build,
        loop: LoopSteps,
        slots: Sequence[Value],
        cts: Sequence[Value],
        invariants: Sequence[Value],
    ) -> Sequence[Value]:
        """Append the backward loop; return the cotangents before the first trip, and the sums.

        Args:
            t: the transposer.
            b: the builder.
            loop: the loop.
            slots: what `place` has kept.
            cts: the cotangents after the last trip, then zeros to start the sums from.
            invariants: the invariants of the loop.
        """
        ...
