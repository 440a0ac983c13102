"""Finds the operation that a NaN or an inf came from: `config(nans=True)`.

A graph runs as always. Where one of its results is not finite, it runs again, on the numpy
backend, which looks at what every operation gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wend.backends.numpy.backend import BACKEND
from wend.backends.protocol import Executable
from wend.backends.wrapper import ExecutableWrapper
from wend.base.errors import NotFiniteError, explain, listed
from wend.base.source import at
from wend.ir.graph import Graph, Node
from wend.ir.types import ListType, MaybeType, TensorType
from wend.runtime.array_boundary import ArrayBoundary, to_host

_HOLDERS = (ListType, MaybeType)  # of what other operations gave
_MOST_NUMBERS = 6  # of an operand, in messages


class NanBisect(ExecutableWrapper):
    """Looks whether results are finite.

    A graph with effects cannot run twice, so every run of it is watched.

    Args:
        execute: runs the graph.
        graph: what it runs.
        boundary: how arrays cross to its backend.
        shown: the number of results that users see, the first ones; None: all.
    """

    def __init__(
        self, execute: Executable, graph: Graph, boundary: ArrayBoundary, shown: int | None = None
    ) -> None:
        super().__init__(execute)
        self._graph, self._boundary, self._shown = graph, boundary, shown
        self._has_effects = graph.has_effects()

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        origins = _Origins()
        watched = BACKEND.watched(self._graph, origins)  # of this run, so threads do not mix
        on_host = [*map(to_host, arguments)]
        if self._has_effects:
            results: Sequence[Any] = [*map(self._boundary.receive, watched(on_host))]
        else:
            results = self._execute(arguments)
        visible = [*map(to_host, results[: self._shown])]
        worst = (
            "NaN" if any(map(_has_nan, visible)) else "inf" if any(map(_has_inf, visible)) else ""
        )
        if not worst:
            return results
        if not self._has_effects:
            watched(on_host)
        origin = origins.nan if worst == "NaN" else origins.inf
        if origin is None:  # the arguments had it
            return results
        raise NotFiniteError(origin.message(worst, origins.inf))


@dataclass(frozen=True, slots=True)
class _Origin:
    """The first operation that gave something not finite, of what was."""

    node: Node
    operands: tuple[Any, ...]
    trips: tuple[tuple[Node, int], ...]

    def message(self, what: str, inf: _Origin | None) -> str:
        """What to say, of a NaN or an inf; and where the first inf came from, if there was one."""
        given = listed(_told(x) for x in self.operands)
        # The innermost first, as one reads on from the operation
        trips = [f"trip {count} of the loop{at(loop.source)}" for loop, count in self.trips[::-1]]
        return explain(
            f"a result has {what}, which first came out of {self.node.op.name}"
            f"{at(self.node.source)}.",
            f"there {given} went in" if given else None,
            f"in {', in '.join(trips)}" if trips else None,
            f"the inf came out of {inf.node.op.name}{at(inf.node.source)}"
            if inf is not None and any(map(_has_inf, self.operands))
            else None,
            cure="look at what goes in there; wend.config(nans=False) lets it pass.",
        )


@dataclass(slots=True)
class _Origins:
    """A watch that remembers where the first NaN came from, and the first inf."""

    nan: _Origin | None = None
    inf: _Origin | None = None
    trips: list[tuple[Node, int]] = field(default_factory=list)

    def saw(self, node: Node, operands: Sequence[Any], results: Sequence[Any]) -> None:
        if any(isinstance(value.type, _HOLDERS) for value in node.operands):
            return  # what they give was put into them before
        if self.nan is None and any(map(_has_nan, results)) and not any(map(_has_nan, operands)):
            self.nan = self._origin(node, operands)
        if self.inf is None and any(map(_has_inf, results)) and not any(map(_has_inf, operands)):
            self.inf = self._origin(node, operands)

    def _origin(self, node: Node, operands: Sequence[Any]) -> _Origin:
        given = zip(node.operands, operands, strict=True)
        arrays = tuple(x for value, x in given if isinstance(value.type, TensorType))
        return _Origin(node, arrays, tuple(self.trips))

    def enter(self, loop: Node) -> None:
        self.trips.append((loop, 1))

    def next_trip(self) -> None:
        loop, count = self.trips[-1]
        self.trips[-1] = loop, count + 1

    def leave(self) -> None:
        self.trips.pop()


def _has_nan(x: Any) -> bool:
    return _is_inexact(x) and bool(np.isnan(x).any())


def _has_inf(x: Any) -> bool:
    return _is_inexact(x) and bool(np.isinf(x).any())


def _is_inexact(x: Any) -> bool:
    return isinstance(x, (np.ndarray, np.generic, float)) and np.asarray(x).dtype.kind in "fc"


def _told(x: Any) -> str:
    """An operand in a message: its numbers if they are few."""
    if not isinstance(x, (np.ndarray, np.generic, int, float)):
        return type(x).__name__
    array = np.asarray(x)
    if array.size > _MOST_NUMBERS:
        sizes = ",".join(map(str, array.shape))
        return f"{array.dtype}[{sizes}] from {array.min()} to {array.max()}"
    return np.array2string(array, precision=6, separator=", ").replace("\n", "")
