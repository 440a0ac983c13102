"""`vjp`: the value of a function, and a function that pulls cotangents back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wend.base import trees
from wend.function.point import Point, zeros_like


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of `fun` at `primals`, and a function that pulls cotangents back to them.

    Args:
        fun: returns a pytree of arrays, or with `has_aux` a pair of that and another.
        *primals: pytrees of arrays.
        has_aux: whether `fun` returns more than what is differentiated.

    Returns:
        `(value, pullback)`, or `(value, pullback, aux)`. `pullback(cotangent)` takes a pytree like
        the value, and gives a tuple with a cotangent for each primal: zeros where nothing
        depends on it, None for integers. It may be called many times.

    Example:
        >>> import wend
        >>> value, pullback = wend.vjp(lambda x, y: x * y, 2.0, 3.0)
        >>> pullback(1.0)
        (np.float64(3.0), np.float64(2.0))
    """
    point = Point("vjp", fun, primals, has_aux)
    forms = point.concrete.vjp(point.moving, point.seeded)
    value, residuals, aux = point.start(forms.forward)
    pullback = _Pullback(point, forms.backward, forms.connected, residuals)
    return (value, pullback, aux) if has_aux else (value, pullback)


class _Pullback:
    """One run of a forward graph, with what its backward graph needs."""

    def __init__(
        self, point: Point, backward: Any, connected: tuple[bool, ...], residuals: list[Any]
    ) -> None:
        self.point, self.backward, self.residuals = point, backward, residuals
        self.connected = dict(zip(point.moving, connected, strict=True))

    def __call__(self, cotangent: Any) -> tuple[Any, ...]:
        """Pull a cotangent of the value back to the primals."""
        point = self.point
        found = iter(point.apply(self.backward, self.residuals, point.seeds(cotangent)))
        primals = point.primals
        cts: list[Any] = [None] * len(primals.leaves)
        for k, place in enumerate(primals.places):
            if k in self.connected:
                cts[place] = next(found) if self.connected[k] else zeros_like(primals.arrays[k])
        args, _ = trees.unflatten(primals.treedef, cts)
        return tuple(args)
