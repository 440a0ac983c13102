"""Builds executables: a backend's own, wrapped as settings and effects require."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial

from wend.backends.element_errors import ElementErrors
from wend.backends.passthrough import compile_without_passthrough
from wend.backends.protocol import Backend, ChoosesPasses, Executable, LazyCompiler, choose
from wend.backends.variable_stores import StoresAfterRun, StoresInRun
from wend.base.config import settings
from wend.base.errors import UnsupportedError, explain
from wend.base.memory import OFFLOAD, SPILL, shown
from wend.ir.graph import Graph
from wend.ops.sharding import shard
from wend.ops.spilling import spill
from wend.ops.state import store
from wend.passes.draw_by_python import draw_by_python
from wend.passes.in_bounds import mark_in_bounds
from wend.passes.number_elements import asks_python, errors_in_maps
from wend.passes.pipeline import (
    IN_ORDER,
    OPTIMIZE,
    REORDERS_SUMS,
    LazyOptimized,
    Transform,
)
from wend.passes.sink_stores import sink_stores
from wend.passes.strip_stores import strip_stores

# The backend that has a policy by which a tape leaves memory, and why the others do not
_LEAVING = {
    SPILL: ("native", "keeps all of a tape in memory", 'memory="thin"'),
    OFFLOAD: ("jax", "has no other memory than that of the host", 'memory="keep" or "spill"'),
}


def executable(
    backend: str,
    lazy: LazyOptimized,
    *,
    forwards_inputs: bool = False,
    shown: int | None = None,
    recorded: Graph | None = None,
) -> Executable:
    """Compile a graph; variables that it assigns to are consistent after each run.

    Args:
        backend: the backend's name.
        lazy: the graph.
        forwards_inputs: whether results that are arguments are passed through, not copied.
        shown: the number of leading results that users see; None for all.
        recorded: the graph with what nothing reads, for the order of errors.

    Raises:
        UnsupportedError: the graph needs something that the backend does not support.
    """
    options, chosen, graph = settings(), choose(backend), lazy.graph
    _check_tapes(backend, graph)
    _check_shardings(backend, graph)
    errors = errors_in_maps(graph)
    if errors and asks_python(graph):  # a run that fails is repeated, and is to draw the same
        graph = draw_by_python(graph)
        lazy = LazyOptimized(graph, lazy.passes)
        recorded = None if recorded is None else draw_by_python(recorded)
    # Machine code calls Python for each store. Where numbers are checked, any node may end a run.
    sinks = isinstance(chosen, LazyCompiler) and not options.nans
    sunk = sink_stores(graph) if sinks else None
    if sunk is not None:
        lazy = LazyOptimized(sunk.graph, lazy.passes)
        recorded = None if recorded is None else strip_stores(recorded)
    if options.strict:
        from wend.backends.strict import strict  # seldom used, as are the others

        lazy = LazyOptimized(strict(lazy.optimized), ())
    if forwards_inputs:
        execute = compile_without_passthrough(
            lazy.optimized, lambda graph: _compile(chosen, LazyOptimized(graph, ()))
        )
    else:
        execute = _compile(chosen, lazy)
    if IndexError in errors:  # unless all positions turn out to be in range
        errors = errors_in_maps(mark_in_bounds(graph))
    if errors:
        in_order = partial(_compile_in_order, backend)
        execute = ElementErrors(execute, recorded or lazy.graph, errors, in_order)
    if options.compare and backend != "numpy":
        from wend.backends.differential import DifferentialExecutable

        execute = DifferentialExecutable(execute, lazy.optimized, backend)
    if options.nans:
        from wend.backends.nan_bisect import NanBisect

        execute = NanBisect(execute, lazy.optimized, chosen.boundary, shown)
    if sunk is not None:
        return StoresAfterRun(execute, sunk.variables, len(graph.results))
    stores = (node for node in graph.walk() if node.op is store)
    variables = dict.fromkeys(node.attrs["variable"] for node in stores)
    return StoresInRun(execute, [*variables]) if variables else execute


def _check_shardings(backend: str, graph: Graph) -> None:
    """Raise an error if arrays are to lie on devices that a backend does not know."""
    for node in graph.walk():
        if backend != "jax" and node.op is shard and node.attrs["sharding"] is not None:
            raise UnsupportedError(
                explain(
                    f"{node.attrs['what']} has a sharding, but the {backend} backend computes in "
                    "the memory of the host.",
                    cure='leave out in_shardings and out_shardings, or use backend="jax".',
                )
            )


def _check_tapes(backend: str, graph: Graph) -> None:
    """Raise an error if the tape of a loop leaves memory in a way that a backend does not have."""
    for node in graph.walk():
        if node.op is not spill:
            continue
        memory = node.attrs["memory"]
        supporting, reason, other = _LEAVING[memory]
        if backend != supporting:
            raise UnsupportedError(
                explain(
                    f"the loop{node.attrs['loop']} has memory={shown(memory)}, but the {backend} "
                    f"backend {reason}.",
                    cure=f'use backend="{supporting}", or {other}, or wend.Checkpoints(slots).',
                )
            )


def _compile(backend: Backend, lazy: LazyOptimized) -> Executable:
    if isinstance(backend, LazyCompiler):
        return backend.compile_lazy(lazy)
    return backend.compile(lazy.optimized)


def _compile_in_order(backend: str, graph: Graph) -> Executable:
    """Compile a graph that runs elements in order: it may have loops, so it is machine code."""
    chosen = choose("numpy" if backend == "numpy" else "native")
    return _compile(chosen, LazyOptimized(graph, IN_ORDER))


def passes_of(backend: str) -> Sequence[Transform]:
    """Return the passes before a run; what compares or measures nodes has them in one piece."""
    options = settings()
    if options.strict:
        return tuple(x for x in OPTIMIZE if x not in REORDERS_SUMS)
    is_whole, chosen = options.compare or options.nans or options.profile, choose(backend)
    if is_whole:
        return OPTIMIZE
    return chosen.passes() if isinstance(chosen, ChoosesPasses) else OPTIMIZE


def kind(backend: str) -> Hashable:
    """Return the key of an executable: the backend and the settings that affect compilation."""
    options = settings()
    return backend, options.nans, options.compare, options.strict, options.profile, options.threads
