"""One traced signature of a function, with its graphs and executables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from wend.autodiff.jvp import JVP, jvp
from wend.autodiff.linearize import Linearized, linearize
from wend.autodiff.vjp import VJP, vjp
from wend.backends.choose import choose
from wend.backends.protocol import Executable
from wend.base import trees
from wend.function.signature import Arguments
from wend.ir.graph import Graph
from wend.passes.pipeline import OPTIMIZE, TIDY, run_passes
from wend.trace.arguments import LeafType
from wend.trace.traced import Traced

T = TypeVar("T")


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
        self._derivatives: dict[Any, Any] = {}

    @property
    def captured_inputs(self) -> tuple[Any, ...]:
        return self.traced.bindings

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
        return self._once(VJP, (wrt, seeded), lambda: vjp(self.graph, wrt, seeded))

    def jvp(self, wrt: tuple[int, ...]) -> JVP:
        """The graph of values and tangents, for tangents of these params."""
        return self._once(JVP, (wrt,), lambda: jvp(self.graph, wrt))

    def linearize(self, wrt: tuple[int, ...], chosen: tuple[int, ...]) -> Linearized:
        """The graph and its linear part, for tangents of these params and results."""
        return self._once(Linearized, (wrt, chosen), lambda: linearize(self.graph, wrt, chosen))

    def _once(self, kind: type[T], key: tuple[Any, ...], make: Callable[[], T]) -> T:
        if (kind, key) not in self._derivatives:
            self._derivatives[kind, key] = make()
        found: T = self._derivatives[kind, key]
        return found

    def __repr__(self) -> str:
        types = ", ".join(map(str, self.input_types))
        return f"<concrete {self.name}({types})>"


def _typed(leaves: Sequence[Any], arguments: Arguments) -> list[Any]:
    typed: list[Any | LeafType] = list(leaves)
    for k, type in zip(arguments.places, arguments.types, strict=True):
        typed[k] = type
    return typed
