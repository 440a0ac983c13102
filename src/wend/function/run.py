"""One run of a concrete function's forward form, for its backward form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wend.autodiff.vjp import VJP
from wend.base import trees
from wend.base.config import settings
from wend.base.errors import NotDifferentiableError, StructureError, explain
from wend.base.zero import ZERO
from wend.function.cotangent import fitting
from wend.function.signature import Arguments
from wend.ir.types import ListType, is_differentiable, without_maybe
from wend.trace.arguments import to_run
from wend.trace.traced import copied, owned

if TYPE_CHECKING:
    from wend.function.concrete import ConcreteFunction


class Run:
    """What one run of a forward form keeps. It may be pulled back many times."""

    def __init__(
        self,
        concrete: ConcreteFunction,
        forms: VJP,
        wrt: Sequence[int],
        arguments: Arguments,
        residuals: Sequence[Any],
    ) -> None:
        self.concrete, self.forms, self.wrt = concrete, forms, wrt
        self.arguments, self.residuals = arguments, residuals

    def __repr__(self) -> str:
        return f"<a run of {self.concrete.name}>"

    def pull_back(self, cotangent: Any) -> tuple[Any, ...]:
        """Cotangents of the arguments, None where nothing arrives."""
        types = self.concrete.traced.result_types
        tree = self.concrete.traced.result_tree
        try:
            given = trees.flatten_up_to(tree, cotangent) if cotangent is not None else []
        except ValueError:
            what = f"{self.concrete.name}.backward: the cotangent is {trees.described(cotangent)}."
            cure = "give one for each result, None for those from which nothing comes."
            raise StructureError(explain(what, cure=cure)) from None
        given = given or [None] * len(types)
        seeds = [
            ZERO if ct is None else to_run(fitting(ct, type.type, f"{self.concrete.name}.backward"))
            for ct, type in zip(given, types, strict=True)
            if is_differentiable(type.type)
        ]
        leaves: list[Any] = [None] * len(self.arguments.leaves)
        if any(seed is not ZERO for seed in seeds):
            execute = self.concrete.executable(
                _backend(self.concrete, self.forms), self.forms.backward
            )
            inputs = [*self.residuals, *seeds]
            found = iter(owned(execute(inputs), inputs))
            for k, is_connected in zip(self.wrt, self.forms.connected, strict=True):
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
    wrt = tuple(k for k, t in enumerate(arguments.types) if is_differentiable(t.type))
    seeded = tuple(k for k, t in enumerate(traced.result_types) if is_differentiable(t.type))
    forms = concrete.vjp(wrt, seeded, unknown=seeded)
    execute = concrete.executable(_backend(concrete, forms), forms.forward)
    # Copies: what the caller writes into arguments and value must not reach what is kept.
    results = execute(copied(traced.arguments(arguments.arrays)))
    count = len(concrete.graph.results)
    value = traced.rebuild(copied(results[:count]))
    return value, Run(concrete, forms, wrt, arguments, results[count:])


def _backend(concrete: ConcreteFunction, forms: VJP) -> str:
    """The function's backend; numpy where records of a loop go from one graph to the other.

    Only the numpy backend hands lists across a call so far.
    """
    if any(isinstance(without_maybe(type), ListType) for type in forms.forward.result_types):
        return "numpy"
    return concrete.backend or settings().backend
