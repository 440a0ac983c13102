"""How long each operation of a graph takes on the numpy backend, for `wend.profile()`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from wend.backends.numpy.program import Observer
from wend.backends.protocol import Executable
from wend.backends.wrapper import ExecutableWrapper
from wend.base.profile import Event, Part, note
from wend.ir.graph import Graph, Node


class Timed(ExecutableWrapper):
    """Runs a graph, and notes how long its operations took.

    Args:
        graph: what is run.
        watched: what makes an executable that a watch is shown.
    """

    def __init__(
        self, graph: Graph, watched: Callable[[Graph, Observer | None], Executable]
    ) -> None:
        super().__init__(watched(graph, None))
        self._graph, self._watched = graph, watched

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        clock = _Clock()
        run = self._watched(self._graph, clock)  # of this run alone, so threads do not mix
        start = clock.last = perf_counter()
        results = run(arguments)
        note(Event("run", self._graph.name, start, perf_counter(), clock.parts()))
        return results


@dataclass(eq=False, slots=True)
class _Times:
    node: Node
    loop: Node | None
    count: int = 0
    trips: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class _Clock:
    """A watch that looks at the clock: what passes between two operations is the second's."""

    last: float = 0.0
    _times: dict[Node, _Times] = field(default_factory=dict)
    _loops: list[tuple[Node, float]] = field(default_factory=list)

    def saw(self, node: Node, operands: Sequence[Any], results: Sequence[Any]) -> None:
        times, now = self._of(node), perf_counter()
        times.count += 1
        times.seconds += now - self.last
        self.last = perf_counter()

    def enter(self, loop: Node) -> None:
        self._of(loop).count += 1
        self.last = perf_counter()
        self._loops.append((loop, self.last))

    def next_trip(self) -> None:
        self._times[self._loops[-1][0]].trips += 1

    def leave(self) -> None:
        loop, start = self._loops.pop()
        self.last = perf_counter()
        self._times[loop].seconds += self.last - start

    def _of(self, node: Node) -> _Times:
        if node not in self._times:
            self._times[node] = _Times(node, self._loops[-1][0] if self._loops else None)
        return self._times[node]

    def parts(self) -> list[Part]:
        """What the run consisted of, in the order in which it came first."""
        numbers = {node: k for k, node in enumerate(self._times)}
        return [
            Part(
                times.node.op.name,
                times.node.source,
                None if times.loop is None else numbers[times.loop],
                times.count,
                times.trips if times.node.regions else None,
                times.seconds,
            )
            for times in self._times.values()
        ]
