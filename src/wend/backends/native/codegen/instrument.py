"""Instrumentation of programs for profiling, by reading the cycle counter of the processor.

Loops, operations on arrays and calls of Python are measured; operations on scalars count towards
what surrounds them. A reading takes some ten nanoseconds, a third of which precede it. Nodes that
run at once, and the trips of loops around them, also write their times to a ring.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

import numpy as np

from wend.backends.native.target.concurrent_call import concurrent_call
from wend.backends.native.target.loop_nest import loop_nest
from wend.backends.native.target.value_layout import is_scalar
from wend.backends.native.target.writer import Writer
from wend.base.lazy.dataclass import dataclass
from wend.base.reporting.profile import MAX_SPANS
from wend.base.source import Source
from wend.ir.graph import Graph, Node
from wend.ops.control import while_

READ = "call i64 @llvm.readcyclecounter()"
_NUM_FIELDS = 4  # ticks, executions, iterations, bytes
# Of a span: the row of its node, its number among what runs at once or of its trip, the thread or
# −1 for a trip, start and stop in ticks. Before them a ring has their count.
SPAN_FIELDS = 5
TRIP = -1


@dataclass(eq=False, repr=False, slots=True)
class Instrumentation:
    """Emits measurements of nodes into `w`.

    Attributes:
        name: the symbol of the table in the code.
        table: one row of counters for each measured node.
        ring_name: the symbol of the ring of spans in the code.
        ring: the ring; empty if nothing runs at once.
        nodes: the measured nodes in row order, each with the row of its innermost enclosing loop.
        tasks: of what runs at once, by its row: the operations and their lines.
        own_rows: the rows of what this function measures.
    """

    w: Writer
    name: str
    table: np.ndarray
    ring_name: str = ""
    ring: np.ndarray = field(default_factory=lambda: new_ring(0))
    nodes: list[tuple[Node, int | None]] = field(default_factory=list)
    tasks: dict[int, list[tuple[str, Source | None]]] = field(default_factory=dict)
    own_rows: list[int] = field(default_factory=list)
    _loops: list[int] = field(default_factory=list)
    _active: list[int] = field(default_factory=list)

    def start(self, node: Node) -> tuple[int, str] | None:
        """Begin to measure a node; return None if it is not measured."""
        if not _is_measured(node):
            return None
        row = len(self.nodes)
        self.own_rows.append(row)
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

    def start_trip(self, region: Graph) -> str | None:
        """Begin a trip whose time goes to the ring; return None if it does not."""
        return self.read() if any(x.op is concurrent_call for x in region.nodes) else None

    def count_trip(self, start_ticks: str | None) -> None:
        """Count an iteration of the innermost loop, at its end."""
        row = self._loops[-1]
        number = self._add(row, 2, "1")
        if start_ticks is not None:
            self._write_span(row, number, str(TRIP), start_ticks)

    def read(self) -> str:
        """Return the present time in ticks."""
        return self.w.define(READ)

    def end_task(self, number: int, thread: str, start_ticks: str) -> None:
        """Write the time of one of the nodes that run at once."""
        self._write_span(self._active[-1], str(number), thread, start_ticks)

    def add_task(self, what: str, source: Source | None, function: Instrumentation) -> None:
        """Note that a function runs as part of the innermost measured node."""
        group = self._active[-1]
        self.tasks.setdefault(group, []).append((what, source))
        for row in function.own_rows:
            node, loop = self.nodes[row]
            self.nodes[row] = node, group if loop is None else loop

    def count_bytes(self, size: str) -> None:
        """Count bytes of an array that the innermost measured node allocates or overwrites."""
        if self._active:
            self._add(self._active[-1], 3, size)

    def _write_span(self, row: int, number: str, thread: str, start_ticks: str) -> None:
        w, stop_ticks = self.w, self.read()
        count = w.define(f"atomicrmw add ptr {self.ring_name}, i64 1 monotonic")
        place = w.define(f"urem i64 {count}, {MAX_SPANS}")
        at = w.define(f"add i64 {w.define(f'mul i64 {place}, {SPAN_FIELDS}')}, 1")
        span = w.define(f"getelementptr i64, ptr {self.ring_name}, i64 {at}")
        for k, word in enumerate((str(row), number, thread, start_ticks, stop_ticks)):
            w.do(f"store i64 {word}, ptr {w.define(f'getelementptr i64, ptr {span}, i64 {k}')}")

    def _add(self, row: int, column: int, increment: str) -> str:
        """Add to a counter; return what it was."""
        w = self.w
        address = w.define(f"getelementptr i64, ptr {self.name}, i64 {row * _NUM_FIELDS + column}")
        before = w.define(f"load i64, ptr {address}")
        w.do(f"store i64 {w.define(f'add i64 {before}, {increment}')}, ptr {address}")
        return before


def new_table(graphs: Iterable[Graph]) -> np.ndarray:
    """Return a table with a row for every node that a program of graphs may measure."""
    return np.zeros((sum(1 for graph in graphs for _ in graph.walk()) + 1, _NUM_FIELDS), np.int64)


def new_ring(spans: int) -> np.ndarray:
    """Return an empty ring of so many spans. The system provides its memory as it is written."""
    return np.zeros(1 + SPAN_FIELDS * spans, np.int64)


def _is_measured(node: Node) -> bool:
    if node.op in (while_, loop_nest, concurrent_call):
        return True
    return not node.regions and not all(
        is_scalar(value.type) for value in (*node.operands, *node.results)
    )
