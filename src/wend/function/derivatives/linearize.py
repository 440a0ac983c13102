"""`linearize`: the value of a function, and its derivative as a linear function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wend.autodiff.linearize import Linearized
from wend.base.errors import StructureError, explain
from wend.function.derivatives.primal_point import PrimalPoint


def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return the value of `fun` at `primals`, and a linear function that pushes tangents forward.

    The function runs once; the linear part reads the residuals of that run. For a single tangent
    `jvp` is cheaper, which keeps no residuals.

    Args:
        fun: returns a pytree of arrays, or with `has_aux` a pair of that and another pytree.
        *primals: pytrees of arrays.
        has_aux: whether `fun` returns auxiliary data after the differentiated value.

    Returns:
        `(value, f_lin)`, or `(value, f_lin, aux)`. `f_lin(*tangents)` takes a tangent for each
        primal, as `jvp` does, and returns that of the value. It may be called many times.

    Raises:
        StructureError, TypeMismatchError, ShapeError: from `f_lin`, if tangents do not fit the
            primals.

    Example:
        >>> import wend
        >>> value, f_lin = wend.linearize(lambda x, y: x * y, 2.0, 3.0)
        >>> f_lin(1.0, 0.5)
        np.float64(4.0)
    """
    point = PrimalPoint("linearize", fun, primals, has_aux)
    linearized = point.concrete.compiled.linearize(point.wrt, point.seeded)
    value, residuals, aux = point.run_forward(linearized.forward)
    linear_part = _LinearPart(point, linearized, residuals)
    return (value, linear_part, aux) if has_aux else (value, linear_part)


class _LinearPart:
    """The linear part of a function, with the residuals of one run."""

    def __init__(self, point: PrimalPoint, linearized: Linearized, residuals: list[Any]) -> None:
        self.point, self.linearized = point, linearized
        self.residuals = [*(point.results[k] for k in point.seeded), *residuals]

    def __call__(self, *tangents: Any) -> Any:
        """Push tangents of the primals forward to the value."""
        point = self.point
        count = point.primal_count
        if len(tangents) != count:
            cure = "pass one tangent for each primal, None for integers."
            problem = f"f_lin: {count} primals and {len(tangents)} tangents."
            raise StructureError(explain(problem, cure=cure))
        result_tangents = point.run_linear(
            self.linearized.linear, self.residuals, point.tangent_leaves(tangents)
        )
        connected_results = dict(zip(point.seeded, self.linearized.connected, strict=True))
        connected = [connected_results.get(k, False) for k in range(len(point.results))]
        return point.value_tangent(connected, result_tangents)
