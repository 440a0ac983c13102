"""Every elementwise function's derivatives against mpmath: orders 1 to 3, in all modes.

`exact` computes them by central differences with thousands of bits, so neither rules nor formulas
are repeated here. Without `-m slow` a few points of each function are checked.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.arrays import quiet, reach
from wend.numpy import special

BITS = 3300  # enough for three differences of steps of 2⁻⁶⁰⁰
STEP = 600
RELATIVE, SMALLEST = 1e-10, 1e-290

ORDINARY = [0.3, -0.9, 1.5, -2.0, 0.0, 7.0, -0.3, 0.7, 0.97, 1.0, -1.0, 0.5, -0.5, -1.7, 2.0]
ORDINARY += [3.3, -4.1, -7.5, 12.0, -13.0, 25.0, -26.0, 40.0]
EXTREME = [1e-8, -1e-20, 60.0, -1e4, 1e22, 1e-3, -1e-5, 1e-12, -1e-90, -60.0, 100.0, -120.0]
EXTREME += [300.0, -300.0, 1e6, -1e8, 1e40, -1e90]
ALL = [x for pair in itertools.zip_longest(ORDINARY, EXTREME) for x in pair if x is not None]
POSITIVE = [x for x in ALL if x > 0]
NONZERO = [x for x in ALL if x]
UNIT = [*(x for x in ALL if -1 < x < 1), 0.999999, -0.99999, 1 - 1e-8, 1 - 1e-12]
FRACTIONS = [x for x in UNIT if x > 0]
MODERATE = [x for x in ALL if abs(x) < 500]
GAMMA = [x for x in ALL if abs(x) < 200 and not (x <= 0 and x == int(x))]

Exact = Callable[..., Any]
UNARY: dict[str, tuple[Exact, Sequence[float]]] = {
    "sqrt": (mp.sqrt, POSITIVE),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), NONZERO),
    "exp": (mp.exp, MODERATE),
    "exp2": (lambda x: mp.mpf(2) ** x, MODERATE),
    "expm1": (mp.expm1, MODERATE),
    "log": (mp.log, POSITIVE),
    "log2": (lambda x: mp.log(x) / mp.log(2), POSITIVE),
    "log10": (lambda x: mp.log(x) / mp.log(10), POSITIVE),
    "log1p": (lambda x: mp.log(1 + x), [x for x in ALL if x > -1]),
    "sin": (mp.sin, ALL),
    "cos": (mp.cos, ALL),
    "tan": (mp.tan, ALL),
    "arcsin": (mp.asin, UNIT),
    "arccos": (mp.acos, UNIT),
    "arctan": (mp.atan, ALL),
    "sinh": (mp.sinh, MODERATE),
    "cosh": (mp.cosh, MODERATE),
    "tanh": (mp.tanh, ALL),
    "arcsinh": (mp.asinh, ALL),
    "arccosh": (mp.acosh, [*(x for x in ALL if x > 1), 1 + 1e-8]),
    "arctanh": (mp.atanh, UNIT),
    "reciprocal": (lambda x: 1 / x, NONZERO),
    "square": (lambda x: x * x, ALL),
    "absolute": (abs, NONZERO),
    "sinc": (lambda x: mp.sincpi(x), [x for x in MODERATE if abs(x) <= 60]),
    "special.erf": (mp.erf, ALL),
    "special.erfc": (mp.erfc, MODERATE),
    "special.erfinv": (mp.erfinv, UNIT),
    "special.erfcinv": (lambda x: mp.erfinv(1 - x), [*FRACTIONS[:6], 1.3, 1.9]),
    "special.ndtr": (lambda x: mp.erfc(-x / mp.sqrt(2)) / 2, MODERATE),
    "special.ndtri": (lambda x: mp.sqrt(2) * mp.erfinv(2 * x - 1), FRACTIONS[:8]),
    "special.log_ndtr": (lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2), ALL),
    "special.gamma": (mp.gamma, [x for x in GAMMA if abs(x) < 50]),
    "special.gammaln": (lambda x: mp.log(abs(mp.gamma(x))), GAMMA),
    "special.digamma": (mp.digamma, GAMMA),
    "special.i0": (lambda x: mp.besseli(0, x), MODERATE),
    "special.i1": (lambda x: mp.besseli(1, x), MODERATE),
    "special.j0": (lambda x: mp.besselj(0, x), MODERATE),
    "special.j1": (lambda x: mp.besselj(1, x), MODERATE),
    "special.expit": (lambda x: 1 / (1 + mp.exp(-x)), ALL),
    "special.logit": (lambda x: mp.log(x / (1 - x)), FRACTIONS),
    "special.log_expit": (lambda x: -mp.log(1 + mp.exp(-x)), MODERATE),
    "special.entr": (lambda x: -x * mp.log(x), POSITIVE),
}
POWERS = {2: ALL, 3: ALL, 7: MODERATE, 0: ALL, 1: ALL, -1: NONZERO, -3: NONZERO, 0.5: POSITIVE}
POWERS |= {1.5: POSITIVE, 2.5: POSITIVE}
# Steps of these are relative near 0, where they have a singularity.
SINGULAR = {"sqrt", "cbrt", "log", "log2", "log10", "reciprocal", "absolute", "power"}
SINGULAR |= {f"special.{name}" for name in ("entr", "logit", "gamma", "gammaln", "digamma")}
SINGULAR |= {"special.ndtri", "special.erfcinv", "arctan2", "hypot", "special.xlogy", "norm"}
# These are computed from their results, or are sums of exponentials: right to a last digit of 1.
ABSOLUTE = {"tanh", "logaddexp", "logaddexp2", "logsumexp", "softmax", "log_softmax"}
ABSOLUTE |= {"special.expit", "special.log_expit", "special.ndtr"}

PAIRS = [(1.0, 1.0), (0.3, 2.0), (3.0, 0.0), (0.0, 3.0), (1e-8, 1e-8), (-2.0, -2.0), (1.0, -1.0)]
PAIRS += [(0.0, -0.5), (2.0, 0.3), (1e-3, 1.0), (1e-40, 2e-40), (1e40, -2e40), (1e5, 2.0)]
PAIRS += [(5.0, 5.0), (40.0, 1.0), (-40.0, 1.0), (300.0, -5.0), (1e-20, 1.0), (0.0, 1.0)]
PAIRS += [(1.0, 0.0), (2.0, 1e5), (7.0, 7.5), (1e10, 2.0), (25.0, 26.0), (-30.0, 5.0)]
UNEQUAL = [(x, y) for x, y in PAIRS if x and abs(x) != abs(y)]
BOTH_POSITIVE = [pair for pair in PAIRS if min(pair) > 0]
BASE_POSITIVE = [(0.5, 0.0), (3.0, 1.0), (3.0, 2.0), (3.0, -2.0), (0.1, 30.0), *BOTH_POSITIVE]
# Sums that are integers below 1 are zeros of Β.
BETA = [(80.0, 2.0), (-3.5, 0.5), (0.3, 2.0), (-2.5, 1.5), (20.0, -7.3), (-0.5, 0.5)]
BETA += [(-3.5, 1.25), (7.0, 7.5), (100.0, 2.0), (77.0, 30.0), (-30.3, 110.0)]
BETA += [(0.05, 1.0), (25.0, 26.0), (1e5, 2.0), (-30.3, 5.0), (-3.5, -0.5)]
BETA += [(2.0, 80.0), (30.0, 30.0), (60.0, 0.2), (100.0, 60.0), (167.5, 0.3), (0.3, 169.0)]


def is_integer(x: float) -> bool:
    return x == int(x)


def of_two(fun: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """The function of an array, of two numbers in its first axis."""
    return lambda x, y: fun(wnp.stack([x, y]))


def log_of_sum(x: Any, y: Any) -> Any:
    return mp.log(mp.exp(x) + mp.exp(y))


BINARY: dict[str, tuple[Callable[..., Any], Exact, Sequence[tuple[float, float]]]] = {
    "multiply": (wnp.multiply, lambda x, y: x * y, PAIRS),
    "divide": (wnp.divide, lambda x, y: x / y, [p for p in PAIRS if p[1]]),
    "power": (
        wnp.power,
        lambda x, y: x**y,
        [p for p in BASE_POSITIVE if 1e-9 < p[0] < 1e9 and p[1] < 1e3],
    ),
    "arctan2": (wnp.arctan2, mp.atan2, UNEQUAL),
    "hypot": (wnp.hypot, lambda x, y: mp.sqrt(x * x + y * y), PAIRS),
    "logaddexp": (wnp.logaddexp, log_of_sum, [p for p in PAIRS if max(map(abs, p)) < 500]),
    "logaddexp2": (
        wnp.logaddexp2,
        lambda x, y: mp.log(mp.mpf(2) ** x + mp.mpf(2) ** y, 2),
        [p for p in PAIRS if max(map(abs, p)) < 500],
    ),
    "special.xlogy": (
        special.xlogy,
        lambda x, y: x * mp.log(y),
        [p for p in PAIRS if p[1] > 0],
    ),
    "special.xlog1py": (
        special.xlog1py,
        lambda x, y: x * mp.log(1 + y),
        [p for p in PAIRS if p[1] > -1],
    ),
    "special.rel_entr": (
        special.rel_entr,
        lambda x, y: x * mp.log(x / y),
        [p for p in BOTH_POSITIVE if min(p) > 1e-30],
    ),
    "special.beta": (special.beta, mp.beta, BETA),
    "special.betaln": (
        special.betaln,
        lambda x, y: mp.log(abs(mp.beta(x, y))),
        [p for p in BETA if not is_integer(sum(p)) or sum(p) > 0],
    ),
    "special.kl_div": (
        special.kl_div,
        lambda x, y: x * mp.log(x / y) - x + y,
        [p for p in BOTH_POSITIVE if min(p) > 1e-18],
    ),
    "logsumexp": (
        of_two(lambda a: special.logsumexp(a, axis=0)),
        log_of_sum,
        [p for p in PAIRS if max(map(abs, p)) < 500],
    ),
    "softmax": (
        of_two(lambda a: special.softmax(a, axis=0)[0]),
        lambda x, y: 1 / (1 + mp.exp(y - x)),
        [p for p in PAIRS if max(map(abs, p)) < 500],
    ),
    "log_softmax": (
        of_two(lambda a: special.log_softmax(a, axis=0)[0]),
        lambda x, y: -mp.log(1 + mp.exp(y - x)),
        [p for p in PAIRS if max(map(abs, p)) < 500],
    ),
    "norm": (
        of_two(lambda a: wnp.linalg.norm(a, 3, axis=0)),
        lambda x, y: mp.cbrt(abs(x) ** 3 + abs(y) ** 3),
        [(1.0, 1.0), (-2.0, -2.0), (0.3, 2.0), (1e-8, 2e-8), (5.0, -5.0)],
    ),
    "absolute of complex": (
        lambda x, y: wnp.absolute(x + 1j * y),
        lambda x, y: mp.sqrt(x * x + y * y),
        PAIRS,
    ),
    "angle of complex": (lambda x, y: wnp.angle(y + 1j * x), mp.atan2, UNEQUAL),
}


def exact(fun: Exact, point: Sequence[float], counts: Sequence[int], *, is_singular: bool) -> float:
    """A partial derivative, `counts` times by each argument; NaN where mpmath has none."""
    with mp.workprec(BITS):
        xs = [mp.mpf(float(x)) for x in point]
        steps = [
            mp.ldexp(abs(x) if is_singular and 0 < abs(x) < 1 else mp.mpf(1), -STEP) for x in xs
        ]
        total = mp.mpf(0)
        try:
            for place in itertools.product(*(range(n + 1) for n in counts)):
                terms = zip(place, counts, strict=True)
                weight = mp.fprod((-1) ** k * mp.binomial(n, k) for k, n in terms)
                moves = zip(xs, steps, place, counts, strict=True)
                total += weight * fun(*(x + (n - 2 * k) * h for x, h, k, n in moves))
            value = total / mp.fprod((2 * h) ** n for h, n in zip(steps, counts, strict=True))
            return float(mp.re(value)) if mp.im(value) == 0 else np.nan
        except (ValueError, ZeroDivisionError, OverflowError):
            return np.nan


def reverse(fun: Callable[..., Any], k: int) -> Callable[..., Any]:
    return wend.grad(lambda *xs: wnp.sum(fun(*xs)), argnums=k)


def forward(fun: Callable[..., Any], k: int) -> Callable[..., Any]:
    def derivative(*xs: Any) -> Any:
        tangents = tuple(np.full(np.shape(x), float(j == k)) for j, x in enumerate(xs))
        return wend.jvp(fun, xs, tangents)[1]

    return derivative


# The innermost comes first: reverse over reverse, forward over reverse, reverse over forward.
MODES = {
    1: [(reverse,), (forward,)],
    2: [(reverse, reverse), (reverse, forward), (forward, reverse)],
    3: [(reverse,) * 3, (reverse, forward, forward), (forward, reverse, reverse)],
}


def check(
    name: str, fun: Callable[..., Any], known: Exact, points: Sequence[Any], *, is_short: bool
) -> None:
    """Compare all derivatives of an elementwise function at points, all at once."""
    points = [np.atleast_1d(point) for point in (points[:4] if is_short else points)]
    xs = [np.array(x) for x in zip(*points, strict=True)]
    for order, modes in MODES.items():
        for by in itertools.product(range(len(xs)), repeat=order):
            counts = [by.count(k) for k in range(len(xs))]
            expected = np.array(
                [exact(known, point, counts, is_singular=name in SINGULAR) for point in points]
            )
            for mode in modes[: 2 if is_short else None]:
                derivative = fun
                for step, k in zip(mode, by, strict=True):
                    derivative = step(derivative, k)
                found = np.broadcast_to(quiet(functools.partial(derivative, *xs)), expected.shape)
                is_known = np.isfinite(expected) & (abs(expected) < 1e290)
                # Terms that cancel to 0 leave a last digit.
                tolerance = np.where((expected == 0) | (name in ABSOLUTE), 1e-14, SMALLEST)
                error = abs(found - expected) - (RELATIVE * abs(expected) + tolerance)
                wrong = np.flatnonzero(is_known & ~(error <= 0))
                rows = [(points[i].tolist(), found[i], expected[i]) for i in wrong]
                assert not rows, f"{name} by {by}, {[step.__name__ for step in mode]}: {rows}"


LENGTHS = [pytest.param(True, id="short"), pytest.param(False, id="long", marks=pytest.mark.slow)]


@pytest.mark.parametrize("is_short", LENGTHS)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(name: str, is_short: bool) -> None:
    known, points = UNARY[name]
    with wend.config(backend="numpy" if is_short else "native"):
        check(name, reach(wnp, name), known, points, is_short=is_short)


@pytest.mark.parametrize("is_short", LENGTHS)
@pytest.mark.parametrize("n", POWERS)
def test_powers(n: float, is_short: bool) -> None:
    points = [x for x in POWERS[n] if x == 0 or 1e-60 < abs(x) < 1e40]
    with wend.config(backend="numpy" if is_short else "native"):
        check("power", lambda x: x**n, lambda x: x ** mp.mpf(n), points, is_short=is_short)


@pytest.mark.parametrize("is_short", LENGTHS)
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers(name: str, is_short: bool) -> None:
    fun, known, points = BINARY[name]
    with wend.config(backend="numpy" if is_short else "native"):
        check(name, fun, known, points, is_short=is_short)
