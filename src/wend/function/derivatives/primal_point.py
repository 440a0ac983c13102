"""A function at given primals: what `vjp`, `jvp` and `linearize` have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.backends.protocol import choose
from wend.base import trees
from wend.base.config import settings
from wend.base.errors import (
    NotDifferentiableError,
    explain,
)
from wend.function.concrete import ConcreteFunction
from wend.function.derivatives.differentiated import differentiated_part
from wend.function.function import Function
from wend.function.run_forms import run_forward, run_linear
from wend.function.signature.match_structure import fitted, subtrees
from wend.function.signature.signature import argument_paths
from wend.ir.graph import Graph
from wend.ir.types import is_differentiable
from wend.trace.recording.recording import current


class PrimalPoint:
    """A function, traced for its primals.

    Attributes:
        primals: the arguments, taken apart; `moving` are the float ones among their arrays.
        outputs: positions of the leaves of what is differentiated among the results, `seeded`
            those that are floats; `output_tree` is its structure.
    """

    def __init__(
        self, what: str, fun: Callable[..., Any], primals: Sequence[Any], has_aux: bool
    ) -> None:
        self.has_aux, self.count = has_aux, len(primals)
        # A plain function is traced at each call: what it reads from outside may have changed.
        self.function = fun if isinstance(fun, Function) else Function(fun)
        self.name = what
        self.what = f"{what} of {self.function.name}"
        self.primals = self.function._bind(primals, {})
        self.concrete: ConcreteFunction = self.function._find(self.primals)
        traced = self.concrete.traced
        value = differentiated_part(
            self.what, traced.result_tree, len(traced.result_types), has_aux
        )
        self.outputs, self.output_tree = trees.flatten(value)
        self.output_types = [traced.result_types[k].type for k in self.outputs]
        self.seeded = tuple(
            k
            for k, type in zip(self.outputs, self.output_types, strict=True)
            if is_differentiable(type)
        )
        self.moving = tuple(
            k for k, t in enumerate(self.primals.types) if is_differentiable(t.type)
        )
        if traced.written:
            found = f"{self.what}: it changes an argument in place."
            raise NotDifferentiableError(explain(found, cure="change a copy of it: x = x.copy()."))

    # Running
    def start(
        self, graph: Graph, given: Sequence[Any] = (), *, keeps: bool = True
    ) -> tuple[Any, list[Any], Any]:
        """Run a graph of (primals…, given…): the value, the results that are not the function's,

        the aux. What the caller writes into arguments and value does not reach those results.
        """
        traced, arrays = self.concrete.traced, self.primals.arrays
        own, rest = run_forward(self.concrete, graph, arrays, self.backend, given, keeps=keeps)
        self.results = own
        value = trees.unflatten(traced.result_tree, list(own[: len(traced.result_types)]))
        value, aux = value if self.has_aux else (value, None)
        return value, list(rest), aux

    def apply(self, graph: Graph, kept: Sequence[Any], given: Sequence[Any]) -> Sequence[Any]:
        """Run a linear graph on what was kept of the run of the function, and more."""
        return run_linear(self.what, self.concrete, graph, self.backend, kept, given)

    def seeds(self, cotangent: Any) -> list[Any]:
        """The leaves of a cotangent of the value that belong to floats, cast to their dtypes."""
        what, of = "pullback: the cotangent", "the value"
        leaves = subtrees(what, of, self.output_tree, cotangent)
        places = zip(self.output_types, leaves, trees.paths(self.output_tree), strict=True)
        fit = [
            fitted(f"{what}{path}", f"{of}{path}", type, leaf)
            for type, leaf, path in places
            if is_differentiable(type)
        ]
        likes = [self.results[k] for k in self.outputs if k in self.seeded]
        return [_sized_like(leaf, like) for leaf, like in zip(fit, likes, strict=True)]

    def tangents(self, given: tuple[Any, ...]) -> list[Any]:
        """The leaves of tangents of the primals that belong to floats, cast to their dtypes.

        Raises:
            NotDifferentiableError: there is a tangent for something else.
        """
        primals = self.primals
        args = primals.numbered()
        names = argument_paths(primals.treedef, primals.parameters)
        of_moving = {primals.places[k]: primals.types[k].type for k in self.moving}
        found = []
        leaves, treedef = trees.flatten(args)
        for place, leaf in zip(leaves, self._unpacked(treedef, args, given), strict=True):
            if place in of_moving:
                what, of = f"{self.name}: the tangent of {names[place]}", names[place]
                leaf = fitted(what, of, of_moving[place], leaf)
                found.append(_sized_like(leaf, primals.leaves[place]))
            elif leaf is not None:
                what = f"{self.name}: {names[place]} has a tangent but is no float."
                cure = "give None as its tangent, or make it a float."
                raise NotDifferentiableError(explain(what, cure=cure))
        return found

    def _unpacked(self, treedef: trees.TreeDef, args: Any, given: tuple[Any, ...]) -> list[Any]:
        """The parts of tangents that stand where primals have leaves.

        None may stand for a whole argument in which nothing is a float.
        """
        moving = {self.primals.places[k] for k in self.moving}
        filled = tuple(
            trees.tree_map(_nothing, arg)
            if tangent is None and moving.isdisjoint(trees.flatten(arg)[0])
            else tangent
            for arg, tangent in zip(args, given, strict=False)
        )
        return subtrees(f"{self.name}: tangents", "primals", treedef, filled)

    def tangent_of_value(self, connected: Sequence[bool], found: Sequence[Any]) -> Any:
        """The tangent of the value: zeros for floats that do not move, None for integers.

        Args:
            connected: for each result of the function whether it moves.
            found: the tangents of those.
        """
        if current() is None:
            found = choose(self.backend).boundary.own(found, self.results)
        rest = iter(found)
        moved = {k: next(rest) for k, flag in enumerate(connected) if flag}
        leaves = [
            (moved[k] if k in moved else zeros_like(self.results[k])) if k in self.seeded else None
            for k in self.outputs
        ]
        return trees.unflatten(self.output_tree, leaves)

    @property
    def backend(self) -> str:
        """What runs its graphs."""
        return self.function.backend or settings().backend


def _sized_like(x: Any, like: Any) -> Any:
    """In a trace, the array with its sizes under the names of another: that checks as it runs."""
    recording = current()
    if recording is None:
        return x
    value, wanted = recording.lift(x), recording.lift(like)
    if value.type == wanted.type:
        return x
    b = recording.b
    known = value.tensor.shape is not None and wanted.tensor.shape is not None
    return recording.wrap(b.reshape_like(value, wanted) if known else b.refine(value, wanted.type))


def _nothing(leaf: Any) -> None:
    return None


def zeros_like(x: Any) -> Any:
    """Zeros of the type of an array, here."""
    recording = current()
    if recording is not None:
        return recording.wrap(recording.b.zeros_like(recording.lift(x)))
    return np.zeros_like(x)[()]
