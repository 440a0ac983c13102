"""Writes programs that measure how long their parts take: they read the processor's counter.

What is measured are loops, operations on arrays, and calls of Python; numbers in registers are part
of what is around them. A reading takes some ten nanoseconds, a third of them before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from wend.backends.native.target.loop_nest import loop_nest
from wend.backends.native.target.value_layout import is_scalar
from wend.backends.native.target.writer import Writer
from wend.ir.graph import Graph, Node
from wend.ops.control import while_

READ = "call i64 @llvm.readcyclecounter()"
_FIELDS = 3  # ticks, how often, trips


@dataclass(eq=False, repr=False, slots=True)
class Instrumentation:
    """Writes into `w` what measures nodes; `table` has a row for each, which code adds to.

    Attributes:
        name: what code calls the table.
        nodes: which are measured, in the order of the rows, each with the loop around it.
    """

    w: Writer
    name: str
    table: np.ndarray
    nodes: list[tuple[Node, int | None]] = field(default_factory=list)
    _loops: list[int] = field(default_factory=list)

    def start(self, node: Node) -> tuple[int, str] | None:
        """Before a node; None if it is not measured."""
        if not _is_measured(node):
            return None
        row = len(self.nodes)
        self.nodes.append((node, self._loops[-1] if self._loops else None))
        if node.op is while_:
            self._loops.append(row)
        return row, self.w.define(READ)

    def stop(self, started: tuple[int, str] | None) -> None:
        """Behind it."""
        if started is None:
            return
        row, before = started
        if row in self._loops:
            self._loops.pop()
        took = self.w.define(f"sub i64 {self.w.define(READ)}, {before}")
        self._add(row, 0, took)
        self._add(row, 1, "1")

    def count_trip(self) -> None:
        """At the end of a trip of the innermost loop."""
        self._add(self._loops[-1], 2, "1")

    def _add(self, row: int, column: int, what: str) -> None:
        w = self.w
        place = w.define(f"getelementptr i64, ptr {self.name}, i64 {row * _FIELDS + column}")
        total = w.define(f"add i64 {w.define(f'load i64, ptr {place}')}, {what}")
        w.do(f"store i64 {total}, ptr {place}")


def new_table(graph: Graph) -> np.ndarray:
    """Rows for all nodes that a program of the graph may measure."""
    return np.zeros((sum(1 for _ in graph.walk()) + 1, _FIELDS), np.int64)


def _is_measured(node: Node) -> bool:
    if node.op in (while_, loop_nest):
        return True
    return not node.regions and not all(
        is_scalar(value.type) for value in (*node.operands, *node.results)
    )
