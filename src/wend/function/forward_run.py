"""One run of a concrete function's forward graph, for its backward graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wend.base import trees
from wend.base.config import settings
from wend.base.zero import ZERO
from wend.function.run_forms import refuse_written, run_forward, run_linear
from wend.function.signature.match_structure import coerce, flatten_like
from wend.function.signature.signature import Arguments
from wend.ir.types import MaybeType
from wend.trace.recording.recording import current
from wend.trace.state.variable import Variable

if TYPE_CHECKING:
    from wend.function.concrete import ConcreteFunction


class Run:
    """The residuals of one run of a forward graph; it can be pulled back many times."""

    def __init__(
        self, concrete: ConcreteFunction, arguments: Arguments, residuals: Sequence[Any]
    ) -> None:
        self.concrete, self.arguments, self.residuals = concrete, arguments, residuals

    def __repr__(self) -> str:
        return f"<a run of {self.concrete.name}>"

    def pull_back(self, cotangent: Any, captures: bool) -> tuple[Any, ...]:
        """Return the cotangents of the arguments, and of the captures if these are asked for.

        None where the given cotangents do not reach.
        """
        concrete, forms = self.concrete, self.concrete.forms
        types, tree = concrete.traced.result_types, concrete.traced.result_tree
        seeds = _cotangent_leaves(concrete, cotangent)
        chosen = [k for k in forms.seeded if seeds[k] is not None]
        label, paths = f"{concrete.name}.backward: the cotangent", trees.paths(tree)
        cotangents = [
            coerce(f"{label}{paths[k]}", "the value", types[k].type, seeds[k]) for k in chosen
        ]
        count = len(concrete.graph.params if captures else concrete.input_types)
        backward, backend = forms.backward(chosen, count), _backend(concrete)
        results: Sequence[Any] = ()
        if any(backward.connected):
            results = run_linear(
                f"{self!r}", concrete, backward.graph, backend, self.residuals, cotangents
            )
        connected = [k for k, flag in zip(forms.wrt, backward.connected, strict=True) if flag]
        cts = dict(zip(connected, results, strict=True))
        arrays, captured = self.arguments.arrays, concrete.captured_inputs
        of_arguments = {k: _instantiate(cts[k], x) for k, x in enumerate(arrays) if k in cts}
        if not captures:
            return self.arguments.positional(of_arguments)
        first = len(concrete.graph.params) - len(captured)
        of_captured = (
            _instantiate(cts[k], x) if k in cts else None for k, x in enumerate(captured, first)
        )
        return (*self.arguments.positional(of_arguments), *of_captured)


def start(concrete: ConcreteFunction, arguments: Arguments) -> tuple[Any, Run]:
    """Run the forward graph of a concrete function."""
    refuse_written(f"{concrete.name}.forward", concrete)
    results, residuals = run_forward(
        concrete, concrete.forms.forward, arguments.arrays, _backend(concrete)
    )
    return concrete.traced.rebuild(results), Run(concrete, arguments, residuals)


def _instantiate(ct: Any, like: Any) -> Any:
    """Return a cotangent that may be a symbolic zero at run time as an array."""
    recording = current()
    if recording is None:
        return np.zeros_like(np.asarray(like))[()] if ct is ZERO else ct
    value = recording.lift(ct)
    if not isinstance(value.type, MaybeType):
        return ct
    like = like.value if isinstance(like, Variable) else like
    return recording.wrap(recording.b.instantiate(value, recording.lift(like)))


def _cotangent_leaves(concrete: ConcreteFunction, cotangent: Any) -> list[Any]:
    """Return the cotangents of the results, None for results without one."""
    tree = concrete.traced.result_tree
    if cotangent is None:
        return [None] * len(concrete.traced.result_types)
    return flatten_like(f"{concrete.name}.backward: the cotangent", "the value", tree, cotangent)


def _backend(concrete: ConcreteFunction) -> str:
    """Return the backend that runs the forward and backward graphs."""
    return concrete.backend or settings().backend
