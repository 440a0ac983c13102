"""What a backend is: something that makes a callable of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from wend.backends.direct import Direct, Form
from wend.backends.fused import Fused
from wend.ir.graph import Graph, Node
from wend.passes.pending import Pending


class Executable(Protocol):
    """Runs a graph: arguments for its params to values of its results."""

    @property
    def host_nodes(self) -> Sequence[Node]:
        """Nodes for which compiled code calls Python, for want of code of its own."""
        ...

    @property
    def fused(self) -> Sequence[Fused]:
        """What compiled code does in one loop over memory each."""
        ...

    def kept_memory(self) -> Mapping[str, int]:
        """The bytes that wait for the next call, by what they are for."""
        ...

    def __call__(self, arguments: Sequence[Any], /) -> Sequence[Any]: ...

    def direct(self, form: Form) -> Direct | None:
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

    def compile_pending(self, pending: Pending) -> Executable:
        """Return what runs a graph that is not optimised yet, and need not be where code is found.

        Raises:
            UnsupportedError: the graph needs something that this backend does not know.
        """
        ...
