"""`custom_vjp`: a function with a reverse-mode rule of the user's own; as in `jax`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

from wend.base import trees
from wend.base.errors import MissingRuleError, StructureError, explain
from wend.eager.dispatch import Staged
from wend.function.host.check_pure import refuse_effects, without_effects
from wend.function.rules.custom_call import CustomCall
from wend.function.rules.custom_leaves import like_cotangent, like_out, same_structure
from wend.function.rules.rule_body import Frame, RuleBody
from wend.function.rules.rule_recording import Owner, Rule, record
from wend.ir.graph import Graph, Value
from wend.ir.types import is_differentiable
from wend.ops import custom as ops
from wend.trace.recording.arguments import LeafType
from wend.trace.recording.recording import current
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
        body = RuleBody(self.forward, frame)
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
        body = RuleBody(traced, frame)
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


class custom_vjp(Owner):  # noqa: N801 - a decorator, named as in jax
    """A function whose gradient is computed by rules of your own.

    Args:
        fun: the function.
        nondiff_argnums: positions of arguments that have no derivative; `bwd` gets them first.

    Set the rules by `defvjp`. In a trace all three are recorded as one node: a value runs `fun`
    alone, a gradient runs `fwd` and `bwd`. Called with plain arrays it is just `fun`.

    Raises:
        MissingRuleError: it is called before `defvjp`.
        NotDifferentiableError: a derivative is asked for with respect to a traced value that it
            closes over, or a nondiff argument.

    Example:
        >>> import wend
        >>> @wend.custom_vjp
        ... def clipped(x):
        ...     return x
        >>> clipped.defvjp(lambda x: (x, None), lambda _, ct: (wend.numpy.clip(ct, -1.0, 1.0),))
        >>> wend.grad(lambda x: 5.0 * clipped(x))(2.0)
        np.float64(1.0)
    """

    op = ops.custom_vjp

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: int | Sequence[int] = ()) -> None:
        if not callable(fun):
            raise TypeError(f"custom_vjp takes a function, not {fun!r}")
        self.fun = fun
        self.name = str(getattr(fun, "__name__", "function"))
        self.nondiff_argnums = (
            (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        )
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.symbolic_zeros = False
        functools.update_wrapper(self, fun, updated=())

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
    ) -> None:
        """Set the rules.

        Args:
            fwd: takes what the function takes, and returns `(out, residuals)`: what the function
                returns, and a pytree for `bwd`. What is no traced array in it is handed on as
                it is.
            bwd: `(*nondiff arguments, residuals, ct)` → a tuple with a cotangent for each other
                argument, a pytree like it. None stands for zero: for an argument, or a leaf. Leaves
                of integers have None. `ct` is like what the function returns, None for integers.
            symbolic_zeros: give `bwd` None, not an array of zeros, for a result whose cotangent
                is known to be zero. With more than three results it is told so only where all
                but one are.
        """
        for role, rule in (("fwd", fwd), ("bwd", bwd)):
            if not callable(rule):
                raise TypeError(f"{role} must be callable, not {rule!r}")
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.fwd is None or self.bwd is None:
            raise MissingRuleError(
                explain(
                    f"{self.name} is a custom_vjp without a rule.",
                    cure=f"set one: {self.name}.defvjp(fwd, bwd).",
                )
            )
        outer = current()
        if outer is None:
            return self.fun(*args, **kwargs)
        call = CustomCall(self.fun, self.name, self.nondiff_argnums, args, kwargs)
        return record(self, call, self.fun, outer)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<wend.custom_vjp {self.name}>"

    def record_rule(self, call: CustomCall, callee: Traced) -> Rule:
        """Record `fwd`, then `bwd` on its residuals."""
        assert self.fwd is not None
        assert self.bwd is not None
        return VjpRule(self.fwd, self.bwd, self.symbolic_zeros, call, callee)
