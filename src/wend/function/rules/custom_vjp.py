"""`custom_vjp`: functions with user-defined reverse-mode rules, as in `jax`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

from wend.base import trees
from wend.base.errors import StructureError, explain
from wend.eager.dispatch import Staged
from wend.function.host.check_pure import refuse_effects, without_effects
from wend.function.rules.custom_call import CustomCall
from wend.function.rules.custom_leaves import as_pair, coerce_cotangent, coerce_value, flatten_like
from wend.function.rules.rule_body import RuleBody, RuleContext
from wend.function.rules.rule_recording import CustomFunction, CustomRule
from wend.ir.graph import Graph, Value
from wend.ir.types import is_differentiable
from wend.ops import custom as ops
from wend.trace.recording.arguments import LeafType
from wend.trace.traced import Traced

# Up to this number of outs, `bwd` is recorded for every choice of those with a cotangent; the
# choices double with each out.
_MAX_EXHAUSTIVE_OUTS = 3


class VjpRule(CustomRule):
    """A recorded `fwd`, and a recorded `bwd` for each choice of results with a cotangent.

    Attributes:
        forward: the recorded `fwd`.
        residuals: the leaves of its residuals, of which `traced_positions` are traced.
        seeded: for each recorded `bwd`, the results whose cotangents it takes.
        wrt: for each recorded `bwd`, the operands whose cotangents it returns.
        backwards: the recorded `bwd`s.
    """

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
        self.traced_positions: list[int] = []
        self.treedef: Any = None
        names = [f"argument {call.path(k)}" for k in range(len(call.traced_positions))]
        self.forward = call.trace("_fwd", fwd, call.types, self._run_fwd, names)
        floats = [k for k, type in enumerate(callee.result_types) if is_differentiable(type.type)]
        self.seeded = _seeded_choices(floats, symbolic_zeros)
        self.wrt: list[tuple[int, ...]] = []
        self.backwards = [self._record_bwd(seeded) for seeded in self.seeded]
        self.traces = [self.forward, *self.backwards]

    def _run_fwd(self, fwd: Callable[..., Any], leaves: Sequence[Any]) -> list[Any]:
        """Return the leaves of out, then the traced leaves of the residuals."""
        call = self.call
        result = fwd(*call.all_args(leaves))
        what = f"{call.where}: fwd"
        out, residuals = as_pair(what, result, "residuals", "bwd needs nothing")
        outs = coerce_value(what, self.callee, out)
        self.residuals, self.treedef = trees.flatten_deep(residuals)
        indexed_leaves = enumerate(self.residuals)
        self.traced_positions = [k for k, leaf in indexed_leaves if isinstance(leaf, Staged)]
        return [*outs, *(self.residuals[k] for k in self.traced_positions)]

    def _record_bwd(self, seeded: tuple[int, ...]) -> Traced:
        types = self.forward.result_types
        outs = len(self.callee.result_types)
        residuals = types[outs:]
        ct_types = [LeafType(types[k].type, weak=self.callee.result_types[k].weak) for k in seeded]
        wrt: list[int] = []

        def run(bwd: Callable[..., Any], leaves: Sequence[Any]) -> list[Any]:
            residual_leaves = list(self.residuals)
            for position, leaf in zip(self.traced_positions, leaves, strict=False):
                residual_leaves[position] = leaf
            cts: list[Any] = [None] * outs
            for k, ct in zip(seeded, leaves[len(residuals) :], strict=True):
                cts[k] = ct
            result = bwd(
                *self.call.nondiff_args(),
                trees.unflatten(self.treedef, residual_leaves),
                trees.unflatten(self.callee.result_tree, cts),
            )
            argument_cts = self._argument_cotangents(result)
            wrt[:] = argument_cts
            return [*argument_cts.values()]

        names = [*(["a residual"] * len(residuals)), *(["a cotangent"] * len(seeded))]
        with without_effects():
            traced = self.call.trace("_bwd", self.bwd, [*residuals, *ct_types], run, names)
        refuse_effects(
            traced,
            f"{self.call.where}: bwd",
            "a backward pass may run at any time, or not at all",
            "do it in the function or in fwd.",
        )
        self.wrt.append(tuple(wrt))
        return traced

    def _argument_cotangents(self, result: Any) -> dict[int, Any]:
        """Return the cotangents that `bwd` returned, by operand."""
        call = self.call
        expected = len(call.diff_argnums)
        if not isinstance(result, (tuple, list)) or len(result) != expected:
            count_text = "1 argument" if expected == 1 else f"{expected} arguments"
            raise StructureError(
                explain(
                    f"{call.where}: bwd must return a tuple of cotangents for {count_text}, it "
                    f"returns {trees.described(result)}.",
                    cure="return one for each differentiable argument, None where it is zero; "
                    "(ct,) for one.",
                )
            )
        leaves: list[Any] = []
        for number, treedef, ct in zip(call.diff_argnums, call.trees, result, strict=True):
            if ct is None:
                leaves += [None] * treedef.num_leaves
                continue
            what = f"{call.where}: bwd's cotangent of {call.label(number)}"
            leaves += flatten_like(what, call.args[number], treedef, ct)
        cts = {}
        for k, position in enumerate(call.traced_positions):
            what = f"{call.where}: bwd's cotangent of {call.path(k)}"
            ct = coerce_cotangent(what, call.types[k], leaves[position])
            if ct is not None:
                cts[k] = ct
        return cts

    def regions(self, callee: Traced, context: RuleContext) -> tuple[list[Graph], dict[str, Any]]:
        """Return the regions of `fwd`, also with the captures that `bwd` reads, and of `bwd`."""
        body = RuleBody(self.forward, context)
        body.add_params(len(self.call.traced_positions))
        body.add_token()
        captured = body.add_captures()
        results, token = body.inline()
        outs = len(callee.result_types)
        has_bindings = [bool(backward.bindings) for backward in self.backwards]
        shared: list[Value] = captured if any(has_bindings) else []
        forward = body.b.finish([*results[:outs], *token, *results[outs:], *shared])
        backwards = [
            self._backward_region(traced, context, any(has_bindings)) for traced in self.backwards
        ]
        return [forward, *backwards], {"seeded": tuple(self.seeded), "wrt": tuple(self.wrt)}

    def _backward_region(self, traced: Traced, context: RuleContext, has_captured: bool) -> Graph:
        body = RuleBody(traced, context)
        body.add_params(len(self.traced_positions))
        if has_captured:
            body.add_captures()
        others = len(self.traced_positions) + len(traced.graph.captures) + traced.has_world
        body.add_params(len(traced.graph.params) - others)
        results, tokens = body.inline(has_own_token=True)
        for token in tokens:  # what bwd checks comes before its results
            results = [body.b.after(result, token) for result in results]
        return body.b.finish(results)


def _seeded_choices(floats: Sequence[int], symbolic_zeros: bool) -> list[tuple[int, ...]]:
    """Return the choices of results with a cotangent for which `bwd` is recorded; all first."""
    if not symbolic_zeros:
        return [tuple(floats)]
    sizes = range(len(floats), 0, -1) if len(floats) <= _MAX_EXHAUSTIVE_OUTS else (len(floats), 1)
    return [choice for size in sizes for choice in combinations(floats, size)] or [()]


class custom_vjp(CustomFunction):  # noqa: N801 - a decorator, named as in jax
    """A function whose gradient is computed by user-defined rules.

    Args:
        fun: the function.
        nondiff_argnums: the positions of arguments without a derivative; `bwd` gets them first.

    Set the rules by `defvjp`. In a trace all three are recorded as one node: a value runs `fun`
    alone, a gradient runs `fwd` and `bwd`. Called with plain arrays it is just `fun`.

    Raises:
        MissingRuleError: it is called before `defvjp`.
        NotDifferentiableError: a derivative is requested with respect to a traced value that it
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
    setter = "defvjp(fwd, bwd)"

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: int | Sequence[int] = ()) -> None:
        super().__init__(fun, nondiff_argnums)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def defvjp(
        self, fwd: Callable[..., Any], bwd: Callable[..., Any], symbolic_zeros: bool = False
    ) -> None:
        """Set the rules.

        Args:
            fwd: takes the arguments of the function, and returns `(out, residuals)`: the value of
                the function, and a pytree for `bwd`. Leaves that are not traced arrays are passed
                as they are.
            bwd: `(*nondiff arguments, residuals, ct)` → a tuple with a cotangent for each other
                argument, a pytree like it. None stands for zero, for an argument or a leaf. Leaves
                of integers have None. `ct` is like the value of the function, None for integers.
            symbolic_zeros: pass `bwd` None, not an array of zeros, for a result whose cotangent is
                known to be zero. With more than three results this happens only where all but one
                are zero.
        """
        for role, rule in (("fwd", fwd), ("bwd", bwd)):
            if not callable(rule):
                raise TypeError(f"{role} must be callable, not {rule!r}")
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    def has_rule(self) -> bool:
        return self.fwd is not None and self.bwd is not None

    def record_rule(self, call: CustomCall, callee: Traced) -> CustomRule:
        """Record `fwd`, then `bwd` on its residuals."""
        assert self.fwd is not None
        assert self.bwd is not None
        return VjpRule(self.fwd, self.bwd, self.symbolic_zeros, call, callee)
