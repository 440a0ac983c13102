"""Polynomials as vectors of coefficients, highest power first."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.numpy import shaping
from wend.numpy.calculus import convolve
from wend.numpy.creating import zeros_like
from wend.numpy.joining import atleast_1d
from wend.numpy.operands import all_staged, staged, strong
from wend.numpy.public import implements
from wend.numpy.shaping import known_size


@implements(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    """Evaluate a polynomial at specific values, by Horner's rule; see `numpy.polyval`."""
    x, p = strong(x), atleast_1d(staged(p))
    value: Any = zeros_like(x)
    for k in range(known_size(p, 0, "polyval")):
        value = value * x + p[k]
    return value


@implements(np.polyadd)
def polyadd(a1: Any, a2: Any) -> Any:
    """Find the sum of two polynomials; see `numpy.polyadd`."""
    first, second = _aligned(a1, a2)
    return first + second


@implements(np.polysub)
def polysub(a1: Any, a2: Any) -> Any:
    """Return the difference of two polynomials; see `numpy.polysub`."""
    first, second = _aligned(a1, a2)
    return first - second


def _aligned(a1: Any, a2: Any) -> list[Any]:
    rows = [atleast_1d(x) for x in all_staged((a1, a2))]
    sizes = [known_size(x, 0, "the sum of polynomials") for x in rows]
    return [shaping.pad(x, (max(sizes) - n, 0)) for x, n in zip(rows, sizes, strict=True)]


@implements(np.polymul)
def polymul(a1: Any, a2: Any) -> Any:
    """Find the product of two polynomials; see `numpy.polymul`.

    Leading zeros of traced polynomials are not trimmed.
    """
    return convolve(*(_nonempty(atleast_1d(staged(x))) for x in (a1, a2)))


def _nonempty(p: Any) -> Any:
    """Return the coefficients; those of the polynomial 0 if there are none."""
    return p if known_size(p, 0, "polymul") else shaping.pad(p, (1, 0))


@implements(np.polyder)
def polyder(p: Any, m: int = 1) -> Any:
    """Return the derivative of the specified order of a polynomial; see `numpy.polyder`."""
    p = staged(p)
    for _ in range(m):
        powers = np.arange(known_size(p, 0, "polyder") - 1, 0, -1)
        p = p[:-1] * powers
    return p


@implements(np.polyint)
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """Return an antiderivative (indefinite integral) of a polynomial; see `numpy.polyint`."""
    p = staged(p)
    constants = [0.0] * m if k is None else [k] if np.ndim(k) == 0 else list(k)
    constants = constants * m if len(constants) == 1 else constants
    for constant in constants[:m]:
        powers = np.arange(known_size(p, 0, "polyint"), 0, -1)
        p = shaping.concatenate([p / powers, shaping.reshape(staged(constant), (1,))])
    return p
