"""What a backend is: something that makes a callable of a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from wend.ir.graph import Graph

Executable: TypeAlias = Callable[[Sequence[Any]], Sequence[Any]]


class Backend(Protocol):
    """Compiles graphs; `name` is what `config(backend=…)` calls it."""

    name: str

    def compile(self, graph: Graph) -> Executable:
        """Return what runs the graph: arguments for its params to values of its results.

        Raises:
            UnsupportedError: the graph needs something that this backend does not know.
        """
        ...
