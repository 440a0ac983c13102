"""One traced signature of a function, with its graphs and executables."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from wend.autodiff.forms import Forms
from wend.autodiff.jvp import JVP, jvp
from wend.autodiff.linearize import Linearized, linearize
from wend.autodiff.vjp import VJP, vjp
from wend.backends.choose import choose
from wend.backends.protocol import Executable
from wend.base import trees
from wend.base.config import settings
from wend.base.errors import StructureError, TypeMismatchError, explain
from wend.base.source import at
from wend.function.keys import ByIdentity
from wend.function.run import Run, start
from wend.function.signature import Arguments
from wend.ir.graph import Graph
from wend.ir.types import accepts, is_differentiable
from wend.passes.pipeline import OPTIMIZE, TIDY, run_passes
from wend.trace.recording import current
from wend.trace.traced import Traced
from wend.trace.variable import Variable

T = TypeVar("T")


class ConcreteFunction:
    """A function traced for one signature.

    Attributes:
        name: the function's name.
        graph: what was recorded. `print(concrete.graph)` shows it.
        captured_inputs: the arrays that it captures, by reference.
        structured_outputs: its results, with their types in place of arrays.
        structured_input_signature: its (args, kwargs), with types in place of arrays.

    Example:
        >>> import wend
        >>> concrete = wend.function(lambda x, y: x + y).get_concrete_function(1.0, 2)
        >>> concrete
        <concrete <lambda>(f64[] (weak), i64[] (weak))>
        >>> concrete.graph.count("add")
        1
    """

    def __init__(
        self,
        name: str,
        traced: Traced,
        arguments: Arguments,
        bind: Callable[[Sequence[Any], dict[str, Any]], Arguments],
        backend: str | None = None,
    ) -> None:
        self.name = name
        self.traced = traced
        self.backend = backend
        self._bind = bind
        self._treedef = arguments.treedef
        self.graph: Graph = run_passes(traced.graph, TIDY)
        self.input_types = arguments.types
        self._input_leaves = _typed(arguments)
        self.structured_outputs = trees.unflatten(traced.result_tree, traced.result_types)
        self._executables: dict[tuple[str, Graph], Executable] = {}
        self._derivatives: dict[Any, Any] = {}

    @property
    def structured_input_signature(self) -> Any:
        leaves = [x.reference() if isinstance(x, ByIdentity) else x for x in self._input_leaves]
        return trees.unflatten(self._treedef, leaves)

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

    def run_by_python(self) -> list[str]:
        """What compiled code leaves to NumPy kernels: the operations, with the user's lines."""
        nodes = [node for run in self._executables.values() for node in run.host_nodes]
        return list(dict.fromkeys(f"{node.op.name}{at(node.source)}" for node in nodes))

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Arguments:
        """Take a call's arguments apart.

        Raises:
            TypeMismatchError: one of them is not of the type that this was traced for.
        """
        arguments = self._bind(args, kwargs)
        if arguments.treedef != self._treedef:
            wanted = f"{self.name} was traced for {self._treedef}, given {arguments.treedef}."
            raise StructureError(explain(wanted, cure="call the function itself."))
        for name, given, type in zip(
            arguments.names(), arguments.types, self.input_types, strict=True
        ):
            if not accepts(type.type, given.type):
                what = f"{self.name} was traced for {name}: {type}, given {given}."
                raise TypeMismatchError(explain(what, cure="cast it, or call the function itself."))
        return arguments

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run this trace, and no other, on arguments of its types."""
        arrays = self.bind(args, kwargs).arrays
        recording = current()
        if recording is not None:
            return self.traced.call_in(recording, arrays, self.backend)
        return self.run(self.backend or settings().backend, arrays)

    def forward(self, *args: Any, **kwargs: Any) -> tuple[Any, Run]:
        """Run the forward form: what the function returns, and what `backward` needs.

        Each run owns what it keeps, so that two runs before one backward do not mix.

        Example:
            >>> import wend
            >>> square = wend.function(lambda x: x * x).get_concrete_function(3.0)
            >>> value, run = square.forward(3.0)
            >>> square.backward(run, 1.0)
            (np.float64(6.0),)
        """
        return start(self, self.bind(args, kwargs))

    def backward(self, run: Run, cotangent: Any) -> tuple[Any, ...]:
        """Run the backward form on one run of the forward form.

        Args:
            run: from `forward`.
            cotangent: like what the function returns, None in the place of each result from which
                nothing comes: what only those would need does not run.

        Returns:
            A cotangent for each positional argument; None where no path leads to what is given.

        Raises:
            TypeError: `run` is of another function.
        """
        if not isinstance(run, Run) or run.concrete is not self:
            raise TypeError(f"{self.name}.backward takes a run of its own forward, not {run!r}")
        return run.pull_back(cotangent)

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

    @functools.cached_property
    def forms(self) -> Forms:
        """The forward form, and a backward form for every choice of cotangents."""
        types = self.traced.result_types
        wrt = [k for k, type in enumerate(self.input_types) if is_differentiable(type.type)]
        seeded = [k for k, type in enumerate(types) if is_differentiable(type.type)]
        return Forms(self.graph, wrt, seeded)

    def __repr__(self) -> str:
        types = ", ".join(map(str, self.input_types))
        return f"<concrete {self.name}({types})>"


def _typed(arguments: Arguments) -> list[Any]:
    """The leaves, types in place of arrays; objects that the key holds weakly are held so here."""
    types, rest = iter(arguments.types), iter(arguments.rest)
    traced = {*arguments.places}
    found: list[Any] = []
    for k, leaf in enumerate(arguments.leaves):
        key: Any = None if k in traced else next(rest)
        if isinstance(key, tuple) and len(key) == 2:
            key = key[1]
        found.append(next(types) if k in traced else key if isinstance(key, ByIdentity) else leaf)
    return found
