"""Executables of graphs that assign to variables: what a run that fails leaves behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wend.backends.choose import choose
from wend.backends.protocol import Executable
from wend.ir.graph import Graph, Node
from wend.ops.state import can_run_again, store
from wend.runtime.place import Place


def executable(backend: str, graph: Graph) -> Executable:
    """Compile a graph; variables that it assigns to are in order after each run.

    Raises:
        UnsupportedError: the graph needs something that the backend does not know.
    """
    execute = choose(backend).compile(graph)
    places = dict.fromkeys(node.attrs["variable"] for node in graph.walk() if node.op is store)
    return Storing(execute, graph, [*places], backend) if places else execute


class Storing:
    """Runs a graph with assignments.

    The numpy backend stores as it runs, and so does another where the graph has other effects.
    Else it gives what variables hold in the end as results: if it fails, numpy runs the graph
    again from the start, stores what is assigned before the failure, and tells of it.
    """

    def __init__(
        self, execute: Executable, graph: Graph, places: Sequence[Place], backend: str
    ) -> None:
        self._execute, self._graph, self._places = execute, graph, places
        self._stores = backend == "numpy" or not can_run_again(graph)

    @property
    def host_nodes(self) -> Sequence[Node]:
        """Nodes for which compiled code calls Python."""
        return self._execute.host_nodes

    def __call__(self, arguments: Sequence[Any]) -> Sequence[Any]:
        try:
            if self._stores:
                return self._execute(arguments)
            try:
                return self._execute(arguments)
            except Exception:  # noqa: BLE001  # numpy tells it again
                pass
            return choose("numpy").compile(self._graph)(arguments)
        finally:
            for place in self._places:
                place.settle(arguments)
