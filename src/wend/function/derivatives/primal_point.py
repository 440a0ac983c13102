"""A function at given primals: the shared part of `vjp`, `jvp` and `linearize`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.backends.protocol import choose
from wend.base import trees
from wend.base.config import settings
from wend.base.errors import NotDifferentiableError, explain
from wend.function.concrete import ConcreteFunction
from wend.function.derivatives.differentiated import differentiated_part, is_number
from wend.function.function import Function
from wend.function.run_forms import refuse_written, run_forward, run_linear
from wend.function.signature.match_structure import coerce, flatten_like
from wend.function.signature.signature import argument_paths
from wend.ir.graph import Graph
from wend.ir.types import TensorType, is_differentiable
from wend.trace.recording.recording import current


class PrimalPoint:
    """A function traced for its primals.

    Attributes:
        primals: the flattened arguments; `wrt` are the indices of the float ones among the arrays.
        outputs: the indices, among the results, of the leaves of the differentiated value; `seeded`
            are those that are floats, `output_tree` is the structure.
        results: the results of the run.
    """

    def __init__(
        self, what: str, fun: Callable[..., Any], primals: Sequence[Any], has_aux: bool
    ) -> None:
        self.has_aux, self.primal_count = has_aux, len(primals)
        # A plain function is traced at each call: values that it reads from outside may differ.
        self.function = fun if isinstance(fun, Function) else Function(fun)
        self.name = what
        self.what = f"{what} of {self.function.name}"
        self.concrete: ConcreteFunction
        self.concrete, self.primals = self.function._find(primals, {})
        traced = self.concrete.traced
        value = differentiated_part(self.what, traced.result_tree, has_aux)
        self.outputs, self.output_tree = trees.flatten_deep(value, with_objects=True)
        self.output_types = [
            traced.result_types[k].type if is_number(k, len(traced.result_types)) else None
            for k in self.outputs
        ]
        self.seeded = tuple(
            k
            for k, type in zip(self.outputs, self.output_types, strict=True)
            if type is not None and is_differentiable(type)
        )
        self.wrt = tuple(k for k, t in enumerate(self.primals.types) if is_differentiable(t.type))
        refuse_written(self.what, self.concrete)

    def run_forward(
        self, graph: Graph, tangents: Sequence[Any] = (), *, keeps_residuals: bool = True
    ) -> tuple[Any, list[Any], Any]:
        """Run a graph of primals and tangents; return the value, the further results and the aux.

        Later writes by the caller to arguments or value do not reach the further results.
        """
        traced, arrays = self.concrete.traced, self.primals.arrays
        self.results, residuals = run_forward(
            self.concrete, graph, arrays, self.backend, tangents, keeps_residuals=keeps_residuals
        )
        value = trees.unflatten(traced.result_tree, list(self.results[: len(traced.result_types)]))
        value, aux = value if self.has_aux else (value, None)
        return value, list(residuals), aux

    def run_linear(
        self, graph: Graph, residuals: Sequence[Any], inputs: Sequence[Any]
    ) -> Sequence[Any]:
        """Run a linear graph on the residuals of the run of the function."""
        return run_linear(self.what, self.concrete, graph, self.backend, residuals, inputs)

    def cotangent_leaves(self, cotangent: Any) -> list[Any]:
        """Return the float leaves of a cotangent of the value, cast to their dtypes."""
        coerced = coerced_cotangents(self.output_tree, self.output_types, cotangent)
        return [_sized_like(leaf, self.results[self.outputs[k]]) for k, leaf in coerced]

    def tangent_leaves(self, tangents: tuple[Any, ...]) -> list[Any]:
        """Return the float leaves of tangents of the primals, cast to their dtypes.

        Raises:
            NotDifferentiableError: a leaf that is not a float has a tangent.
        """
        primals = self.primals
        args = primals.numbered()
        names = argument_paths(primals.treedef, primals.parameters)
        wrt_types = {primals.traced_positions[k]: primals.types[k].type for k in self.wrt}
        coerced = []
        leaves, treedef = trees.flatten_deep(args)
        for position, leaf in zip(
            leaves, self._tangent_parts(treedef, args, tangents), strict=True
        ):
            if position in wrt_types:
                what, of = f"{self.name}: the tangent of {names[position]}", names[position]
                leaf = coerce(what, of, wrt_types[position], leaf)
                coerced.append(_sized_like(leaf, primals.leaves[position]))
            elif leaf is not None:
                what = f"{self.name}: {names[position]} has a tangent but is no float."
                cure = "give None as its tangent, or make it a float."
                raise NotDifferentiableError(explain(what, cure=cure))
        return coerced

    def _tangent_parts(
        self, treedef: trees.TreeDef, args: Any, tangents: tuple[Any, ...]
    ) -> list[Any]:
        """Return the parts of the tangents at the positions of the leaves of the primals.

        None may stand for a whole argument without floats.
        """
        wrt_positions = {self.primals.traced_positions[k] for k in self.wrt}
        filled = tuple(
            trees.map_deep(_to_none, arg)
            if tangent is None and wrt_positions.isdisjoint(trees.flatten_deep(arg)[0])
            else tangent
            for arg, tangent in zip(args, tangents, strict=False)
        )
        return flatten_like(f"{self.name}: tangents", "primals", treedef, filled)

    def value_tangent(self, connected: Sequence[bool], tangents: Sequence[Any]) -> Any:
        """Return the tangent of the value: zeros for floats without a tangent, None for integers.

        `tangents` are those of the results of the function that are `connected`.
        """
        if current() is None:
            tangents = choose(self.backend).boundary.unshare(tangents, self.results)
        remaining = iter(tangents)
        by_result = {k: next(remaining) for k, is_connected in enumerate(connected) if is_connected}
        leaves = [
            None
            if type is None or k not in self.seeded
            else by_result[k]
            if k in by_result
            else zeros_like(self.results[k])
            for k, type in zip(self.outputs, self.output_types, strict=True)
        ]
        return trees.unflatten(self.output_tree, leaves)

    @property
    def backend(self) -> str:
        """The backend that runs its graphs."""
        return self.function.backend or settings().backend


def _sized_like(x: Any, like: Any) -> Any:
    """Return an array with the symbolic sizes of another one, checked at run time."""
    recording = current()
    if recording is None:
        return x
    value, target = recording.lift(x), recording.lift(like)
    if value.type == target.type:
        return x
    b = recording.b
    have_rank = value.tensor.shape is not None and target.tensor.shape is not None
    return recording.wrap(
        b.reshape_like(value, target) if have_rank else b.refine(value, target.type)
    )


def coerced_cotangents(
    tree: trees.TreeDef, types: Sequence[TensorType | None], cotangent: Any
) -> list[tuple[int, Any]]:
    """Return the float leaves of a cotangent of a value, cast to their dtypes, with their indices.

    `types` are those of the leaves of the value, None for leaves that are no arrays.
    """
    what, of = "pullback: the cotangent", "the value"
    leaves = zip(types, flatten_like(what, of, tree, cotangent), trees.paths(tree), strict=True)
    return [
        (k, coerce(f"{what}{path}", f"{of}{path}", type, leaf))
        for k, (type, leaf, path) in enumerate(leaves)
        if type is not None and is_differentiable(type)
    ]


def _to_none(leaf: Any) -> None:
    return None


def zeros_like(x: Any) -> Any:
    """Return zeros of the type of an array, recorded in a trace."""
    recording = current()
    if recording is not None:
        return recording.wrap(recording.b.zeros_like(recording.lift(x)))
    return np.zeros_like(x)[()]
