"""Runs graphs at once: compiled when first run, with the forms that differentiate them (D12)."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wend.autodiff.unseeded import UnknownZero, without_seeds
from wend.autodiff.vjp import VJP, vjp
from wend.backends.choose import choose
from wend.backends.protocol import Executable
from wend.ir.graph import Graph
from wend.ir.types import ListType, is_differentiable, without_maybe
from wend.passes.pipeline import OPTIMIZE, TIDY, run_passes


@dataclass(frozen=True, slots=True)
class Backward:
    """A backward graph for the cotangents of some results.

    Attributes:
        graph: (residuals…, cotangents…) → cotangents of the operands that are connected.
        arriving: the results whose cotangents it takes, by position.
        connected: for each operand differentiated, whether it gives its cotangent.
    """

    graph: Graph
    arriving: tuple[int, ...]
    connected: tuple[bool, ...]


class Runner:
    """A graph with its executables and derivatives; one for each graph, while the graph lives."""

    def __init__(self, graph: Graph) -> None:
        self._graph = run_passes(graph, TIDY)
        self._executables: dict[str, Executable] = {}
        self._forms: dict[tuple[tuple[int, ...], tuple[int, ...]], VJP] = {}
        self._backwards: dict[tuple[tuple[int, ...], tuple[int, ...]], Backward] = {}
        self.differentiable = tuple(
            k for k, type in enumerate(graph.result_types) if is_differentiable(type)
        )
        types = (*graph.param_types, *graph.result_types)
        self._has_lists = any(isinstance(without_maybe(type), ListType) for type in types)

    @staticmethod
    def of(graph: Graph) -> Runner:
        """The one runner of a graph."""
        if graph not in _runners:
            _runners[graph] = Runner(graph)
        return _runners[graph]

    def run(self, backend: str, arguments: Sequence[Any]) -> Sequence[Any]:
        """Run it. Only the numpy backend hands lists from one graph to another so far."""
        backend = "numpy" if self._has_lists else backend
        if backend not in self._executables:
            optimized = run_passes(self._graph, OPTIMIZE)
            self._executables[backend] = choose(backend).compile(optimized)
        return self._executables[backend](arguments)

    def forms(self, wrt: tuple[int, ...], seeded: tuple[int, ...]) -> VJP:
        """Its forward and backward graphs, for these params and results."""
        if (wrt, seeded) not in self._forms:
            self._forms[wrt, seeded] = vjp(self._graph, wrt, seeded)
        return self._forms[wrt, seeded]

    def backward(self, wrt: tuple[int, ...], arriving: tuple[int, ...]) -> Backward | None:
        """The backward graph where cotangents of some results arrive; None: it needs all."""
        key = wrt, arriving
        if key not in self._backwards:
            seeded = self.differentiable
            forms = self.forms(wrt, seeded)
            graph, connected = forms.backward, forms.connected
            if arriving != seeded:
                seeds = graph.params[len(graph.params) - len(seeded) :]
                absent = [s for s, k in zip(seeds, seeded, strict=True) if k not in arriving]
                try:
                    graph, left = without_seeds(graph, seeds, absent)
                except UnknownZero:
                    return None
                found = iter(left)
                connected = tuple(next(found) if is_found else False for is_found in connected)
            self._backwards[key] = Backward(graph, arriving, connected)
        return self._backwards[key]


_runners: weakref.WeakKeyDictionary[Graph, Runner] = weakref.WeakKeyDictionary()


def as_results(values: Sequence[Any]) -> list[Any]:
    """What kernels gave, with NumPy scalars in place of 0-d arrays."""
    return [v[()] if isinstance(v, np.ndarray) and not v.ndim else v for v in values]
