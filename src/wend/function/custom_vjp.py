"""`custom_vjp`: a function with a reverse-mode rule of the user's own; as in `jax`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from wend.base.errors import MissingRuleError, explain
from wend.function.custom_call import CustomCall
from wend.function.rule_recording import Owner, Rule, record
from wend.function.vjp_rule import VjpRule
from wend.ops import custom as ops
from wend.trace.recording import current
from wend.trace.traced import Traced


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
