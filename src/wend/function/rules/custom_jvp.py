"""`custom_jvp`: a function with a forward-mode rule of the user's own; as in `jax`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from wend.base import trees
from wend.base.errors import MissingRuleError, StructureError, explain
from wend.eager.promotion import as_array
from wend.function.rules.custom_call import CustomCall
from wend.function.rules.custom_leaves import like_out, like_tangents
from wend.function.rules.rule_body import Frame, RuleBody
from wend.function.rules.rule_recording import Owner, Rule, record
from wend.ir.graph import Graph
from wend.ir.types import is_differentiable
from wend.ops import custom as ops
from wend.trace.recording.recording import current
from wend.trace.traced import Traced


class JvpRule(Rule):
    """A recorded jvp."""

    def __init__(self, jvp: Callable[..., Any], call: CustomCall, callee: Traced) -> None:
        self.call, self.callee = call, callee
        self.wrt = tuple(k for k, type in enumerate(call.types) if is_differentiable(type.type))
        self.moved: tuple[int, ...] = ()
        count = len(call.types)
        types = [*call.types, *(call.types[k] for k in self.wrt)]
        names = [f"argument {call.path(k)}" for k in range(count)]
        names += [f"the tangent of {call.path(k)}" for k in self.wrt]
        self.jvp = call.trace("_jvp", jvp, types, self._run_jvp, names)
        self.traces = [self.jvp]

    def _run_jvp(self, jvp: Callable[..., Any], leaves: Sequence[Any]) -> list[Any]:
        """The leaves of out, then those of its tangent that there are."""
        call, count = self.call, len(self.call.types)
        tangents: list[Any] = [None] * count
        for k, tangent in zip(self.wrt, leaves[count:], strict=True):
            tangents[k] = tangent
        result = jvp(
            *call.kept_as_they_are(),
            call.differentiable(leaves[:count]),
            call.differentiable(tangents, others=False),
        )
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise StructureError(
                explain(
                    f"{call.where}: jvp must return a pair (out, tangent_out), it returns "
                    f"{trees.described(result)}.",
                    cure="return (out, tangent_out); (out, None) where nothing moves.",
                )
            )
        outs = like_out(f"{call.where}: jvp", self.callee, result[0])
        moved = like_tangents(f"{call.where}: jvp", self.callee, result[1])
        self.moved = tuple(moved)
        return [*outs, *moved.values()]

    def regions(self, callee: Traced, frame: Frame) -> tuple[list[Graph], dict[str, Any]]:
        """The tangents come behind all that the callee is given."""
        body = RuleBody(self.jvp, frame)
        body.take(len(self.call.types))
        tangents = body.ahead(len(self.wrt))
        body.world()
        body.captured()
        body.b.params += tangents
        results, world = body.run()
        outs = len(callee.result_types)
        jvp = body.b.finish([*results[:outs], *world, *results[outs:]])
        return [jvp], {"wrt": self.wrt, "moved": self.moved}


class custom_jvp(Owner):  # noqa: N801 - a decorator, named as in jax
    """A function whose derivative is computed by a rule of your own, in both modes.

    Args:
        fun: the function.
        nondiff_argnums: positions of arguments that have no derivative; the rule gets them first.

    Set the rule by `defjvp` or `defjvps`. Reverse mode runs it transposed: it must be linear in
    the tangents. Called with plain arrays it is just `fun`.

    Raises:
        MissingRuleError: it is called before `defjvp`.
        NotDifferentiableError: the rule is not linear in its tangents, or a derivative is asked
            for with respect to a traced value that it closes over, or a nondiff argument.

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

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: int | Sequence[int] = ()) -> None:
        if not callable(fun):
            raise TypeError(f"custom_jvp takes a function, not {fun!r}")
        self.fun = fun
        self.name = str(getattr(fun, "__name__", "function"))
        self.nondiff_argnums = (
            (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        )
        self.jvp: Callable[..., Any] | None = None
        functools.update_wrapper(self, fun, updated=())

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
        """Set a rule for each argument: `(tangent, out, *primals)` → its share of the tangent.

        Args:
            *jvps: one for each argument; None where the derivative is zero.
        """
        if self.nondiff_argnums:
            raise TypeError("defjvps does not go with nondiff_argnums; use defjvp")
        for jvp in jvps:
            if jvp is not None and not callable(jvp):
                raise TypeError(f"a jvp must be callable or None, not {jvp!r}")
        self.jvp = _sum_of(self, jvps)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.jvp is None:
            raise MissingRuleError(
                explain(
                    f"{self.name} is a custom_jvp without a rule.",
                    cure=f"set one: {self.name}.defjvp(jvp).",
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
        return f"<wend.custom_jvp {self.name}>"

    def record_rule(self, call: CustomCall, callee: Traced) -> Rule:
        """Record the jvp."""
        assert self.jvp is not None
        return JvpRule(self.jvp, call, callee)


def _sum_of(owner: custom_jvp, jvps: Sequence[Callable[..., Any] | None]) -> Callable[..., Any]:
    """One rule of rules for each argument."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        if len(jvps) != len(primals):
            raise TypeError(
                f"{owner.name}: defjvps was given rules for {len(jvps)} of {len(primals)} arguments"
            )
        out = owner(*primals)
        shares = [
            rule(tangent, out, *primals)
            for rule, tangent in zip(jvps, tangents, strict=True)
            if rule is not None and trees.flatten(tangent)[0]
        ]
        if not shares:
            return out, None
        return out, trees.tree_map(lambda *parts: functools.reduce(_add, parts), *shares)

    return jvp


def _add(x: Any, y: Any) -> Any:
    return as_array(x) + as_array(y)
