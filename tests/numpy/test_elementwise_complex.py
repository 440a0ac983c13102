"""Derivatives of analytic functions of complex numbers: at their cuts, at 0 and far out."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.arrays import quiet

# The first two derivatives, of the point and of the value there, which says the side of a cut
EXACT: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "sqrt": (lambda z, w: 1 / (2 * w), lambda z, w: -1 / (4 * z * w)),
    "log": (lambda z, w: 1 / z, lambda z, w: -1 / z**2),
    "log1p": (lambda z, w: 1 / (1 + z), lambda z, w: -1 / (1 + z) ** 2),
    "reciprocal": (lambda z, w: -1 / z**2, lambda z, w: 2 / z**3),
    "arctan": (lambda z, w: 1 / (1 + z * z), lambda z, w: -2 * z / (1 + z * z) ** 2),
    "arctanh": (lambda z, w: 1 / (1 - z * z), lambda z, w: 2 * z / (1 - z * z) ** 2),
    "arcsin": (lambda z, w: 1 / side(1 - z * z, mp.cos(w)), lambda z, w: 0),
    "arccos": (lambda z, w: -1 / side(1 - z * z, mp.sin(w)), lambda z, w: 0),
    "arcsinh": (lambda z, w: 1 / side(1 + z * z, mp.cosh(w)), lambda z, w: 0),
    "arccosh": (lambda z, w: 1 / side(z * z - 1, mp.sinh(w)), lambda z, w: 0),
}
EXACT |= {
    name: (first, lambda z, w, first=first, s=s: s * z * first(z, w) ** 3)
    for (name, (first, _)), s in zip(list(EXACT.items())[6:], (1, 1, -1, -1), strict=True)
}
ZEROS = (0.0, -0.0)
PARTS = [(*ZEROS, 0.5, 1.0, -1.0, 2.0, -2.0, 1e8, 1e-160, 1e160), (*ZEROS, 0.5, -2.0, -1e8, -1e160)]
POINTS = np.array([complex(*parts) for parts in itertools.product(*PARTS)])


def side(square: Any, near: Any) -> Any:
    """The root of a square that is next to a number."""
    root = mp.sqrt(square)
    return -root if abs(root - near) > abs(root + near) else root


def exact(derivative: Callable[[Any, Any], Any], z: complex, w: complex) -> complex:
    with mp.workdps(500):
        try:
            return complex(derivative(mp.mpc(z), mp.mpc(w)))
        except ZeroDivisionError:
            return complex("nan")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("name", EXACT)
def test_derivatives_at_cuts_and_extremes(name: str, backend: str) -> None:
    ones = np.ones_like(POINTS)

    def push(f: Any) -> Any:
        return lambda z: wend.jvp(f, (z,), (ones,))[1]

    def pull(f: Any) -> Any:
        return lambda z: wend.vjp(f, z)[1](ones)[0]

    values = quiet(lambda: getattr(np, name)(POINTS))
    function = getattr(wnp, name)
    for order, modes in ((1, [(push,), (pull,)]), (2, [(push, push), (pull, push)])):
        expected = np.array(
            [exact(EXACT[name][order - 1], *pair) for pair in zip(POINTS, values, strict=True)]
        )
        is_known = np.isfinite(expected) & (abs(expected) < 1e290)
        for inner, *outer in modes:
            derivative = outer[0](inner(function)) if outer else inner(function)
            with wend.config(backend=backend):
                run = wend.function(derivative)
                found = quiet(functools.partial(run, POINTS))
            with np.errstate(invalid="ignore"):
                near = abs(found - expected) <= 1e-10 * abs(expected) + 1e-290
            wrong = np.flatnonzero(is_known & ~near)
            assert not wrong.size, [(POINTS[k], found[k], expected[k]) for k in wrong[:5]]
