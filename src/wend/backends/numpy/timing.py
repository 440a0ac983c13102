"""The time of each operation on the numpy backend, for `wend.profile()`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from time import perf_counter
from typing import Any

from wend.backends.numpy.program import Observer
from wend.backends.protocol import Executable
from wend.backends.wrapper import ExecutableWrapper
from wend.base.lazy.dataclass import dataclass
from wend.base.reporting.profile import Event, ProfilePart, note
from wend.ir.graph import Graph, Node


class Timed(ExecutableWrapper):
    """An executable that records the time of each operation.

    Args:
        graph: the graph.
        compile_observed: compiles a graph for an observer.
    """

    def __init__(
        self, graph: Graph, compile_observed: Callable[[Graph, Observer | None], Executable]
    ) -> None:
        super().__init__(compile_observed(graph, None))
        self._graph, self._compile_observed = graph, compile_observed

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        clock = _Clock()
        # Compiled for this run alone, so that threads do not share a clock
        run = self._compile_observed(self._graph, clock)
        start = clock.last = perf_counter()
        results = run(arguments)
        note(Event("run", self._graph.name, start, perf_counter(), clock.parts()))
        return results


@dataclass(eq=False, slots=True)
class _NodeTime:
    """The count and total time of the runs of one node.

    Attributes:
        node: the node.
        loop: the innermost loop around it.
        count: how often it ran.
        trips: the trips it made, if it is a loop.
        seconds: its total time.
    """

    node: Node
    loop: Node | None
    count: int = 0
    trips: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class _Clock:
    """An observer with a clock; the time between two operations counts for the second one."""

    last: float = 0.0
    _node_times: dict[Node, _NodeTime] = field(default_factory=dict)
    _loops: list[tuple[Node, float]] = field(default_factory=list)

    def saw(self, node: Node, operands: Sequence[Any], results: Sequence[Any]) -> None:
        node_time, now = self._time_of(node), perf_counter()
        node_time.count += 1
        node_time.seconds += now - self.last
        self.last = perf_counter()

    def enter(self, loop: Node) -> None:
        self._time_of(loop).count += 1
        self.last = perf_counter()
        self._loops.append((loop, self.last))

    def next_trip(self) -> None:
        self._node_times[self._loops[-1][0]].trips += 1

    def leave(self) -> None:
        loop, start = self._loops.pop()
        self.last = perf_counter()
        self._node_times[loop].seconds += self.last - start

    def _time_of(self, node: Node) -> _NodeTime:
        if node not in self._node_times:
            self._node_times[node] = _NodeTime(node, self._loops[-1][0] if self._loops else None)
        return self._node_times[node]

    def parts(self) -> list[ProfilePart]:
        """Return the parts of the run, in the order of their first execution."""
        numbers = {node: k for k, node in enumerate(self._node_times)}
        return [
            ProfilePart(
                times.node.op.name,
                times.node.source,
                None if times.loop is None else numbers[times.loop],
                times.count,
                times.trips if times.node.regions else None,
                times.seconds,
            )
            for times in self._node_times.values()
        ]
