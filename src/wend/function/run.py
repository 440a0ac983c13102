"""One run of a concrete function's forward form, for its backward form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wend.autodiff.vjp import linear_blocks
from wend.base import trees
from wend.base.config import settings
from wend.base.errors import NotDifferentiableError, explain
from wend.base.zero import ZERO
from wend.function.fitting import fitted, subtrees
from wend.function.signature import Arguments
from wend.ir.graph import Graph
from wend.ir.types import ListType, is_differentiable, without_maybe
from wend.passes.blocks import without_blocks
from wend.passes.zeros import specialise
from wend.trace.arguments import to_run
from wend.trace.traced import copied, owned

if TYPE_CHECKING:
    from wend.function.concrete import ConcreteFunction


class Forms:
    """The forward form of a function, and its backward form for any choice of cotangents.

    There is one general backward graph, of linear blocks. Which results have cotangents is known
    when it is to run, so it is specialised to that, once for each choice: nothing that only the
    others would need is left.
    """

    def __init__(self, concrete: ConcreteFunction) -> None:
        types = concrete.traced.result_types
        self.wrt = [k for k, t in enumerate(concrete.input_types) if is_differentiable(t.type)]
        self.seeded = [k for k, type in enumerate(types) if is_differentiable(type.type)]
        self.general = linear_blocks(concrete.graph, self.wrt, self.seeded, unknown=self.seeded)
        self._backward: dict[tuple[bool, ...], Graph] = {}

    @property
    def forward(self) -> Graph:
        return self.general.forward

    def backward(self, given: tuple[bool, ...]) -> Graph:
        """Takes what the forward form keeps, then the cotangents that are given."""
        if given not in self._backward:
            graph = self.general.backward
            first = len(graph.params) - len(given)
            zero = [first + k for k, is_given in enumerate(given) if not is_given]
            there = [first + k for k, is_given in enumerate(given) if is_given]
            self._backward[given] = without_blocks(specialise(graph, zero, there))
        return self._backward[given]


class Run:
    """What one run of a forward form keeps. It may be pulled back many times."""

    def __init__(
        self, concrete: ConcreteFunction, arguments: Arguments, residuals: Sequence[Any]
    ) -> None:
        self.concrete, self.arguments, self.residuals = concrete, arguments, residuals

    def __repr__(self) -> str:
        return f"<a run of {self.concrete.name}>"

    def pull_back(self, cotangent: Any) -> tuple[Any, ...]:
        """Cotangents of the arguments, None where nothing arrives."""
        concrete, forms = self.concrete, self.concrete.forms
        types, tree = concrete.traced.result_types, concrete.traced.result_tree
        seeds = _leaves(concrete, cotangent)
        given = tuple(seeds[k] is not None for k in forms.seeded)
        leaves: list[Any] = [None] * len(self.arguments.leaves)
        if any(given):
            what, names = f"{concrete.name}.backward: the cotangent", trees.paths(tree)
            ready = [
                to_run(fitted(f"{what}{names[k]}", "the value", types[k].type, seeds[k]))
                for k, is_given in zip(forms.seeded, given, strict=True)
                if is_given
            ]
            execute = concrete.executable(_backend(concrete), forms.backward(given))
            inputs = [*self.residuals, *ready]
            found = iter(owned(execute(inputs), inputs))
            for k, is_connected in zip(forms.wrt, forms.general.connected, strict=True):
                ct = next(found) if is_connected else ZERO
                leaves[self.arguments.places[k]] = None if ct is ZERO else ct
        args, _ = trees.unflatten(self.arguments.treedef, leaves)
        return tuple(args)


def start(concrete: ConcreteFunction, arguments: Arguments) -> tuple[Any, Run]:
    """Run the forward form of a concrete function."""
    traced = concrete.traced
    if traced.written:
        what = f"{concrete.name}.forward: it changes an argument in place."
        raise NotDifferentiableError(explain(what, cure="change a copy of it: x = x.copy()."))
    execute = concrete.executable(_backend(concrete), concrete.forms.forward)
    # Copies: what the caller writes into arguments and value must not reach what is kept.
    results = execute(copied(traced.arguments(arguments.arrays)))
    count = len(concrete.graph.results)
    value = traced.rebuild(copied(results[:count]))
    return value, Run(concrete, arguments, results[count:])


def _leaves(concrete: ConcreteFunction, cotangent: Any) -> list[Any]:
    """The cotangents of the results, None for those that have none."""
    tree = concrete.traced.result_tree
    if cotangent is None:
        return [None] * len(concrete.traced.result_types)
    return subtrees(f"{concrete.name}.backward: the cotangent", "the value", tree, cotangent)


def _backend(concrete: ConcreteFunction) -> str:
    """The function's backend; numpy where records of a loop go from one graph to the other.

    Only the numpy backend hands lists across a call so far.
    """
    types = concrete.forms.forward.result_types
    if any(isinstance(without_maybe(type), ListType) for type in types):
        return "numpy"
    return concrete.backend or settings().backend
