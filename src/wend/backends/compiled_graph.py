"""A graph with its executables, derivatives, and forward and backward graphs (D12)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from wend.autodiff.forward_backward import ForwardBackward
from wend.autodiff.jvp import JVP, jvp
from wend.autodiff.linearize import Linearized, linearize
from wend.autodiff.split_residuals import with_min_cut
from wend.autodiff.vjp import VJP, vjp
from wend.backends.build import executable, kind, passes_of
from wend.backends.protocol import Executable, choose
from wend.base.gc_pause import gc_paused
from wend.ir.graph import Graph
from wend.ir.types import is_differentiable
from wend.passes.pipeline import CANONICALIZE, LazyOptimized, run_passes
from wend.passes.strip_stores import strip_stores
from wend.runtime.array_boundary import HOST, ArrayBoundary, is_array, to_host
from wend.runtime.graph_cache import TransformResult, cached_transform

T = TypeVar("T")


class Entry(NamedTuple):
    """An executable, with the arrays that it takes.

    Attributes:
        execute: the executable.
        boundary: how arrays cross to its backend.
        lazy: the graph that it runs.
    """

    execute: Executable
    boundary: ArrayBoundary
    lazy: LazyOptimized


class CompiledGraph:
    """The single owner of everything compiled and derived from a graph; each is built at first use.

    Attributes:
        graph: the graph, canonical but not optimised.

    Args:
        recorded: the graph with what nothing reads.
    """

    def __init__(self, graph: Graph, recorded: Graph | None = None) -> None:
        self.graph, self._recorded = graph, recorded
        self._entries: dict[tuple[Hashable, Graph], Entry] = {}
        self._derivatives: dict[Any, Any] = {}
        self._forms: dict[tuple[tuple[int, ...], tuple[int, ...]], ForwardBackward] = {}

    @staticmethod
    def of(graph: Graph) -> CompiledGraph:
        """Return the unique `CompiledGraph` of a graph that runs while it is recorded."""
        if graph not in _compiled:
            # A copy, also where no pass changes it: the table must not keep its own keys alive.
            _compiled[graph] = CompiledGraph(replace(run_passes(graph, CANONICALIZE)))
        return _compiled[graph]

    # Executables
    def executable(self, backend: str, graph: Graph | None = None) -> Executable:
        """Return the executable of the graph, or of a graph derived from it."""
        return self.entry(backend, graph).execute

    def entry(
        self,
        backend: str,
        graph: Graph | None = None,
        *,
        shown: int | None = None,
        forwards_inputs: bool | None = None,
    ) -> Entry:
        """Return the executable of the graph, or of a graph derived from it, with its boundary.

        Args:
            backend: the backend's name.
            graph: the derived graph, if any.
            shown: the number of leading results that users see; None for all.
            forwards_inputs: whether results that are arguments are passed through, not copied;
                by default only for derived graphs.
        """
        if forwards_inputs is None:
            forwards_inputs = graph is not None
        key = kind(backend), graph or self.graph
        if key not in self._entries:
            with gc_paused():
                lazy = LazyOptimized(key[1], passes_of(backend))
                run = executable(
                    backend,
                    lazy,
                    forwards_inputs=forwards_inputs,
                    shown=shown,
                    recorded=None if graph else self._recorded,
                )
            self._entries[key] = Entry(run, choose(backend).boundary, lazy)
        return self._entries[key]

    def run(
        self, backend: str, arguments: Sequence[Any], shown: int | None = None
    ) -> Sequence[Any]:
        """Run the graph on NumPy arrays; results that are arguments are passed through."""
        execute, boundary, _ = self.entry(backend, shown=shown, forwards_inputs=True)
        if boundary is HOST:
            return execute(arguments)
        received = [boundary.receive(x) if is_array(x) else x for x in arguments]
        return [to_host(x) for x in execute(received)]

    def executables(self) -> list[Executable]:
        """Return the executables built so far."""
        return [entry.execute for entry in self._entries.values()]

    def optimized_graphs(self) -> list[Graph]:
        """Return the optimised form of each graph that has an executable."""
        graphs = {graph: entry.lazy for (_, graph), entry in [*self._entries.items()]}
        return [lazy.optimized for lazy in graphs.values()]

    # Derivatives
    def vjp(self, wrt: Sequence[int], seeded: Sequence[int], *, run_apart: bool = False) -> VJP:
        """Return the forward and backward graphs for these params and results.

        With `run_apart` the forward graph keeps a minimum cut of the residuals.
        """
        options = tuple(wrt), tuple(seeded)
        if not run_apart:
            return self._derived(VJP, "vjp", options, functools.partial(vjp, self.graph, *options))
        count = len(self.graph.results)
        return self._derived(
            VJP, "vjp_apart", options, lambda: with_min_cut(self.vjp(*options), count)
        )

    def jvp(self, wrt: Sequence[int]) -> JVP:
        """Return the graph of values and tangents, given tangents of these params."""
        options = (tuple(wrt),)
        return self._derived(JVP, "jvp", options, functools.partial(jvp, self.graph, *options))

    def linearize(self, wrt: Sequence[int], results: Sequence[int]) -> Linearized:
        """Return the graph and its linear part, for these params and results."""
        options = tuple(wrt), tuple(results)
        make = functools.partial(linearize, self.graph, *options)
        return self._derived(Linearized, "linearize", options, make)

    def _derived(
        self,
        kind: Callable[..., T],
        transform: str,
        options: tuple[Any, ...],
        make: Callable[[], Iterable[Any]],
    ) -> T:
        """Return the graphs of a transform and their connections, perhaps from the disk cache."""

        def result() -> TransformResult:
            *graphs, connected = make()
            return graphs, connected

        if (transform, options) not in self._derivatives:
            graphs, connected = cached_transform(transform, self.graph, options, result)
            self._derivatives[transform, options] = kind(*graphs, connected)
        derived: T = self._derivatives[transform, options]
        return derived

    # Forward and backward forms
    def forward_backward(
        self, wrt: Sequence[int] | None = None, seeded: Sequence[int] | None = None
    ) -> ForwardBackward:
        """Return the forward graph and the backward graphs, by default of all floats."""
        if wrt is None:
            wrt = _differentiable(self.graph.param_types)
        if seeded is None:
            seeded = _differentiable(self.graph.result_types)
        key = tuple(wrt), tuple(seeded)
        if key not in self._forms:
            self._forms[key] = ForwardBackward(self.graph, *key)
        return self._forms[key]

    def residual_pair(self, wrt: tuple[int, ...], seeded: tuple[int, ...]) -> VJP:
        """Return a graph of the residuals alone, without effects, and its backward graph."""
        key = "residuals", (wrt, seeded)
        if key not in self._derivatives:
            pair = vjp(self.graph, wrt, seeded)
            residuals = pair.forward.results[len(self.graph.results) :]
            forward = strip_stores(replace(pair.forward, results=residuals))
            self._derivatives[key] = pair._replace(forward=forward)
        pair_of_residuals: VJP = self._derivatives[key]
        return pair_of_residuals


def _differentiable(types: Iterable[Any]) -> tuple[int, ...]:
    return tuple(k for k, type in enumerate(types) if is_differentiable(type))


_compiled: WeakKeyDictionary[Graph, CompiledGraph] = WeakKeyDictionary()
