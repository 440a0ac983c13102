"""Instrumentation of programs for profiling, by reading the cycle counter of the processor.

Loops, operations on arrays and calls of Python are measured; operations on scalars count towards
what surrounds them. A reading takes some ten nanoseconds, a third of which precede it.
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
_NUM_FIELDS = 4  # ticks, executions, iterations, bytes


@dataclass(eq=False, repr=False, slots=True)
class Instrumentation:
    """Emits measurements of nodes into `w`.

    Attributes:
        name: the symbol of the table in the code.
        table: one row of counters for each measured node.
        nodes: the measured nodes in row order, each with the row of its innermost enclosing loop.
    """

    w: Writer
    name: str
    table: np.ndarray
    nodes: list[tuple[Node, int | None]] = field(default_factory=list)
    _loops: list[int] = field(default_factory=list)
    _active: list[int] = field(default_factory=list)

    def start(self, node: Node) -> tuple[int, str] | None:
        """Begin to measure a node; return None if it is not measured."""
        if not _is_measured(node):
            return None
        row = len(self.nodes)
        self.nodes.append((node, self._loops[-1] if self._loops else None))
        self._active.append(row)
        if node.op is while_:
            self._loops.append(row)
        return row, self.w.define(READ)

    def stop(self, measurement: tuple[int, str] | None) -> None:
        """End a measurement."""
        if measurement is None:
            return
        row, start_ticks = measurement
        self._active.pop()
        if row in self._loops:
            self._loops.pop()
        elapsed = self.w.define(f"sub i64 {self.w.define(READ)}, {start_ticks}")
        self._add(row, 0, elapsed)
        self._add(row, 1, "1")

    def count_trip(self) -> None:
        """Count an iteration of the innermost loop, at its end."""
        self._add(self._loops[-1], 2, "1")

    def count_bytes(self, size: str) -> None:
        """Count bytes of an array that the innermost measured node allocates or overwrites."""
        if self._active:
            self._add(self._active[-1], 3, size)

    def _add(self, row: int, column: int, increment: str) -> None:
        w = self.w
        address = w.define(f"getelementptr i64, ptr {self.name}, i64 {row * _NUM_FIELDS + column}")
        total = w.define(f"add i64 {w.define(f'load i64, ptr {address}')}, {increment}")
        w.do(f"store i64 {total}, ptr {address}")


def new_table(graph: Graph) -> np.ndarray:
    """Return a table with a row for every node that a program of the graph may measure."""
    return np.zeros((sum(1 for _ in graph.walk()) + 1, _NUM_FIELDS), np.int64)


def _is_measured(node: Node) -> bool:
    if node.op in (while_, loop_nest):
        return True
    return not node.regions and not all(
        is_scalar(value.type) for value in (*node.operands, *node.results)
    )
