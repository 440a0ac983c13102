"""Executables of graphs on the backend of a name, with what settings put around them.

Those that assign to variables: what a run, or a failing one, leaves.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from wend.backends.passthrough import compile_without_passthrough
from wend.backends.protocol import Executable, choose
from wend.backends.wrapper import ExecutableWrapper
from wend.base.config import settings
from wend.ops.state import store
from wend.passes.pipeline import LazyOptimized
from wend.runtime.storage import Storage


def executable(
    backend: str, pending: LazyOptimized, *, forwards_inputs: bool = False, shown: int | None = None
) -> Executable:
    """Compile a graph; variables that it assigns to are in order after each run.

    Args:
        backend: what runs it.
        pending: what is run.
        forwards_inputs: whether results that are arguments are to be these themselves, not copies.
        shown: how many of the results users see, the first ones; None: all.

    Raises:
        UnsupportedError: the graph needs something that the backend does not know.
    """
    wanted, chosen = settings(), choose(backend)
    if wanted.strict:
        from wend.backends.strict import strict  # rarely wanted, as are the others

        pending = LazyOptimized(strict(pending.optimized), ())
    if forwards_inputs:
        execute = compile_without_passthrough(
            pending.optimized, lambda graph: chosen.compile_lazy(LazyOptimized(graph, ()))
        )
    else:
        execute = chosen.compile_lazy(pending)
    if wanted.compare and backend != "numpy":
        from wend.backends.differential import DifferentialExecutable

        execute = DifferentialExecutable(execute, pending.optimized, backend)
    if wanted.nans:
        from wend.backends.nan_bisect import NanBisect

        execute = NanBisect(execute, pending.optimized, shown)
    stores = (node for node in pending.given.walk() if node.op is store)
    places = dict.fromkeys(node.attrs["variable"] for node in stores)
    return StoreCommit(execute, [*places]) if places else execute


def kind(backend: str) -> Hashable:
    """What kind of executables is wanted here: those of one graph are kept by that."""
    wanted = settings()
    return backend, wanted.nans, wanted.compare, wanted.strict, wanted.profile, wanted.threads


class StoreCommit(ExecutableWrapper):
    """Runs a graph with assignments, which happen as it runs, and settles what it has assigned."""

    def __init__(self, execute: Executable, places: Sequence[Storage]) -> None:
        super().__init__(execute)
        self._places = places

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        try:
            return self._execute(arguments)
        finally:
            for place in self._places:
                place.copy_shared(arguments)
