"""Compares derivatives with finite differences, to any order, in both modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import NotDifferentiableError, explain
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
    """The derivatives of a function are what central differences measure.

    Each is compared along two random directions; derivatives of higher orders are those of the
    lower ones, in every succession of the modes.

    Args:
        f: returns a pytree of arrays; it must be smooth near `args`.
        args: a tuple of pytrees of arrays; at least one is a float.
        order: how often it is differentiated.
        modes: "fwd" for `jvp`, "rev" for `vjp`, or both.
        atol: how far a derivative may be off; None: by the precision of its numbers.
        rtol: the same relative to the size of what is added up.

    Raises:
        AssertionError: a derivative is wrong; the message says by which modes, and both numbers.
        NotDifferentiableError: no argument is a float.
        ValueError: a mode that there is not, or an order below 1.

    Example:
        >>> import wend.numpy as wnp, wend.testing
        >>> wend.testing.check_grads(lambda x: wnp.sin(x) * x, (0.5,), order=2)
    """
    if order < 1:
        raise ValueError(f"check_grads: order must be 1 or more, not {order}")
    unknown = [mode for mode in modes if mode not in MODES]
    if unknown or not modes:
        raise ValueError(f"check_grads: modes are 'fwd' and 'rev', not {modes!r}")
    if not any(_is_float(leaf) for leaf in trees.flatten(tuple(args))[0]):
        what = "check_grads: no argument is a float."
        raise NotDifferentiableError(explain(what, cure="pass floats: 3.0, not 3."))
    name = str(getattr(f, "__name__", "function"))
    _Check(name, tuple(args), tuple(modes), atol, rtol).run(f, order, "")


@dataclass(frozen=True, slots=True)
class _Check:
    name: str
    args: tuple[Any, ...]
    modes: tuple[str, ...]
    atol: float | None
    rtol: float | None

    def run(self, f: Callable[..., Any], order: int, path: str) -> None:
        rng, args = np.random.default_rng(order), self.args
        ct = trees.tree_map(lambda x: _noise(rng, x), f(*args))
        tangents: Any = None
        for _ in range(2):
            tangents = trees.tree_map(lambda x: _noise(rng, x), args)
            measured, blur = self._measure(f, tangents, ct)
            for mode in self.modes:
                found = (
                    _pair(ct, jvp(f, args, tangents)[1])
                    if mode == "fwd"
                    else _pair(tangents, vjp(f, *args)[1](ct))
                )
                self._compare(path + mode, found, measured, blur)
        if order == 1:
            return
        for mode in self.modes:
            derivative = _forward(f, tangents) if mode == "fwd" else _reverse(f, ct)
            self.run(derivative, order - 1, f"{path}{mode}, then ")

    def _measure(self, f: Callable[..., Any], tangents: Any, ct: Any) -> tuple[float, float]:
        """The slope of ⟨ct, f⟩ along a direction, and how far rounding may have moved it."""
        eps = self._precision(ct)
        step = eps ** (1 / 3)
        ahead, behind = (_pair(ct, f(*_moved(self.args, tangents, s))) for s in (step, -step))
        return (ahead[0] - behind[0]) / (2 * step), 10 * eps / step * ahead[1]

    def _precision(self, ct: Any) -> float:
        """The coarsest ε among the floats that take part."""
        leaves = trees.flatten((self.args, ct))[0]
        return max(
            float(np.finfo(tensor_type(leaf).dtype).eps) for leaf in leaves if _is_float(leaf)
        )

    def _compare(self, path: str, found: tuple[float, float], measured: float, blur: float) -> None:
        usual = self._precision(None) ** (1 / 3)
        atol = usual if self.atol is None else self.atol
        rtol = usual if self.rtol is None else self.rtol
        # Negated so that NaN is an error too.
        if not abs(found[0] - measured) <= atol + rtol * found[1] + blur:
            raise AssertionError(
                f"check_grads of {self.name}, by {path}: the derivative along a random direction "
                f"is {found[0]:.9g}, measured {measured:.9g}"
            )


def _forward(f: Callable[..., Any], tangents: Any) -> Callable[..., Any]:
    return lambda *args: jvp(f, args, tangents)[1]


def _reverse(f: Callable[..., Any], ct: Any) -> Callable[..., Any]:
    return lambda *args: vjp(f, *args)[1](ct)


def _is_float(leaf: Any) -> bool:
    return is_array_leaf(leaf) and tensor_type(leaf).dtype.kind in "fc"


def _noise(rng: np.random.Generator, x: Any) -> Any:
    """Random numbers like a float array; None for anything else."""
    if not _is_float(x):
        return None
    dtype, shape = np.asarray(x).dtype, np.shape(x)
    found = rng.standard_normal(shape)
    if dtype.kind == "c":
        found = found + 1j * rng.standard_normal(shape)
    return np.asarray(found, dtype)[()]


def _moved(args: tuple[Any, ...], tangents: Any, step: float) -> Any:
    leaves, treedef = trees.flatten(args)
    moves = trees.flatten_up_to(treedef, tangents)
    pairs = zip(leaves, moves, strict=True)
    return trees.unflatten(treedef, [x if t is None else x + _scaled(t, step) for x, t in pairs])


def _scaled(tangent: Any, step: float) -> Any:
    return np.asarray(tangent * step, tangent.dtype)[()]


def _pair(u: Any, v: Any) -> tuple[float, float]:
    """Re Σ u·v over two pytrees, and the size of its terms; None counts as nothing."""
    leaves, treedef = trees.flatten(v)
    terms = [
        np.real(np.multiply(a, b)).astype(float)
        for a, b in zip(trees.flatten_up_to(treedef, u), leaves, strict=True)
        if a is not None
    ]
    return float(sum(np.sum(t) for t in terms)), float(sum(np.sum(np.abs(t)) for t in terms))
