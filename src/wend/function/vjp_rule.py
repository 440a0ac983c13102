"""A recorded `fwd` and `bwd`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

from wend.base import trees
from wend.base.errors import StructureError, explain
from wend.eager.dispatch import Staged
from wend.function.custom_call import CustomCall
from wend.function.custom_leaves import like_cotangent, like_out, same_structure
from wend.function.no_effects import refuse_effects, without_effects
from wend.function.rule_body import Body, Frame
from wend.function.rule_recording import Rule
from wend.ir.graph import Graph, Value
from wend.ir.types import is_differentiable
from wend.trace.arguments import LeafType
from wend.trace.traced import Traced

# With so many outs, `bwd` is recorded for every choice of those that have a cotangent.
_FEW = 3


class VjpRule(Rule):
    """A recorded `fwd`, and a recorded `bwd` for each choice of results with a cotangent."""

    def __init__(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool,
        call: CustomCall,
        callee: Traced,
    ) -> None:
        self.bwd, self.call, self.callee = bwd, call, callee
        self.residuals: list[Any] = []
        self.places: list[int] = []
        self.treedef: Any = None
        names = [f"argument {call.path(k)}" for k in range(len(call.places))]
        self.forward = call.trace("_fwd", fwd, call.types, self._run_fwd, names)
        floats = [k for k, type in enumerate(callee.result_types) if is_differentiable(type.type)]
        self.given = _choices(floats, symbolic_zeros)
        self.wrt: list[tuple[int, ...]] = []
        self.backwards = [self._record_bwd(given) for given in self.given]
        self.traces = [self.forward, *self.backwards]

    def _run_fwd(self, fwd: Callable[..., Any], leaves: Sequence[Any]) -> list[Any]:
        """The leaves of out, then those residuals that are traced."""
        call = self.call
        result = fwd(*call.filled(leaves))
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise StructureError(
                explain(
                    f"{call.where}: fwd must return a pair (out, residuals), it returns "
                    f"{trees.described(result)}.",
                    cure="return (out, residuals); (out, None) where bwd needs nothing.",
                )
            )
        outs = like_out(f"{call.where}: fwd", self.callee, result[0])
        self.residuals, self.treedef = trees.flatten(result[1])
        found = enumerate(self.residuals)
        self.places = [k for k, leaf in found if isinstance(leaf, Staged)]
        return [*outs, *(self.residuals[k] for k in self.places)]

    def _record_bwd(self, given: tuple[int, ...]) -> Traced:
        types = self.forward.result_types
        outs = len(self.callee.result_types)
        residuals = types[outs:]
        seeds = [LeafType(types[k].type, weak=self.callee.result_types[k].weak) for k in given]
        found: list[int] = []

        def run(bwd: Callable[..., Any], leaves: Sequence[Any]) -> list[Any]:
            filled = list(self.residuals)
            for place, leaf in zip(self.places, leaves, strict=False):
                filled[place] = leaf
            cts: list[Any] = [None] * outs
            for k, ct in zip(given, leaves[len(residuals) :], strict=True):
                cts[k] = ct
            result = bwd(
                *self.call.kept_as_they_are(),
                trees.unflatten(self.treedef, filled),
                trees.unflatten(self.callee.result_tree, cts),
            )
            arrived = self._arrived(result)
            found[:] = arrived
            return [*arrived.values()]

        names = [*(["a residual"] * len(residuals)), *(["a cotangent"] * len(given))]
        with without_effects():
            traced = self.call.trace("_bwd", self.bwd, [*residuals, *seeds], run, names)
        refuse_effects(
            traced,
            f"{self.call.where}: bwd",
            "a backward pass may run at any time, or not at all",
            "do it in the function or in fwd.",
        )
        self.wrt.append(tuple(found))
        return traced

    def _arrived(self, result: Any) -> dict[int, Any]:
        """The cotangents that `bwd` returned, by the operands they belong to."""
        call = self.call
        expected = len(call.numbers)
        if not isinstance(result, (tuple, list)) or len(result) != expected:
            many = "1 argument" if expected == 1 else f"{expected} arguments"
            raise StructureError(
                explain(
                    f"{call.where}: bwd must return a tuple of cotangents for {many}, it "
                    f"returns {trees.described(result)}.",
                    cure="return one for each differentiable argument, None where it is zero; "
                    "(ct,) for one.",
                )
            )
        leaves: list[Any] = []
        for number, treedef, ct in zip(call.numbers, call.trees, result, strict=True):
            if ct is None:
                leaves += [None] * treedef.num_leaves
                continue
            what = f"{call.where}: bwd's cotangent of {call.label(number)}"
            leaves += same_structure(what, call.args[number], treedef, ct)
        found = {}
        for k, place in enumerate(call.places):
            what = f"{call.where}: bwd's cotangent of {call.path(k)}"
            ct = like_cotangent(what, call.types[k], leaves[place])
            if ct is not None:
                found[k] = ct
        return found

    def regions(self, callee: Traced, frame: Frame) -> tuple[list[Graph], dict[str, Any]]:
        """`fwd` gives what is captured as well, for `bwd` to read."""
        body = Body(self.forward, frame)
        body.take(len(self.call.places))
        body.world()
        captured = body.captured()
        results, world = body.run()
        outs = len(callee.result_types)
        used = [bool(backward.bindings) for backward in self.backwards]
        shared: list[Value] = captured if any(used) else []
        forward = body.b.finish([*results[:outs], *world, *results[outs:], *shared])
        backwards = [self._backward(traced, frame, any(used)) for traced in self.backwards]
        return [forward, *backwards], {"given": tuple(self.given), "wrt": tuple(self.wrt)}

    def _backward(self, traced: Traced, frame: Frame, has_captured: bool) -> Graph:
        body = Body(traced, frame)
        body.take(len(self.places))
        if has_captured:
            body.captured()
        body.take(len(traced.graph.params) - len(self.places) - len(traced.graph.captures))
        results, _ = body.run()
        return body.b.finish(results)


def _choices(floats: Sequence[int], symbolic_zeros: bool) -> list[tuple[int, ...]]:
    """For which results with a cotangent `bwd` is recorded; all of them first."""
    if not symbolic_zeros:
        return [tuple(floats)]
    sizes = range(len(floats), 0, -1) if len(floats) <= _FEW else (len(floats), 1)
    return [choice for size in sizes for choice in combinations(floats, size)] or [()]
