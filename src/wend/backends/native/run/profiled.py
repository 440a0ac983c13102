"""Execution of instrumented programs, recorded for `wend.profile()`."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from time import perf_counter, sleep
from typing import Any

import numpy as np

from wend.backends.native.codegen.instrument import READ, SPAN_FIELDS, TRIP, Instrumentation
from wend.backends.native.fusion.op_classes import is_constant
from wend.backends.native.fusion.report import computing_nodes
from wend.backends.native.jit.llvm import Library, engine
from wend.backends.native.target.concurrent_call import concurrent_call
from wend.backends.native.target.loop_nest import loop_nest
from wend.backends.protocol import Executable
from wend.backends.wrapper import ExecutableWrapper
from wend.base.reporting.profile import (
    MAX_SPANS,
    Event,
    ProfilePart,
    Span,
    note,
    note_spans,
)
from wend.ir.graph import Node
from wend.ops.control import while_

_MAX_NAMES = 6  # op names shown for one loop


class ProfiledExecutable(ExecutableWrapper):
    """An executable that records the timers of an instrumented program after each call.

    Args:
        name: the name of the graph.
        execute: the executable of the program.
        measures: the instrumentation of the program.
        slow: the nodes that Python runs.
    """

    def __init__(
        self, name: str, execute: Executable, measures: Instrumentation, slow: Sequence[Node]
    ) -> None:
        super().__init__(execute)
        self._name, self._nodes, self._table = name, measures.nodes, measures.table
        self._ring, self._tasks, self._slow = measures.ring, measures.tasks, frozenset(slow)

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        before, first = self._table.copy(), int(self._ring[0])
        first_tick, start = _ticks(), perf_counter()
        results = self._execute(arguments)
        last_tick, stop = _ticks(), perf_counter()
        rows = (self._table - before).tolist()
        note(Event("run", self._name, start, stop, self._parts(rows)))
        rate = (stop - start) / max(last_tick - first_tick, 1)
        note_spans(self._spans(first, before, lambda tick: start + (tick - first_tick) * rate))
        return results

    def _spans(
        self, first: int, before: np.ndarray, time_of: Callable[[int], float]
    ) -> Iterator[Span]:
        """Yield what a run has written to the ring, as far as it is still there."""
        last = int(self._ring[0])
        places = np.arange(max(first, last - MAX_SPANS), last) % MAX_SPANS
        spans = self._ring[1:].reshape(-1, SPAN_FIELDS)[places].tolist()
        trips_before = before[:, 2].tolist()
        for row, number, thread, start, stop in spans:
            if thread == TRIP:
                loop, trip = self._nodes[row][0], number - trips_before[row]
                yield Span(loop.op.name, loop.source, time_of(start), time_of(stop), None, trip)
            else:
                what, source = self._tasks[row][number]
                yield Span(what, source, time_of(start), time_of(stop), thread, None)

    def _parts(self, rows: list[list[int]]) -> list[ProfilePart]:
        """Return the parts of a run, in program order: each after what it is part of."""
        inside: dict[int | None, list[int]] = {}
        for row, (_, outer) in enumerate(self._nodes):
            inside.setdefault(outer, []).append(row)
        order, pending = list[int](), [*reversed(inside.get(None, ()))]
        while pending:
            order.append(pending.pop())
            pending += reversed(inside.get(order[-1], ()))
        places = {row: place for place, row in enumerate(order)}
        return [self._part(row, rows[row], places) for row in order]

    def _part(self, row: int, counters: Sequence[int], places: Mapping[int, int]) -> ProfilePart:
        (node, outer), (ticks, count, trips, size) = self._nodes[row], counters
        return ProfilePart(
            _op_names(node),
            node.source,
            None if outer is None else places[outer],
            count,
            trips if node.op is while_ else None,
            ticks * seconds_a_tick(),
            is_python=node in self._slow,
            bytes=size,
            is_concurrent=node.op is concurrent_call,
        )


def _op_names(node: Node) -> str:
    """Return the name of the operation, or the names of those fused into one loop."""
    if node.op is concurrent_call:
        return "at once"
    if node.op is not loop_nest:
        return node.op.name
    nodes = computing_nodes(node) or [x for x in node.regions[0].nodes if not is_constant(x)]
    names = list(dict.fromkeys(inner.op.name for inner in nodes))
    ellipsis = " …" if len(names) > _MAX_NAMES else ""
    return " ".join(names[:_MAX_NAMES]) + ellipsis


@cache
def seconds_a_tick() -> float:
    """Return the seconds of one tick of the time-stamp counter."""
    ticks, start = _ticks(), perf_counter()
    sleep(0.01)
    return (perf_counter() - start) / max(_ticks() - ticks, 1)


def _ticks() -> int:
    """Read the time-stamp counter."""
    return int(ctypes.CFUNCTYPE(ctypes.c_int64)(_clock().addresses["read"])())


@cache
def _clock() -> Library:
    text = f"define i64 @read() {{\n  %ticks = {READ}\n  ret i64 %ticks\n}}"
    return engine().compile(text, ["read"])
