"""Execution of instrumented programs, recorded for `wend.profile()`."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from time import perf_counter, sleep
from typing import Any

from wend.backends.native.codegen.instrument import READ, Instrumentation
from wend.backends.native.fusion.op_classes import is_constant
from wend.backends.native.fusion.report import computing_nodes
from wend.backends.native.jit.llvm import engine
from wend.backends.native.target.loop_nest import loop_nest
from wend.backends.protocol import Executable
from wend.backends.wrapper import ExecutableWrapper
from wend.base.reporting.profile import Event, ProfilePart, note
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
        self._slow = frozenset(slow)

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        before, start = self._table.copy(), perf_counter()
        results = self._execute(arguments)
        stop = perf_counter()
        rows = (self._table - before).tolist()
        note(Event("run", self._name, start, stop, self._parts(rows)))
        return results

    def _parts(self, rows: list[list[int]]) -> list[ProfilePart]:
        return [
            ProfilePart(
                _op_names(node),
                node.source,
                loop,
                count,
                trips if node.op is while_ else None,
                ticks * seconds_a_tick(),
                is_python=node in self._slow,
                bytes=size,
            )
            for (node, loop), (ticks, count, trips, size) in zip(self._nodes, rows, strict=False)
        ]


def _op_names(node: Node) -> str:
    """Return the name of the operation, or the names of those fused into one loop."""
    if node.op is not loop_nest:
        return node.op.name
    nodes = computing_nodes(node) or [x for x in node.regions[0].nodes if not is_constant(x)]
    names = list(dict.fromkeys(inner.op.name for inner in nodes))
    ellipsis = " …" if len(names) > _MAX_NAMES else ""
    return " ".join(names[:_MAX_NAMES]) + ellipsis


@cache
def seconds_a_tick() -> float:
    """Return the seconds of one tick of the time-stamp counter."""
    text = f"define i64 @read() {{\n  %ticks = {READ}\n  ret i64 %ticks\n}}"
    library = engine().compile(text, ["read"])
    read = ctypes.CFUNCTYPE(ctypes.c_int64)(library.addresses["read"])
    ticks, start = read(), perf_counter()
    sleep(0.01)
    return (perf_counter() - start) / max(int(read() - ticks), 1)
