"""`custom_jvp`: functions with a user-defined forward-mode rule, as in `jax`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from wend.base import trees
from wend.eager.promotion import as_array
from wend.function.rules.custom_call import CustomCall
from wend.function.rules.custom_leaves import as_pair, coerce_tangents, coerce_value
from wend.function.rules.rule_body import RuleBody, RuleContext
from wend.function.rules.rule_recording import CustomFunction, CustomRule
from wend.ir.graph import Graph
from wend.ir.types import is_differentiable
from wend.ops import custom as ops
from wend.trace.traced import Traced


class JvpRule(CustomRule):
    """A recorded jvp."""

    def __init__(self, jvp: Callable[..., Any], call: CustomCall, callee: Traced) -> None:
        self.call, self.callee = call, callee
        self.wrt = tuple(k for k, type in enumerate(call.types) if is_differentiable(type.type))
        self.tangent_outs: tuple[int, ...] = ()
        count = len(call.types)
        types = [*call.types, *(call.types[k] for k in self.wrt)]
        names = [f"argument {call.path(k)}" for k in range(count)]
        names += [f"the tangent of {call.path(k)}" for k in self.wrt]
        self.jvp = call.trace("_jvp", jvp, types, self._run_jvp, names)
        self.traces = [self.jvp]

    def _run_jvp(self, jvp: Callable[..., Any], leaves: Sequence[Any]) -> list[Any]:
        """Return the leaves of out, then those leaves of its tangent that are not None."""
        call, count = self.call, len(self.call.types)
        tangents: list[Any] = [None] * count
        for k, tangent in zip(self.wrt, leaves[count:], strict=True):
            tangents[k] = tangent
        result = jvp(
            *call.nondiff_args(),
            call.diff_args(leaves[:count]),
            call.diff_args(tangents, with_untraced=False),
        )
        what = f"{call.where}: jvp"
        out, tangent_out = as_pair(what, result, "tangent_out", "nothing moves")
        outs = coerce_value(what, self.callee, out)
        leaf_tangents = coerce_tangents(what, self.callee, tangent_out)
        self.tangent_outs = tuple(leaf_tangents)
        return [*outs, *leaf_tangents.values()]

    def regions(self, callee: Traced, context: RuleContext) -> tuple[list[Graph], dict[str, Any]]:
        """Return the region of the jvp, whose tangents come after all of the callee's params."""
        body = RuleBody(self.jvp, context)
        body.add_params(len(self.call.types))
        tangents = body.deferred_params(len(self.wrt))
        body.add_token()
        body.add_captures()
        body.b.params += tangents
        results, token = body.inline()
        outs = len(callee.result_types)
        jvp = body.b.finish([*results[:outs], *token, *results[outs:]])
        return [jvp], {"wrt": self.wrt, "moved": self.tangent_outs}


class custom_jvp(CustomFunction):  # noqa: N801 - a decorator, named as in jax
    """A function with a user-defined derivative rule for both modes.

    Args:
        fun: the function.
        nondiff_argnums: the positions of arguments without a derivative; the rule gets them first.

    Set the rule by `defjvp` or `defjvps`. Reverse mode transposes it, so it must be linear in the
    tangents. Called with plain arrays it is just `fun`.

    Raises:
        MissingRuleError: it is called before `defjvp`.
        NotDifferentiableError: the rule is not linear in its tangents, or a derivative is requested
            with respect to a traced value that it closes over, or a nondiff argument.

    Example:
        >>> import wend, wend.numpy as wnp
        >>> @wend.custom_jvp
        ... def log1pexp(x):
        ...     return wnp.log(1.0 + wnp.exp(x))
        >>> log1pexp.defjvps(lambda t, y, x: t * (1.0 - 1.0 / (1.0 + wnp.exp(x))))
        >>> wend.grad(log1pexp)(100.0)
        np.float64(1.0)
    """

    op = ops.custom_jvp
    setter = "defjvp(jvp)"

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: int | Sequence[int] = ()) -> None:
        super().__init__(fun, nondiff_argnums)
        self.jvp: Callable[..., Any] | None = None

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> None:
        """Set the rule.

        Args:
            jvp: `(*nondiff arguments, primals, tangents)` → `(out, tangent_out)`. `primals` and
                `tangents` are tuples with an entry for each other argument; a tangent of integers
                is None. `tangent_out` is like `out`; None stands for zero, as a whole or for a
                leaf, and for leaves of integers.
            symbolic_zeros: not built yet.
        """
        if not callable(jvp):
            raise TypeError(f"jvp must be callable, not {jvp!r}")
        if symbolic_zeros:
            raise NotImplementedError("defjvp(symbolic_zeros=True) is not built yet")
        self.jvp = jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set a rule for each argument: `(tangent, out, *primals)` → its part of the tangent.

        Args:
            *jvps: one for each argument; None where the derivative is zero.
        """
        if self.nondiff_argnums:
            raise TypeError("defjvps does not go with nondiff_argnums; use defjvp")
        for jvp in jvps:
            if jvp is not None and not callable(jvp):
                raise TypeError(f"a jvp must be callable or None, not {jvp!r}")
        self.jvp = _sum_rule(self, jvps)

    def has_rule(self) -> bool:
        return self.jvp is not None

    def record_rule(self, call: CustomCall, callee: Traced) -> CustomRule:
        """Record the jvp."""
        assert self.jvp is not None
        return JvpRule(self.jvp, call, callee)


def _sum_rule(owner: custom_jvp, jvps: Sequence[Callable[..., Any] | None]) -> Callable[..., Any]:
    """Return one rule that adds up the rules of the arguments."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        if len(jvps) != len(primals):
            raise TypeError(
                f"{owner.name}: defjvps was given rules for {len(jvps)} of {len(primals)} arguments"
            )
        out = owner(*primals)
        tangent_parts = [
            rule(tangent, out, *primals)
            for rule, tangent in zip(jvps, tangents, strict=True)
            if rule is not None and trees.flatten_deep(tangent)[0]
        ]
        if not tangent_parts:
            return out, None
        return out, trees.map_deep(lambda *parts: functools.reduce(_add, parts), *tangent_parts)

    return jvp


def _add(x: Any, y: Any) -> Any:
    return as_array(x) + as_array(y)
