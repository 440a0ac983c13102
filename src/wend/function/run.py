"""One run of a concrete function's forward form, for its backward form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wend.base import trees
from wend.base.config import settings
from wend.base.errors import NotDifferentiableError, explain
from wend.base.zero import ZERO
from wend.function.fitting import fitted, subtrees
from wend.function.signature import Arguments
from wend.ir.types import ListType, without_maybe
from wend.trace.arguments import to_run
from wend.trace.in_use import in_use
from wend.trace.traced import copied, owned

if TYPE_CHECKING:
    from wend.function.concrete import ConcreteFunction


class Run:
    """What one run of a forward form keeps. It may be pulled back many times."""

    def __init__(
        self, concrete: ConcreteFunction, arguments: Arguments, residuals: Sequence[Any]
    ) -> None:
        self.concrete, self.arguments, self.residuals = concrete, arguments, residuals

    def __repr__(self) -> str:
        return f"<a run of {self.concrete.name}>"

    def pull_back(self, cotangent: Any) -> tuple[Any, ...]:
        """Cotangents of the arguments, None where no path leads to one that is given."""
        concrete, forms = self.concrete, self.concrete.forms
        types, tree = concrete.traced.result_types, concrete.traced.result_tree
        seeds = _leaves(concrete, cotangent)
        given = tuple(seeds[k] is not None for k in forms.seeded)
        cts: dict[int, Any] = {}
        if any(given):
            what, names = f"{concrete.name}.backward: the cotangent", trees.paths(tree)
            ready = [
                to_run(fitted(f"{what}{names[k]}", "the value", types[k].type, seeds[k]))
                for k, is_given in zip(forms.seeded, given, strict=True)
                if is_given
            ]
            chosen = [k for k, is_given in zip(forms.seeded, given, strict=True) if is_given]
            backward = forms.backward(chosen)
            execute = concrete.executable(_backend(concrete), backward.graph)
            inputs = [*self.residuals, *ready]
            found = iter(owned(execute(inputs), inputs))
            for k, is_connected in zip(forms.wrt, backward.connected, strict=True):
                if is_connected:
                    ct = next(found)
                    cts[k] = np.zeros_like(self.arguments.arrays[k])[()] if ct is ZERO else ct
        return self.arguments.positional(cts)


def start(concrete: ConcreteFunction, arguments: Arguments) -> tuple[Any, Run]:
    """Run the forward form of a concrete function."""
    traced = concrete.traced
    if traced.written:
        what = f"{concrete.name}.forward: it changes an argument in place."
        raise NotDifferentiableError(explain(what, cure="change a copy of it: x = x.copy()."))
    execute = concrete.executable(_backend(concrete), concrete.forms.forward)
    # Copies: what the caller writes into arguments and value must not reach what is kept.
    with in_use(traced.bindings if traced.has_world else ()):
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
