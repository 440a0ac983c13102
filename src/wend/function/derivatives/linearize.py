"""`linearize`: the value of a function, and its derivative as a linear function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wend.autodiff.linearize import Linearized
from wend.base.errors import StructureError, explain
from wend.function.derivatives.primal_point import PrimalPoint


def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of `fun` at `primals`, and a linear function that pushes tangents forward.

    The function runs once; the linear part reads what that run has kept. For a single tangent
    `jvp` is cheaper, which keeps nothing.

    Args:
        fun: returns a pytree of arrays, or with `has_aux` a pair of that and another.
        *primals: pytrees of arrays.
        has_aux: whether `fun` returns more than what is differentiated.

    Returns:
        `(value, f_lin)`, or `(value, f_lin, aux)`. `f_lin(*tangents)` takes a tangent for each
        primal, as `jvp` does, and gives that of the value. It may be called many times.

    Raises:
        StructureError, TypeMismatchError, ShapeError: from `f_lin`: tangents unlike the primals.

    Example:
        >>> import wend
        >>> value, f_lin = wend.linearize(lambda x, y: x * y, 2.0, 3.0)
        >>> f_lin(1.0, 0.5)
        np.float64(4.0)
    """
    point = PrimalPoint("linearize", fun, primals, has_aux)
    forms = point.concrete.compiled.linearize(point.moving, point.seeded)
    value, residuals, aux = point.start(forms.forward)
    linear = _LinearPart(point, forms, residuals)
    return (value, linear, aux) if has_aux else (value, linear)


class _LinearPart:
    """One run of a function, with what its linear part reads of it."""

    def __init__(self, point: PrimalPoint, forms: Linearized, residuals: list[Any]) -> None:
        self.point, self.forms = point, forms
        self.kept = [*(point.results[k] for k in point.seeded), *residuals]

    def __call__(self, *tangents: Any) -> Any:
        """Push tangents of the primals forward to the value."""
        point = self.point
        count = point.count
        if len(tangents) != count:
            cure = "pass one tangent for each primal, None for integers."
            found = f"f_lin: {count} primals and {len(tangents)} tangents."
            raise StructureError(explain(found, cure=cure))
        moved = point.apply(self.forms.linear, self.kept, point.tangents(tangents))
        flags = dict(zip(point.seeded, self.forms.connected, strict=True))
        connected = [flags.get(k, False) for k in range(len(point.results))]
        return point.tangent_of_value(connected, moved)
