"""Runs that record what their operations and iterations take, for `wend.profile()`."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import field
from time import perf_counter
from typing import Any

from wend.backends.dataflow.executor import Executor, Take
from wend.backends.dataflow.frames import Frame, Iteration, order_key
from wend.backends.dataflow.node import DataflowNode
from wend.backends.dataflow.plan import NodePlan, Plan
from wend.base.lazy.dataclass import dataclass
from wend.base.reporting.profile import MAX_SPANS, Event, ProfilePart, Span, note, note_spans
from wend.base.source import Source
from wend.ir.types import TensorType


class RecordingExecutor(Executor):
    """An executor that notes when each operation ran, on which thread and in which iteration.

    Operations on numbers are left out, as in native code.
    """

    def __init__(self, plan: Plan, take: Take | None, min_task: float) -> None:
        super().__init__(plan, take, min_task)
        self._records: deque[_NodeRun] = deque(maxlen=MAX_SPANS)
        self._measured = {x for x in plan.nodes if _is_measured(x.node)}

    def run(self, arguments: Sequence[Any]) -> Sequence[Any]:
        start, own = perf_counter(), threading.get_ident()
        results = super().run(arguments)
        stop = perf_counter()
        threads, loops = {own: 0}, _RunTimes(self.plan)
        spans = []
        for x in self._records:
            loops.add(x)
            thread = threads.setdefault(x.thread, len(threads))
            spans.append(Span(x.node.name, x.node.source, x.start, x.stop, thread, x.trip))
        note_spans(spans)
        note_spans(loops.iterations())
        note(Event("run", self.plan.graph.name, start, stop, loops.parts()))
        return results

    def compute(self, plan: NodePlan, iteration: Iteration, inputs: Sequence[Any]) -> Any:
        if plan not in self._measured:
            return super().compute(plan, iteration, inputs)
        start = perf_counter()
        try:
            return super().compute(plan, iteration, inputs)
        finally:
            self._records.append(_NodeRun(plan, iteration, start, perf_counter()))


def _is_measured(node: DataflowNode) -> bool:
    types = [x.type for x in (*node.inputs, *node.outputs)]
    return not all(isinstance(type, TensorType) and type.shape == () for type in types)


class _NodeRun:
    """The run of one operation.

    Attributes:
        node: the operation.
        frames: the names of the loops that it ran in, outer ones first.
        tag: the iterations of these, as `order_key` gives them.
        start: the start time.
        stop: the end time.
        thread: the identity of the thread.
    """

    __slots__ = ("frames", "node", "start", "stop", "tag", "thread")

    def __init__(self, plan: NodePlan, iteration: Iteration, start: float, stop: float) -> None:
        self.node, self.tag = plan.node, order_key(plan, iteration)[:-1]
        names: list[str] = []
        frame: Frame = iteration.frame
        while frame.plan is not None and frame.outer is not None:
            names.append(frame.plan.name)
            frame = frame.outer.frame
        self.frames = tuple(reversed(names))
        self.start, self.stop, self.thread = start, stop, threading.get_ident()

    @property
    def trip(self) -> int | None:
        return self.tag[-1] if self.tag else None


@dataclass(slots=True)
class _Times:
    """How often something ran, and for how long."""

    source: Source | None
    count: int = 0
    seconds: float = 0.0
    loop: tuple[str, ...] = ()


@dataclass(slots=True)
class _RunTimes:
    """The iterations that records are in, and the times of operations."""

    plan: Plan
    _spans: dict[tuple[int, ...], tuple[tuple[str, ...], float, float]] = field(
        default_factory=dict
    )
    _operations: dict[Any, _Times] = field(default_factory=dict)

    def add(self, record: _NodeRun) -> None:
        """Add a record to its operation, and to the iterations around it."""
        node = record.node
        times = self._operations.setdefault(node, _Times(node.source, loop=record.frames))
        times.count += 1
        times.seconds += record.stop - record.start
        # A tag has two numbers for each loop: where it stands, and which iteration it is
        for depth in range(1, len(record.frames) + 1):
            tag, frames = record.tag[: 2 * depth], record.frames[:depth]
            _, start, stop = self._spans.get(tag, (frames, record.start, record.stop))
            self._spans[tag] = frames, min(start, record.start), max(stop, record.stop)

    def iterations(self) -> list[Span]:
        """Return a span for each iteration, from its first operation to the end of its last."""
        sources = self._sources()
        return [
            Span(frames[-1], sources.get(frames[-1]), start, stop, None, tag[-1])
            for tag, (frames, start, stop) in self._spans.items()
        ]

    def parts(self) -> list[ProfilePart]:
        """Return the loops, outer ones first, and the operations, as parts of a run."""
        runs: dict[tuple[str, ...], dict[tuple[int, ...], list[float]]] = {}
        for tag, (frames, start, stop) in self._spans.items():
            runs.setdefault(frames, {}).setdefault(tag[:-1], []).extend((start, stop))
        loops, sources = sorted(runs, key=len), self._sources()
        places = {frames: place for place, frames in enumerate(loops)}
        parts = [
            ProfilePart(
                "while",
                sources.get(frames[-1]),
                places.get(frames[:-1]),
                len(runs[frames]),
                sum(len(times) // 2 for times in runs[frames].values()),
                sum(max(times) - min(times) for times in runs[frames].values()),
                is_concurrent=True,
            )
            for frames in loops
        ]
        parts += (
            ProfilePart(node.name, x.source, places.get(x.loop), x.count, None, x.seconds)
            for node, x in self._operations.items()
        )
        return parts

    def _sources(self) -> dict[str, Source | None]:
        entries = (x for x in self.plan.nodes if x.frame is not None)
        return {x.frame.name: x.node.source for x in entries if x.frame is not None}
