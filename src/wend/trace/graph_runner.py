"""Functional control flow outside a trace: traced all the same, then run at once (D14)."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wend.autodiff.forward_backward import ForwardBackward
from wend.autodiff.vjp import VJP, vjp
from wend.backends.build import executable, kind
from wend.backends.protocol import Executable
from wend.base import trees
from wend.base.config import settings
from wend.ir.graph import Graph
from wend.ir.types import is_differentiable
from wend.passes.pipeline import CANONICALIZE, LazyOptimized, run_passes
from wend.passes.strip_stores import strip_stores
from wend.trace.aliasing.outer_arrays import unchanged
from wend.trace.recording.arguments import is_array_leaf, leaf_type
from wend.trace.traced import trace_function


def run_now(fun: Callable[..., Any], *args: Any) -> Any:
    """Trace `fun(*args)` and run it. Leaves that are no arrays stay as they are."""
    leaves, treedef = trees.flatten(args)
    places = [k for k, leaf in enumerate(leaves) if is_array_leaf(leaf)]
    arrays = [leaves[k] for k in places]

    def call(fun: Callable[..., Any], traced: Sequence[Any]) -> Any:
        filled = list(leaves)
        for k, leaf in zip(places, traced, strict=True):
            filled[k] = leaf
        return fun(*trees.unflatten(treedef, filled))

    with unchanged(fun):
        traced = trace_function(fun, [leaf_type(x) for x in arrays], call, "immediate")
    return traced.run(executable(settings().backend, LazyOptimized(traced.graph)), arrays)


class GraphRunner:
    """A graph with its executables and derivatives; one for each graph, while the graph lives."""

    def __init__(self, graph: Graph) -> None:
        # Another object, where no pass has changed it: `_runners` holds the graph weakly.
        self._graph = replace(run_passes(graph, CANONICALIZE))
        self._executables: dict[Hashable, Executable] = {}
        self._forms: dict[tuple[int, ...], ForwardBackward] = {}
        self._pairs: dict[tuple[tuple[int, ...], tuple[int, ...]], VJP] = {}
        self.differentiable = tuple(
            k for k, type in enumerate(graph.result_types) if is_differentiable(type)
        )

    @staticmethod
    def of(graph: Graph) -> GraphRunner:
        """The one runner of a graph."""
        if graph not in _runners:
            _runners[graph] = GraphRunner(graph)
        return _runners[graph]

    def run(
        self, backend: str, arguments: Sequence[Any], shown: int | None = None
    ) -> Sequence[Any]:
        """Run it; users see so many of the results, or all."""
        key = kind(backend)
        if key not in self._executables:
            made = executable(
                backend, LazyOptimized(self._graph), forwards_inputs=True, shown=shown
            )
            self._executables[key] = made
        return self._executables[key](arguments)

    def forms(self, wrt: tuple[int, ...]) -> ForwardBackward:
        """Its forward form, and its backward forms, for these params."""
        if wrt not in self._forms:
            self._forms[wrt] = ForwardBackward(self._graph, wrt, self.differentiable)
        return self._forms[wrt]

    def pair(self, wrt: tuple[int, ...], seeded: tuple[int, ...]) -> VJP:
        """What gives the residuals, without effects; and the backward graph that takes them."""
        if (wrt, seeded) not in self._pairs:
            found = vjp(self._graph, wrt, seeded)
            rest = found.forward.results[len(self._graph.results) :]
            again = strip_stores(replace(found.forward, results=rest))
            self._pairs[wrt, seeded] = found._replace(forward=again)
        return self._pairs[wrt, seeded]


_runners: weakref.WeakKeyDictionary[Graph, GraphRunner] = weakref.WeakKeyDictionary()


def as_results(values: Sequence[Any]) -> list[Any]:
    """What kernels gave, with NumPy scalars in place of 0-d arrays."""
    return [v[()] if isinstance(v, np.ndarray) and not v.ndim else v for v in values]
