"""Runs programs that measure themselves, and notes what they measured, for `wend.profile()`."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from time import perf_counter, sleep
from typing import Any

from wend.backends.native.codegen.instrument import READ, Instrumentation
from wend.backends.native.fusion.op_classes import is_constant
from wend.backends.native.fusion.report import computing
from wend.backends.native.jit.llvm import engine
from wend.backends.native.target.loop_nest import loop_nest
from wend.backends.protocol import Executable
from wend.backends.wrapper import ExecutableWrapper
from wend.base.profile import Event, Part, note
from wend.ir.graph import Node
from wend.ops.control import while_

_MOST_NAMES = 6


class ProfiledExecutable(ExecutableWrapper):
    """Runs a program that measures itself, and notes what it measured.

    Args:
        name: the graph's.
        execute: runs it.
        measures: what the program was written with.
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

    def _parts(self, rows: list[list[int]]) -> list[Part]:
        return [
            Part(
                _what(node),
                node.source,
                loop,
                count,
                trips if node.op is while_ else None,
                ticks * seconds_a_tick(),
                is_python=node in self._slow,
            )
            for (node, loop), (ticks, count, trips) in zip(self._nodes, rows, strict=False)
        ]


def _what(node: Node) -> str:
    """The operation, or those that one loop does together."""
    if node.op is not loop_nest:
        return node.op.name
    working = computing(node) or [x for x in node.regions[0].nodes if not is_constant(x)]
    names = list(dict.fromkeys(inner.op.name for inner in working))
    more = " …" if len(names) > _MOST_NAMES else ""
    return " ".join(names[:_MOST_NAMES]) + more


@cache
def seconds_a_tick() -> float:
    """How long the processor's counter takes to count one."""
    text = f"define i64 @read() {{\n  %ticks = {READ}\n  ret i64 %ticks\n}}"
    library = engine().compile(text, ["read"])
    read = ctypes.CFUNCTYPE(ctypes.c_int64)(library.addresses["read"])
    ticks, start = read(), perf_counter()
    sleep(0.01)
    return (perf_counter() - start) / max(int(read() - ticks), 1)
