"""Every differentiable elementwise function beside mpmath's, with points where they are compared.

Points are ordinary, extreme, near zeros, at ties where the function is smooth there, small, large
and in tails: at least `MIN_POINTS` a function.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath as mp

import wend.numpy as wnp
from tests.helpers.arrays import reach
from tests.helpers.exact import Exact
from wend.numpy import special

MIN_POINTS = 40


@dataclass(frozen=True)
class Row:
    """A function and its definition.

    Attributes:
        function: of `wend.numpy`, of one or two arrays.
        exact: the same of numbers of mpmath.
        points: tuples of arguments.
        is_singular: whether it has a singularity at 0, so that steps of differences are relative.
        floor: what an error may be in any case: that of the last digits of 1, where derivatives
            are computed from results or are sums of exponentials.
    """

    function: Callable[..., Any]
    exact: Exact
    points: Sequence[tuple[float, ...]]
    is_singular: bool = False
    floor: float = 1e-290


ORDINARY = [0.3, -0.9, 1.5, -2.0, 0.0, 7.0, -0.3, 0.7, 0.97, 1.0, -1.0, 0.5, -0.5, -1.7, 2.0]
ORDINARY += [3.3, -4.1, -7.5, 12.0, -13.0, 25.0, -26.0, 40.0]
EXTREME = [1e-8, -1e-20, 60.0, -1e4, 1e22, 1e-3, -1e-5, 1e-12, -1e-90, -60.0, 100.0, -120.0]
EXTREME += [300.0, -300.0, 1e6, -1e8, 1e40, -1e90]
EVERYWHERE = [x for pair in itertools.zip_longest(ORDINARY, EXTREME) for x in pair if x is not None]
NEAR_ONE = [1 + 1e-8, 1 - 1e-8, 1 + 1e-12, 0.999, 1.01]
POSITIVE = [
    *dict.fromkeys(abs(x) for x in EVERYWHERE if x),
    *NEAR_ONE,
    1e-40,
    1e-60,
    1e15,
    2.7,
    5e3,
]
NONZERO = [*(x for x in EVERYWHERE if x), *NEAR_ONE]
MODERATE = [
    *(x for x in EVERYWHERE if abs(x) < 500),
    15.0,
    -31.0,
    0.01,
    -0.02,
    200.0,
    -450.0,
    1e-30,
]
WITHIN_ONE = [x for x in EVERYWHERE if abs(x) < 1]
UNIT = [*WITHIN_ONE, *(-x for x in WITHIN_ONE if -x not in WITHIN_ONE), 0.05, -0.1, 0.2, -0.8]
UNIT += [0.6, 0.999999, -0.99999, 1 - 1e-8, 1 - 1e-12, -1 + 1e-8, 0.01, -0.04, 0.85, -0.45, 1e-30]
UNIT += [0.99, -0.999, 0.25]
FRACTIONS = [*(x for x in UNIT if x > 0), *(1 - x for x in UNIT if 1e-3 < x < 0.9), 0.15, 0.4, 0.35]
FRACTIONS += [0.65, 0.9, 1e-40, 1e-60, 1e-5, 0.123, 1e-15, 0.77, 0.02, 0.045, 0.275, 0.56, 1e-90]
ABOVE_ONE = [
    *(x for x in POSITIVE if x > 1),
    1 + 1e-5,
    1.001,
    1.1,
    1.2,
    1.3,
    1.4,
    1.6,
    1.9,
    2.2,
    4.5,
]
ABOVE_ONE += [6.0, 9.0, 1e3, 1e5, 3e7, 1e10]
GAMMA = [x for x in EVERYWHERE if abs(x) < 200 and not (x <= 0 and x == int(x))]
GAMMA += [
    -0.999,
    -1.0001,
    -2.5,
    -3.5,
    -10.25,
    1.4616,
    2.5,
    4.0,
    5.5,
    1 + 1e-8,
    2 - 1e-8,
    10.0,
    30.0,
]
GAMMA += [0.05, 0.1, -20.7, 45.5, 1e-30]


def each(points: Sequence[float]) -> list[tuple[float]]:
    return [(x,) for x in dict.fromkeys(points)]


def of_log(x: Any) -> Any:
    return mp.log(abs(mp.gamma(x)))


def ndtr(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


_ONE: dict[str, tuple[Exact, Sequence[float]]] = {
    "sqrt": (mp.sqrt, POSITIVE),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), NONZERO),
    "exp": (mp.exp, MODERATE),
    "exp2": (lambda x: mp.mpf(2) ** x, MODERATE),
    "expm1": (mp.expm1, MODERATE),
    "log": (mp.log, POSITIVE),
    "log2": (lambda x: mp.log(x) / mp.log(2), POSITIVE),
    "log10": (lambda x: mp.log(x) / mp.log(10), POSITIVE),
    "log1p": (lambda x: mp.log(1 + x), [*(x for x in UNIT if x > -1), *POSITIVE]),
    "sin": (mp.sin, EVERYWHERE),
    "cos": (mp.cos, EVERYWHERE),
    "tan": (mp.tan, EVERYWHERE),
    "arcsin": (mp.asin, UNIT),
    "arccos": (mp.acos, UNIT),
    "arctan": (mp.atan, EVERYWHERE),
    "sinh": (mp.sinh, MODERATE),
    "cosh": (mp.cosh, MODERATE),
    "tanh": (mp.tanh, EVERYWHERE),
    "arcsinh": (mp.asinh, EVERYWHERE),
    "arccosh": (mp.acosh, ABOVE_ONE),
    "arctanh": (mp.atanh, UNIT),
    "reciprocal": (lambda x: 1 / x, NONZERO),
    "square": (lambda x: x * x, EVERYWHERE),
    "absolute": (abs, NONZERO),
    "fabs": (abs, NONZERO),
    "negative": (lambda x: -x, EVERYWHERE),
    "degrees": (lambda x: x * 180 / mp.pi, EVERYWHERE),
    "radians": (lambda x: x * mp.pi / 180, EVERYWHERE),
    "sinc": (mp.sincpi, [*(x for x in MODERATE if abs(x) <= 60), 4.5, 0.1, -0.2, 9.0, 1e-4, 20.5]),
    "special.erf": (mp.erf, EVERYWHERE),
    "special.erfc": (mp.erfc, MODERATE),
    "special.erfinv": (mp.erfinv, UNIT),
    "special.erfcinv": (lambda x: mp.erfinv(1 - x), [*FRACTIONS, 1.3, 1.9, 1.01, 1 + 1e-8, 1.999]),
    "special.ndtr": (ndtr, MODERATE),
    "special.ndtri": (lambda x: mp.sqrt(2) * mp.erfinv(2 * x - 1), FRACTIONS),
    "special.log_ndtr": (lambda x: mp.log(ndtr(x)), EVERYWHERE),
    "special.gamma": (mp.gamma, [x for x in GAMMA if abs(x) < 110]),
    "special.gammaln": (of_log, GAMMA),
    "special.digamma": (mp.digamma, GAMMA),
    "special.i0": (lambda x: mp.besseli(0, x), MODERATE),
    "special.i1": (lambda x: mp.besseli(1, x), MODERATE),
    "special.j0": (lambda x: mp.besselj(0, x), MODERATE),
    "special.j1": (lambda x: mp.besselj(1, x), MODERATE),
    "special.expit": (lambda x: 1 / (1 + mp.exp(-x)), EVERYWHERE),
    "special.logit": (lambda x: mp.log(x / (1 - x)), FRACTIONS),
    "special.log_expit": (lambda x: -mp.log(1 + mp.exp(-x)), MODERATE),
    "special.entr": (lambda x: -x * mp.log(x), POSITIVE),
}
_POWERS = {2: EVERYWHERE, 3: EVERYWHERE, 7: MODERATE, 0: EVERYWHERE, 1: EVERYWHERE, -1: NONZERO}
_POWERS |= {-3: NONZERO, 0.5: POSITIVE, 1.5: POSITIVE, 2.5: POSITIVE}

PAIRS = [(1.0, 1.0), (0.3, 2.0), (3.0, 0.0), (0.0, 3.0), (1e-8, 1e-8), (-2.0, -2.0), (1.0, -1.0)]
PAIRS += [(0.0, -0.5), (2.0, 0.3), (1e-3, 1.0), (1e-40, 2e-40), (1e40, -2e40), (1e5, 2.0)]
PAIRS += [(5.0, 5.0), (40.0, 1.0), (-40.0, 1.0), (300.0, -5.0), (1e-20, 1.0), (0.0, 1.0)]
PAIRS += [(1.0, 0.0), (2.0, 1e5), (7.0, 7.5), (1e10, 2.0), (25.0, 26.0), (-30.0, 5.0)]
PAIRS += [(0.5, 0.25), (1.0, 1.0 + 1e-8), (1e-8, 3.0), (3.0, 1e-8), (1e-20, 1e-20), (0.9, 0.1)]
PAIRS += [(-0.7, 1.9), (12.5, 0.01), (0.01, 12.5), (-3.0, -4.0), (100.0, 101.0), (0.1, 0.1)]
PAIRS += [(1e3, 1e-3), (-1e-12, 2.0), (33.0, 3.0), (6.0, -6.0), (1e-30, 5.0), (0.2, 60.0)]
PAIRS += [(0.45, 0.75), (-8.5, 2.25), (17.0, 3.5), (0.06, 1.3)]
POSITIVE_PAIRS = [(a, b) for a, b in PAIRS if min(a, b) > 0]
POSITIVE_PAIRS += [(abs(a), abs(b)) for a, b in PAIRS if a * b and min(a, b) < 0]
POSITIVE_PAIRS += [
    (2.0, 2.0),
    (1.5, 1.5 + 1e-9),
    (1e-20, 1e20),
    (1e20, 1e-20),
    (4.0, 0.4),
    (0.6, 9.0),
]
POSITIVE_PAIRS += [(20.0, 7.3), (3.0, 2.0), (3.0, 1.0), (0.1, 30.0)]
# Not next to ties, where mixed derivatives have zeros.
UNEQUAL = [(a, b) for a, b in PAIRS if a and abs(abs(a / b if b else 2) - 1) > 1e-4]
UNEQUAL += [
    (1.5, 0.0),
    (-1.5, 0.25),
    (1e-8, -3.0),
    (9.0, 40.0),
    (0.3, -0.1),
    (1e15, 1.0),
    (2.5, 8.0),
]
APART = [(a, b) for a, b in PAIRS if a != b]
SMALL_PAIRS = [(a, b) for a, b in PAIRS if max(abs(a), abs(b)) < 500]
SMALL_PAIRS += [(-50.0, 0.5), (0.0, 0.0), (20.0, -20.0), (-1.0, -1.0 - 1e-8), (8.0, 2.0)]
# Those of divergences: none where x/y leaves the range, and the ratios between.
RATIOS = [*POSITIVE_PAIRS, (1e-20, 1.0), (1e10, 2.0)]
RATIOS += [(a * k, a) for a in (0.1, 0.7, 2.0, 30.0) for k in (0.05, 0.3, 0.999, 1.2, 8.0, 50.0)]
# Sums that are integers below 1 are zeros of Β.
BETA = [(-3.5, 0.5), (0.3, 2.0), (-2.5, 1.5), (20.0, -7.3), (-0.5, 0.5), (-3.5, 1.25), (7.0, 7.5)]
BETA += [(0.05, 1.0), (25.0, 26.0), (1e5, 2.0), (-30.3, 5.0), (-3.5, -0.5), (1.0, 1.0), (1e-8, 3.0)]
BETA += [(3.0, 1e-8), (1e-8, 1e-8), (1e-20, 0.5), (0.5, 0.5), (1e-3, 40.0), (100.0, 101.0)]
BETA += [(1e-12, 1e-3), (-0.3, 0.1), (-1e-8, 3.0), (1e-8, -2e-8), (-0.25, -0.3), (0.1, 0.1)]
BETA += [(2.0, 1e5), (60.0, 0.2), (5.0, 5.0), (12.5, 0.01), (1e-30, 5.0), (1e3, 1e-3), (3.0, 2.0)]
BETA += [
    (1e-8, -2.5),
    (-0.7, 1e-6),
    (1.0, 1e-15),
    (33.0, 3.0),
    (170.5, 1.5),
    (0.9, 0.1),
    (1e7, 0.5),
]
BETA += [(2.5, 180.0), (0.7, -0.9)]
BETA += [(0.2, 0.4), (1.5, 2.5), (4.0, 6.0), (9.0, 0.7), (14.0, 3.0), (-1.5, 2.2), (2.2, -1.5)]
BETA += [
    (50.0, 8.0),
    (0.35, 15.0),
    (-0.4, 3.0),
    (1.25, 1.75),
    (30.0, 30.0),
    (-5.5, 2.25),
    (6.0, 0.5),
]
BETA += [(80.0, 2.0), (0.6, 0.15)]
# Sums at which Γ or its derivatives overflow.
BETA += [(100.0, 2.0), (77.0, 30.0), (-30.3, 110.0), (2.0, 80.0), (100.0, 60.0), (167.5, 0.3)]
BETA += [(0.3, 169.0)]


def power(x: Any, y: Any) -> Any:
    return x**y


def of_two(fun: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """The function of an array, of two numbers in its first axis."""
    return lambda x, y: fun(wnp.stack([x, y]))


def log_of_sum(x: Any, y: Any) -> Any:
    return mp.log(mp.exp(x) + mp.exp(y))


def radius(x: Any, y: Any) -> Any:
    return mp.sqrt(x * x + y * y)


def remainder(x: Any, y: Any) -> Any:
    return x - y * mp.floor(x / y)


def fmod(x: Any, y: Any) -> Any:
    quotient = x / y
    return x - y * (mp.floor(quotient) if quotient > 0 else mp.ceil(quotient))


_BASES = [p for p in POSITIVE_PAIRS if 1e-9 < p[0] < 1e9 and p[1] < 1e3]
_BASES += [(0.5, 0.0), (3.0, -2.0), (2.0, 0.5), (1.7, 1.0), (9.0, -0.5), (1.0, 5.0)]
_BASES += [(0.99, 200.0), (1.0 + 1e-8, 7.0), (4.0, 2.5)]
_QUOTIENTS = [
    (a, b) for a, b in PAIRS if b and 1e-9 < abs(a) < 1e9 and (a / b) % 1 and abs(b) > 1e-6
]
_QUOTIENTS += [
    (a + 0.37, b) for a, b in PAIRS if 0.5 < abs(b) < 100 and abs(a) < 1e3 and (a + 0.37) / b % 1
]
_TWO: dict[str, tuple[Callable[..., Any], Exact, Sequence[tuple[float, float]]]] = {
    "add": (wnp.add, lambda x, y: x + y, PAIRS),
    "subtract": (wnp.subtract, lambda x, y: x - y, PAIRS),
    "multiply": (wnp.multiply, lambda x, y: x * y, PAIRS),
    "divide": (wnp.divide, lambda x, y: x / y, [*(p for p in PAIRS if p[1]), (2.0, 7.0)]),
    "maximum": (wnp.maximum, max, APART),
    "minimum": (wnp.minimum, min, APART),
    "fmax": (wnp.fmax, max, APART),
    "fmin": (wnp.fmin, min, APART),
    "copysign": (
        wnp.copysign,
        lambda x, y: abs(x) * (1 if y >= 0 else -1),
        [
            *((a, b) for a, b in PAIRS if a * b),
            (8.0, -3.0),
            (-2.0, 5.0),
            (-1e20, -1e-20),
            (4.0, 1.0),
        ],
    ),
    "remainder": (wnp.remainder, remainder, _QUOTIENTS),
    "fmod": (wnp.fmod, fmod, _QUOTIENTS),
    "power": (wnp.power, power, _BASES),
    "float_power": (wnp.float_power, power, _BASES),
    "arctan2": (wnp.arctan2, mp.atan2, UNEQUAL),
    "hypot": (wnp.hypot, radius, PAIRS),
    "logaddexp": (wnp.logaddexp, log_of_sum, SMALL_PAIRS),
    "logaddexp2": (
        wnp.logaddexp2,
        lambda x, y: mp.log(mp.mpf(2) ** x + mp.mpf(2) ** y, 2),
        SMALL_PAIRS,
    ),
    "clip": (
        lambda x, y: wnp.clip(x, y, 10.0),
        lambda x, y: min(max(x, y), mp.mpf(10)),
        [p for p in [*APART, (11.0, 4.0), (0.4, 0.7)] if p[0] != 10],
    ),
    "where": (
        lambda x, y: wnp.where(x > y, x * y, y),
        lambda x, y: x * y if x > y else y,
        APART,
    ),
    "special.xlogy": (
        special.xlogy,
        lambda x, y: x * mp.log(y),
        [*(p for p in PAIRS if p[1] > 0), *((b, a) for a, b in PAIRS if a > 0 > b), (0.0, 0.3)],
    ),
    "special.xlog1py": (
        special.xlog1py,
        lambda x, y: x * mp.log(1 + y),
        [p for p in PAIRS if p[1] > -1],
    ),
    "special.rel_entr": (special.rel_entr, lambda x, y: x * mp.log(x / y), RATIOS),
    "special.kl_div": (special.kl_div, lambda x, y: x * mp.log(x / y) - x + y, RATIOS),
    "special.beta": (special.beta, mp.beta, BETA),
    "special.betaln": (
        special.betaln,
        lambda x, y: mp.log(abs(mp.beta(x, y))),
        [p for p in [*BETA, *POSITIVE_PAIRS[:8]] if sum(p) != int(sum(p)) or sum(p) > 0],
    ),
    "special.logsumexp": (of_two(lambda a: special.logsumexp(a, axis=0)), log_of_sum, SMALL_PAIRS),
    "special.softmax": (
        of_two(lambda a: special.softmax(a, axis=0)[0]),
        lambda x, y: 1 / (1 + mp.exp(y - x)),
        SMALL_PAIRS,
    ),
    "special.log_softmax": (
        of_two(lambda a: special.log_softmax(a, axis=0)[0]),
        lambda x, y: -mp.log(1 + mp.exp(y - x)),
        SMALL_PAIRS,
    ),
    "linalg.norm": (
        of_two(lambda a: wnp.linalg.norm(a, 3, axis=0)),
        lambda x, y: mp.cbrt(abs(x) ** 3 + abs(y) ** 3),
        [
            *((a, b) for a, b in PAIRS if a * b),  # a cube of a size has no third derivative at 0
            *((a * k, a) for a in (1.0, -2.0, 1e-8, 5.0, 0.3) for k in (1, -1, 2, 0.5, 0.9, -3, 6)),
            *((a, a * k) for a in (1e-8, 7.0, 5.0) for k in (2, -1, 0.3)),
        ],
    ),
    "absolute of complex": (lambda x, y: wnp.absolute(x + 1j * y), radius, PAIRS),
    "angle of complex": (lambda x, y: wnp.angle(y + 1j * x), mp.atan2, UNEQUAL),
}
_SINGULAR = {"sqrt", "cbrt", "log", "log2", "log10", "reciprocal", "absolute", "fabs", "power"}
_SINGULAR |= {f"special.{name}" for name in ("entr", "logit", "gamma", "gammaln", "digamma")}
_SINGULAR |= {
    "special.ndtri",
    "special.erfcinv",
    "arctan2",
    "hypot",
    "special.xlogy",
    "linalg.norm",
}
_SINGULAR |= {"special.beta", "special.betaln", "special.rel_entr", "special.kl_div", "divide"}
_SINGULAR |= {"absolute of complex", "angle of complex", "copysign", "float_power"}
_SINGULAR |= {"maximum", "minimum", "fmax", "fmin", "clip", "where", "remainder", "fmod"}
# These are computed from their results, or are sums of exponentials: right to a last digit of 1.
_OF_ONE = {"tanh", "logaddexp", "logaddexp2", "special.expit", "special.log_expit", "special.ndtr"}
_OF_ONE |= {"special.logsumexp", "special.softmax", "special.log_softmax"}


def _row(name: str, function: Callable[..., Any], exact: Exact, points: Any) -> Row:
    floor = 1e-14 if name in _OF_ONE else 1e-290
    return Row(function, exact, [*dict.fromkeys(points)], name in _SINGULAR, floor)


ROWS: dict[str, Row] = {
    **{name: _row(name, reach(wnp, name), exact, each(p)) for name, (exact, p) in _ONE.items()},
    **{
        f"power {n}": _row(
            "power",
            lambda x, n=n: x**n,
            lambda x, n=n: x ** mp.mpf(n),
            each([x for x in [*points, 5.0, -6.5, 90.0] if x == 0 or 1e-60 < abs(x) < 1e40]),
        )
        for n, points in _POWERS.items()
    },
    **{name: _row(name, *row) for name, row in _TWO.items()},
}
