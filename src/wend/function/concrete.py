"""One traced signature of a function, with its graphs and executables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wend.autodiff.vjp import VJP, vjp
from wend.backends.choose import choose
from wend.backends.protocol import Executable
from wend.base import trees
from wend.function.signature import Arguments
from wend.ir.graph import Graph
from wend.passes.pipeline import OPTIMIZE, TIDY, run_passes
from wend.trace.arguments import LeafType
from wend.trace.traced import Traced
from wend.trace.variable import Variable


class ConcreteFunction:
    """A function traced for one signature.

    Attributes:
        name: the function's name.
        graph: what was recorded. `print(concrete.graph)` shows it.
        captured_inputs: the arrays that it captures, by reference.
        structured_outputs: its results, with their types in place of arrays.
        structured_input_signature: its (args, kwargs), with types in place of arrays.
    """

    def __init__(self, name: str, traced: Traced, arguments: Arguments) -> None:
        self.name = name
        self.traced = traced
        self.graph: Graph = run_passes(traced.graph, TIDY)
        self.input_types = arguments.types
        self.structured_input_signature = trees.unflatten(
            arguments.treedef, _typed(arguments.leaves, arguments)
        )
        self.structured_outputs = trees.unflatten(traced.result_tree, traced.result_types)
        self._executables: dict[tuple[str, Graph], Executable] = {}
        self._derivatives: dict[Any, VJP] = {}

    @property
    def captured_inputs(self) -> tuple[Any, ...]:
        return self.traced.bindings

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables that it reads or assigns."""
        return tuple(x for x in self.traced.bindings if isinstance(x, Variable))

    def executable(self, backend: str, graph: Graph | None = None) -> Executable:
        """What runs the graph, or one derived from it; compiled when first asked for."""
        graph = graph or self.graph
        if (backend, graph) not in self._executables:
            compiled = choose(backend).compile(run_passes(graph, OPTIMIZE))
            self._executables[backend, graph] = compiled
        return self._executables[backend, graph]

    def run(self, backend: str, arrays: Sequence[Any]) -> Any:
        """Run on the array leaves of the arguments."""
        return self.traced.run(self.executable(backend), arrays)

    def vjp(self, wrt: tuple[int, ...], seeded: tuple[int, ...]) -> VJP:
        """The forward and backward graphs, for these params and results."""
        if (wrt, seeded) not in self._derivatives:
            self._derivatives[wrt, seeded] = vjp(self.graph, wrt, seeded)
        return self._derivatives[wrt, seeded]

    def __repr__(self) -> str:
        types = ", ".join(map(str, self.input_types))
        return f"<concrete {self.name}({types})>"


def _typed(leaves: Sequence[Any], arguments: Arguments) -> list[Any]:
    typed: list[Any | LeafType] = list(leaves)
    for k, type in zip(arguments.places, arguments.types, strict=True):
        typed[k] = type
    return typed
