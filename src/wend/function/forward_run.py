"""One run of a concrete function's forward form, for its backward form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wend.base import trees
from wend.base.config import settings
from wend.base.errors import NotDifferentiableError, explain
from wend.base.zero import ZERO
from wend.function.run_forms import run_forward, run_linear
from wend.function.signature.match_structure import fitted, subtrees
from wend.function.signature.signature import Arguments
from wend.ir.types import MaybeType
from wend.trace.recording.recording import current

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
        chosen = [k for k in forms.seeded if seeds[k] is not None]
        if not chosen:
            return self.arguments.positional({})
        what, names = f"{concrete.name}.backward: the cotangent", trees.paths(tree)
        ready = [fitted(f"{what}{names[k]}", "the value", types[k].type, seeds[k]) for k in chosen]
        backward, backend = forms.backward(chosen), _backend(concrete)
        found = iter(
            run_linear(f"{self!r}", concrete, backward.graph, backend, self.residuals, ready)
        )
        cts = {
            k: _instantiated(next(found), self.arguments.arrays[k])
            for k, is_connected in zip(forms.wrt, backward.connected, strict=True)
            if is_connected
        }
        return self.arguments.positional(cts)


def start(concrete: ConcreteFunction, arguments: Arguments) -> tuple[Any, Run]:
    """Run the forward form of a concrete function."""
    traced = concrete.traced
    if traced.written:
        what = f"{concrete.name}.forward: it changes an argument in place."
        raise NotDifferentiableError(explain(what, cure="change a copy of it: x = x.copy()."))
    own, residuals = run_forward(
        concrete, concrete.forms.forward, arguments.arrays, _backend(concrete)
    )
    return traced.rebuild(own), Run(concrete, arguments, residuals)


def _instantiated(ct: Any, like: Any) -> Any:
    """A cotangent of which only the run can tell whether it has arrived; zeros where not."""
    recording = current()
    if recording is None:
        return np.zeros_like(like)[()] if ct is ZERO else ct
    value = recording.lift(ct)
    if not isinstance(value.type, MaybeType):
        return ct
    return recording.wrap(recording.b.instantiate(value, recording.lift(like)))


def _leaves(concrete: ConcreteFunction, cotangent: Any) -> list[Any]:
    """The cotangents of the results, None for those that have none."""
    tree = concrete.traced.result_tree
    if cotangent is None:
        return [None] * len(concrete.traced.result_types)
    return subtrees(f"{concrete.name}.backward: the cotangent", "the value", tree, cotangent)


def _backend(concrete: ConcreteFunction) -> str:
    """What runs a pair of its forms."""
    return concrete.backend or settings().backend
