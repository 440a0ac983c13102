"""Finds the operation that first produced a NaN or an inf: `config(nans=True)`.

A graph runs as usual. Where one of its results is not finite, it runs again on the numpy backend,
which inspects the results of every operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np

from wend.backends.numpy.backend import BACKEND
from wend.backends.protocol import Executable
from wend.backends.wrapper import ExecutableWrapper
from wend.base.errors import NotFiniteError, explain, listed
from wend.base.lazy.dataclass import dataclass
from wend.base.source import at
from wend.ir.graph import Graph, Node
from wend.ir.types import ListType, MaybeType, TensorType
from wend.runtime.array_boundary import ArrayBoundary, to_host

_CONTAINER_TYPES = (ListType, MaybeType)  # hold results of other operations
_MAX_PRINTED_ELEMENTS = 6  # of an operand: they fit on one line of a message


class NanBisect(ExecutableWrapper):
    """An executable that checks whether its results are finite.

    A graph with effects cannot run twice, so all its runs are observed ones on the numpy backend.

    Args:
        execute: runs the graph.
        graph: the graph.
        boundary: how arrays cross to its backend.
        shown: the number of leading results that users see; None for all.
    """

    def __init__(
        self, execute: Executable, graph: Graph, boundary: ArrayBoundary, shown: int | None = None
    ) -> None:
        super().__init__(execute)
        self._graph, self._boundary, self._shown = graph, boundary, shown
        self._has_effects = graph.has_effects()

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        origins = _Origins()
        # Compiled for this run alone, so that threads do not share an observer
        run_observed = BACKEND.compile_observed(self._graph, origins)
        on_host = [*map(to_host, arguments)]
        if self._has_effects:
            results: Sequence[Any] = self._boundary.unshare(run_observed(on_host), on_host)
        else:
            results = self._execute(arguments)
        visible = [*map(to_host, results[: self._shown])]
        kind = (
            "NaN" if any(map(_has_nan, visible)) else "inf" if any(map(_has_inf, visible)) else ""
        )
        if not kind:
            return results
        if not self._has_effects:
            run_observed(on_host)
        origin = origins.nan if kind == "NaN" else origins.inf
        if origin is None:  # it came in with the arguments
            return results
        raise NotFiniteError(origin.message(kind, origins.inf))


@dataclass(frozen=True, slots=True)
class _Origin:
    """The first operation with a result that is not finite though its operands are."""

    node: Node
    operands: tuple[Any, ...]
    trips: tuple[tuple[Node, int], ...]

    def message(self, kind: str, first_inf: _Origin | None) -> str:
        """Return the error message, which also names the origin of the first inf, if any."""
        operand_texts = listed(_operand_text(x) for x in self.operands)
        # Innermost first, since the operation is named right before
        trips = [f"trip {count} of the loop{at(loop.source)}" for loop, count in self.trips[::-1]]
        return explain(
            f"a result has {kind}, which first came from {self.node.op.name}"
            f"{at(self.node.source)}.",
            f"its {'operand was' if len(self.operands) == 1 else 'operands were'} {operand_texts}"
            if operand_texts
            else None,
            f"in {', in '.join(trips)}" if trips else None,
            f"the inf came from {first_inf.node.op.name}{at(first_inf.node.source)}"
            if first_inf is not None and any(map(_has_inf, self.operands))
            else None,
            cure="check its operands; to allow it, use wend.config(nans=False).",
        )


@dataclass(slots=True)
class _Origins:
    """An observer that records the origins of the first NaN and of the first inf."""

    nan: _Origin | None = None
    inf: _Origin | None = None
    trips: list[tuple[Node, int]] = field(default_factory=list)

    def saw(self, node: Node, operands: Sequence[Any], results: Sequence[Any]) -> None:
        if any(isinstance(value.type, _CONTAINER_TYPES) for value in node.operands):
            return  # their contents were checked where they were computed
        if self.nan is None and any(map(_has_nan, results)) and not any(map(_has_nan, operands)):
            self.nan = self._origin(node, operands)
        if self.inf is None and any(map(_has_inf, results)) and not any(map(_has_inf, operands)):
            self.inf = self._origin(node, operands)

    def _origin(self, node: Node, operands: Sequence[Any]) -> _Origin:
        pairs = zip(node.operands, operands, strict=True)
        arrays = tuple(x for value, x in pairs if isinstance(value.type, TensorType))
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


def _operand_text(x: Any) -> str:
    """Return an operand as messages show it: its elements if they are few."""
    if not isinstance(x, (np.ndarray, np.generic, int, float)):
        return type(x).__name__
    array = np.asarray(x)
    if array.size > _MAX_PRINTED_ELEMENTS:
        sizes = ",".join(map(str, array.shape))
        return f"{array.dtype}[{sizes}] from {array.min()} to {array.max()}"
    return np.array2string(array, precision=6, separator=", ").replace("\n", "")
