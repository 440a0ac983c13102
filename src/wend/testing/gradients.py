"""Checks of derivatives against finite differences, to any order, in both modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import NotDifferentiableError, explain
from wend.base.lazy.dataclass import dataclass
from wend.eager.promotion import tensor_type
from wend.function.derivatives.jvp import jvp
from wend.function.derivatives.vjp import vjp
from wend.trace.recording.arguments import is_array_leaf

MODES = ("fwd", "rev")


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    modes: Sequence[str] = MODES,
    atol: float | None = None,
    rtol: float | None = None,
) -> None:
    """Check the derivatives of a function against central differences.

    Each derivative is compared along two random directions. Derivatives of higher order are taken
    of those of lower order, for every sequence of modes.

    Args:
        f: returns a pytree of arrays; it must be smooth near `args`.
        args: a tuple of pytrees of arrays; at least one is a float.
        order: the maximum order of the derivatives.
        modes: "fwd" for `jvp`, "rev" for `vjp`, or both.
        atol: the absolute tolerance; None: by the precision of the dtypes.
        rtol: the tolerance relative to the sum of absolute terms.

    Raises:
        AssertionError: a derivative is wrong; the message has the modes and both numbers.
        NotDifferentiableError: no argument is a float.
        ValueError: an unknown mode, or an order below 1.

    Example:
        >>> import wend.numpy as wnp, wend.testing
        >>> wend.testing.check_grads(lambda x: wnp.sin(x) * x, (0.5,), order=2)
    """
    if order < 1:
        raise ValueError(f"check_grads: order must be 1 or more, not {order}")
    unknown = [mode for mode in modes if mode not in MODES]
    if unknown or not modes:
        raise ValueError(f"check_grads: modes are 'fwd' and 'rev', not {modes!r}")
    if not any(_is_float(leaf) for leaf in trees.flatten_deep(tuple(args))[0]):
        what = "check_grads: no argument is a float."
        raise NotDifferentiableError(explain(what, cure="pass floats: 3.0, not 3."))
    name = str(getattr(f, "__name__", "function"))
    _GradientCheck(name, tuple(args), tuple(modes), atol, rtol).run(f, order, "")


@dataclass(frozen=True, slots=True)
class _GradientCheck:
    name: str
    args: tuple[Any, ...]
    modes: tuple[str, ...]
    atol: float | None
    rtol: float | None

    def run(self, f: Callable[..., Any], order: int, path: str) -> None:
        rng, args = np.random.default_rng(order), self.args
        ct = trees.map_deep(lambda x: _random_like(rng, x), f(*args))
        tangents: Any = None
        for _ in range(2):
            tangents = trees.map_deep(lambda x: _random_like(rng, x), args)
            measured, rounding = self._measure(f, tangents, ct)
            for mode in self.modes:
                derivative = (
                    _inner_product(ct, jvp(f, args, tangents)[1])
                    if mode == "fwd"
                    else _inner_product(tangents, vjp(f, *args)[1](ct))
                )
                self._compare(path + mode, derivative, measured, rounding)
        if order == 1:
            return
        for mode in self.modes:
            next_f = _forward(f, tangents) if mode == "fwd" else _reverse(f, ct)
            self.run(next_f, order - 1, f"{path}{mode}, then ")

    def _measure(self, f: Callable[..., Any], tangents: Any, ct: Any) -> tuple[float, float]:
        """Return the slope of ⟨ct, f⟩ along a direction, and a bound on its rounding error."""
        eps = self._precision(ct)
        step = eps ** (1 / 3)
        forward, backward = (
            _inner_product(ct, f(*_step_along(self.args, tangents, s))) for s in (step, -step)
        )
        return (forward[0] - backward[0]) / (2 * step), 10 * eps / step * forward[1]

    def _precision(self, ct: Any) -> float:
        """Return the coarsest ε among the float dtypes."""
        leaves = trees.flatten_deep((self.args, ct))[0]
        return max(
            float(np.finfo(tensor_type(leaf).dtype).eps) for leaf in leaves if _is_float(leaf)
        )

    def _compare(
        self, path: str, derivative: tuple[float, float], measured: float, rounding: float
    ) -> None:
        default_tol = self._precision(None) ** (1 / 3)
        atol = default_tol if self.atol is None else self.atol
        rtol = default_tol if self.rtol is None else self.rtol
        # Negated so that NaN is an error too.
        if not abs(derivative[0] - measured) <= atol + rtol * derivative[1] + rounding:
            raise AssertionError(
                f"check_grads of {self.name}, by {path}: the derivative along a random direction "
                f"is {derivative[0]:.9g}, measured {measured:.9g}"
            )


def _forward(f: Callable[..., Any], tangents: Any) -> Callable[..., Any]:
    return lambda *args: jvp(f, args, tangents)[1]


def _reverse(f: Callable[..., Any], ct: Any) -> Callable[..., Any]:
    return lambda *args: vjp(f, *args)[1](ct)


def _is_float(leaf: Any) -> bool:
    return is_array_leaf(leaf) and tensor_type(leaf).dtype.kind in "fc"


def _random_like(rng: np.random.Generator, x: Any) -> Any:
    """Return random numbers like a float array; None for anything else."""
    if not _is_float(x):
        return None
    dtype, shape = np.asarray(x).dtype, np.shape(x)
    values = rng.standard_normal(shape)
    if dtype.kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return np.asarray(values, dtype)[()]


def _step_along(args: tuple[Any, ...], tangents: Any, step: float) -> Any:
    leaves, treedef = trees.flatten_deep(args)
    flat_tangents = trees.flatten_up_to(treedef, tangents)
    pairs = zip(leaves, flat_tangents, strict=True)
    return trees.unflatten(treedef, [x if t is None else x + _scaled(t, step) for x, t in pairs])


def _scaled(tangent: Any, step: float) -> Any:
    return np.asarray(tangent * step, tangent.dtype)[()]


def _inner_product(u: Any, v: Any) -> tuple[float, float]:
    """Return Re Σ u·v over two pytrees and the sum of absolute terms; None counts as 0."""
    leaves, treedef = trees.flatten_deep(v)
    terms = [
        np.real(np.multiply(a, b)).astype(float)
        for a, b in zip(trees.flatten_up_to(treedef, u), leaves, strict=True)
        if a is not None
    ]
    return float(sum(np.sum(t) for t in terms)), float(sum(np.sum(np.abs(t)) for t in terms))
