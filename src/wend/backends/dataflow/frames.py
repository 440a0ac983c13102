"""Running loops: frames and their iterations, which are the tags of values (Arvind, 1990)."""

from __future__ import annotations

from typing import Any

from wend.backends.dataflow.plan import FramePlan, NodePlan


class Iteration:
    """One iteration of a running loop, or the run of the graph itself.

    Attributes:
        frame: the running loop.
        index: its number.
        waiting: nodes that have some of their inputs: how many are missing, whether one is dead,
            and the inputs.
        active: how many nodes of it are ready or running, and how many loops run in it.
        frames: the loops that run in it, by name.
        states: what the frame states that ran in it hold.
    """

    __slots__ = ("active", "frame", "frames", "index", "states", "waiting")

    def __init__(self, frame: Frame, index: int) -> None:
        self.frame, self.index = frame, index
        self.waiting: dict[NodePlan, list[Any]] = {}
        self.active = 0
        self.frames: dict[str, Frame] = {}
        self.states: dict[Any, list[Any]] = {}


class Frame:
    """A running loop.

    Attributes:
        plan: the loop; None for the graph itself.
        outer: the iteration around it.
        position: the position of its first entry, which orders it among the nodes around it.
        awaited: how many entries are still to come.
        iterations: those in flight, by number.
        first: the number of the oldest one in flight.
        last: the number of the newest one.
        constants: the constant entries that have come.
        deferred: entries of the iteration after the newest one, which may not start yet.
        left: exits that have given a value.
        dead_exits: exits that were passed by a dead value.
    """

    __slots__ = (
        *("awaited", "constants", "dead_exits", "deferred", "first", "iterations", "last"),
        *("left", "limit", "outer", "plan", "position"),
    )

    def __init__(self, plan: FramePlan | None, outer: Iteration | None, position: int) -> None:
        self.plan, self.outer, self.position = plan, outer, position
        self.awaited = plan.entries if plan else 0
        self.limit = plan.limit if plan else 1
        self.first = self.last = 0
        self.iterations = {0: Iteration(self, 0)}
        self.constants: list[tuple[NodePlan, Any]] = []
        self.deferred: list[tuple[NodePlan, Any]] = []
        self.left: set[NodePlan] = set()
        self.dead_exits: dict[NodePlan, None] = {}


def order_key(plan: NodePlan, iteration: Iteration) -> tuple[int, ...]:
    """Return the place of a node's run in the order of the program."""
    key = [plan.position]
    current: Iteration | None = iteration
    while current is not None and current.frame.outer is not None:
        key += [current.index, current.frame.position]
        current = current.frame.outer
    return tuple(reversed(key))
