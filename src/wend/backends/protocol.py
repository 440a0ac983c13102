"""What a backend is: something that makes a callable of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

from wend.backends.fastcall import CallSignature, FastCall
from wend.base.errors import listed
from wend.base.source import Source
from wend.ir.graph import Graph, Node
from wend.passes.pipeline import LazyOptimized


@dataclass(frozen=True, slots=True)
class FusedLoop:
    """Several operations on arrays that compiled code does in one loop over their elements.

    Attributes:
        count: how many.
        sources: the user's lines.
        unstored: how many arrays are never in memory, for only this loop wants them.
        saved: how many bytes these would take; None where sizes are not known before the run.
        is_inside: whether a loop of the program is around it.
    """

    count: int
    sources: Sequence[Source]
    unstored: int
    saved: int | None
    is_inside: bool


class Executable(Protocol):
    """Runs a graph: arguments for its params to values of its results."""

    @property
    def host_nodes(self) -> Sequence[Node]:
        """Nodes for which compiled code calls Python, for want of code of its own."""
        ...

    @property
    def fused_loops(self) -> Sequence[FusedLoop]:
        """What compiled code does in one loop over memory each."""
        ...

    def held_memory(self) -> Mapping[str, int]:
        """The bytes that wait for the next call, by what they are for."""
        ...

    def __call__(self, arguments: Sequence[Any], /) -> Sequence[Any]: ...

    def fast_call(self, form: CallSignature) -> FastCall | None:
        """What calls it without a line of Python between; None where nothing does."""
        ...


class Backend(Protocol):
    """Compiles graphs; `name` is what `config(backend=…)` calls it."""

    name: str

    def compile(self, graph: Graph) -> Executable:
        """Return what runs the graph.

        Raises:
            UnsupportedError: the graph needs something that this backend does not know.
        """
        ...

    def compile_lazy(self, pending: LazyOptimized) -> Executable:
        """Return what runs a graph that is not optimised yet, and need not be where code is found.

        Raises:
            UnsupportedError: the graph needs something that this backend does not know.
        """
        ...


BACKENDS = {"numpy": "wend.backends.numpy.backend", "native": "wend.backends.native.backend"}


def choose(name: str) -> Backend:
    """Return the backend of this name.

    Raises:
        ValueError: there is none of this name.
    """
    if name not in BACKENDS:
        raise ValueError(f"there is no backend {name!r}; there are {listed(BACKENDS)}")
    backend: Backend = import_module(BACKENDS[name]).BACKEND
    return backend
