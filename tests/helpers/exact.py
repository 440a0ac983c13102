"""Derivatives by mpmath: central differences in as many bits as it takes.

Neither rules nor formulas are repeated: only the function itself is known.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import mpmath as mp
import numpy as np

Exact = Callable[..., Any]
# Steps of 2⁻ˢ with p bits. Two levels that agree are right: a step too long, or a precision too
# low for a tail, gives other digits.
LEVELS = [(40, 240), (60, 340), (240, 1300), (600, 3300), (600, 6000)]
AGREEMENT = 1e-14


class Partials:
    """The partial derivatives of a function at a point, up to the third order.

    `is_singular`: steps are relative near 0, where the function has a singularity.
    """

    def __init__(self, fun: Exact, point: Sequence[float], *, is_singular: bool) -> None:
        self.fun, self.point, self.is_singular = fun, [float(x) for x in point], is_singular
        self._values: dict[Any, Any] = {}

    def __call__(self, counts: Sequence[int]) -> float:
        """The derivative, `counts` times by each argument; NaN where mpmath has none.

        It is 0 if all levels say so: in a tail, the first ones have too few bits.
        """
        last = np.nan
        for level in range(len(LEVELS)):
            value = self._difference(level, counts)
            if value and (value == last or abs(value - last) <= AGREEMENT * abs(value)):
                return value
            last = value
        return np.nan if last else 0.0

    def _difference(self, level: int, counts: Sequence[int]) -> float:
        step, bits = LEVELS[level]
        with mp.workprec(bits):
            total = mp.mpf(0)
            try:
                for place in itertools.product(*(range(n + 1) for n in counts)):
                    terms = zip(place, counts, strict=True)
                    weight = mp.fprod((-1) ** k * mp.binomial(n, k) for k, n in terms)
                    moves = tuple(n - 2 * k for k, n in zip(place, counts, strict=True))
                    total += weight * self._value(level, moves)
                sizes = [self._step(x, step) for x in self.point]
                value = total / mp.fprod((2 * h) ** n for h, n in zip(sizes, counts, strict=True))
                return float(mp.re(value)) if mp.im(value) == 0 else np.nan
            except (ValueError, ZeroDivisionError, OverflowError):
                return np.nan

    def _step(self, x: float, step: int) -> Any:
        is_relative = self.is_singular and 0 < abs(x) < 1
        return mp.ldexp(mp.mpf(abs(x)) if is_relative else mp.mpf(1), -step)

    def _value(self, level: int, moves: tuple[int, ...]) -> Any:
        if (level, moves) not in self._values:
            steps = [self._step(x, LEVELS[level][0]) for x in self.point]
            places = zip(self.point, steps, moves, strict=True)
            self._values[level, moves] = self.fun(*(mp.mpf(x) + n * h for x, h, n in places))
        return self._values[level, moves]


def partials(fun: Exact, points: Sequence[Sequence[float]], *, is_singular: bool) -> Callable:
    """Return `counts -> array`, the partial derivatives at points."""
    each = [Partials(fun, point, is_singular=is_singular) for point in points]

    @functools.cache
    def at_points(counts: tuple[int, ...]) -> np.ndarray:
        return np.array([one(counts) for one in each])

    return at_points
