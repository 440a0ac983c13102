"""Differential testing: runs graphs on the numpy backend too, for `config(compare=True)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wend.backends.numpy.backend import BACKEND
from wend.backends.protocol import Executable, choose
from wend.backends.strict import same_bits
from wend.backends.wrapper import ExecutableWrapper
from wend.base.config import settings
from wend.base.errors import MismatchError, explain
from wend.base.source import at
from wend.ir.graph import Graph, Node
from wend.ir.types import TensorType
from wend.runtime.array_boundary import to_host

# The largest accepted distance, relative to the largest finite element: backends round
# differently, and loops amplify that. With `config(strict=True)` they agree to the bit.
_RELATIVE_TOLERANCE = {2: 1e-2, 4: 1e-4, 8: 1e-8}  # by the bytes of the real dtype

_ROUNDING_NOTE = (
    "; unless the function amplifies rounding errors as much as that: with "
    "wend.config(strict=True) there are none between backends."
)


class DifferentialExecutable(ExecutableWrapper):
    """An executable that compares each run with one on the numpy backend.

    Graphs with effects are not compared, since their effects must happen once.

    Args:
        execute: runs the graph.
        graph: the graph.
        backend: the name of the backend of `execute`.
    """

    def __init__(self, execute: Executable, graph: Graph, backend: str) -> None:
        super().__init__(execute)
        self._graph, self._backend = graph, backend
        self._differ = _bit_difference if settings().strict else difference
        self._has_effects = graph.has_effects()

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        results = self._execute(arguments)
        if self._has_effects:
            return results
        graph = self._graph
        expected = BACKEND.compile(graph)([*map(to_host, arguments)])
        pairs = zip(graph.results, map(to_host, results), expected, strict=True)
        for k, (value, x, y) in enumerate(pairs):
            if isinstance(value.type, TensorType) and (how := self._differ(x, y)):
                raise MismatchError(
                    explain(
                        f"{graph.name}: result {k} is {how} the numpy backend's, computed on "
                        f'backend "{self._backend}".',
                        self._first_difference(arguments),
                        cure='use backend="numpy" for this function, and report it as a fault of '
                        "wend, with the files that wend.config(dump='folder') writes"
                        + ("." if self._differ is _bit_difference else _ROUNDING_NOTE),
                    )
                )
        return results

    def _first_difference(self, arguments: Sequence[Any]) -> str | None:
        """Describe the first operation, outside of loops and branches, whose results differ."""
        values = [
            (node, value)
            for node in self._graph.nodes
            for value in node.results
            if isinstance(value.type, TensorType)
        ]
        all_values = replace(self._graph, results=tuple(value for _, value in values))
        results = map(to_host, choose(self._backend).compile(all_values)(arguments))
        expected = BACKEND.compile(all_values)([*map(to_host, arguments)])
        differing: list[Node] = [
            node
            for (node, _), x, y in zip(values, results, expected, strict=True)
            if self._differ(x, y)
        ]
        if not differing:
            return "alone, each operation gives the same"
        return f"the first that differs is {differing[0].op.name}{at(differing[0].source)}"


def difference(x: Any, y: Any) -> str:
    """Describe how an array differs from another, in words before "the other's"; or return ""."""
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype != y.dtype or x.shape != y.shape:
        return f"{x.dtype}{[*x.shape]} instead of {y.dtype}{[*y.shape]}, which is"
    if x.dtype.kind not in "fc":
        return "" if np.array_equal(x, y) else "not"
    finite = np.isfinite(y)
    has_same_nonfinite = np.array_equal(np.isfinite(x), finite) and np.array_equal(
        x[~finite], y[~finite], equal_nan=True
    )
    if not has_same_nonfinite:
        return "NaN or inf at other places than"
    if not finite.any():
        return ""
    distance, size = np.abs(x[finite] - y[finite]).max(), np.abs(y[finite]).max()
    real_dtype = x.real.dtype
    if distance <= _RELATIVE_TOLERANCE[min(real_dtype.itemsize, 8)] * size:
        return ""
    return f"up to {distance:.3g} away, where the largest is {size:.3g}, from"


def _bit_difference(x: Any, y: Any) -> str:
    return "" if same_bits(x, y) else "not, to the last bit,"
