"""Special functions by SciPy's definitions. SciPy is imported when one first runs, not before."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Unpack

import numpy as np

from wend.ir.dtypes import FLOATS
from wend.ir.op import Explicit, Facts, Op, Rounding
from wend.ir.types import TensorType, Type
from wend.ops import elementwise as ew
from wend.ops.elementwise import elementwise
from wend.ops.shapes import check_dtype, check_same, tensor_of


def _scipy(name: str) -> Callable[..., Any]:
    """Return the kernel that runs a function of `scipy.special` and keeps the dtype."""

    def kernel(*xs: Any) -> Any:
        from scipy import special

        return np.asarray(getattr(special, name)(*xs), np.asarray(xs[0]).dtype)[()]

    return kernel


def _gauss(b: Any, x: Any, factor: float, exponent: float) -> Any:
    """Factor · exp(exponent · x²)."""
    return b.scale(b.emit(ew.exp, b.scale(b.square(x), exponent)), factor)


_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
_ROOT_TWO_PI = math.sqrt(2 * math.pi)

erf = elementwise(
    "erf",
    _scipy("erf"),
    FLOATS,
    [lambda b, x, y: _gauss(b, x, _TWO_OVER_ROOT_PI, -1.0)],
    cost=5.5,
    rounding=Rounding.OF_FLOATS,
)
erfc = elementwise(
    "erfc",
    _scipy("erfc"),
    FLOATS,
    [lambda b, x, y: _gauss(b, x, -_TWO_OVER_ROOT_PI, -1.0)],
    cost=5.5,
    rounding=Rounding.OF_FLOATS,
)
erfinv = elementwise(
    "erfinv",
    _scipy("erfinv"),
    FLOATS,
    [lambda b, x, y: _gauss(b, y, 1 / _TWO_OVER_ROOT_PI, 1.0)],
    cost=20,
    rounding=Rounding.OF_FLOATS,
)
erfcinv = elementwise(
    "erfcinv",
    _scipy("erfcinv"),
    FLOATS,
    [lambda b, x, y: _gauss(b, y, -1 / _TWO_OVER_ROOT_PI, 1.0)],
    cost=20,
    rounding=Rounding.OF_FLOATS,
)
ndtri = elementwise(
    "ndtri",
    _scipy("ndtri"),
    FLOATS,
    [lambda b, x, y: _gauss(b, y, _ROOT_TWO_PI, 0.5)],
    cost=15,
    rounding=Rounding.OF_FLOATS,
)


expit = elementwise(
    "expit",
    _scipy("expit"),
    FLOATS,
    [lambda b, x, y: b.mul(y, b.one_minus(y))],
    cost=1.2,
    rounding=Rounding.OF_FLOATS,
)


def _softmax_of_two(b: Any, x: Any, y: Any) -> Any:
    """The share of exp(x) in exp(x) + exp(y): analytic at ties, a half for equal infinities."""
    gap = b.sub(x, y)
    is_gap_unknown = b.emit(ew.bit_and, b.eq(x, y), b.emit(ew.isnan, gap))
    return b.emit(expit, b.select(is_gap_unknown, b.zeros_like(gap), gap))


# log(exp(x) + exp(y))
logaddexp = elementwise(
    "logaddexp",
    np.logaddexp,
    FLOATS,
    [lambda b, x, y, z: _softmax_of_two(b, x, y), lambda b, x, y, z: _softmax_of_two(b, y, x)],
    rounding=Rounding.OF_FLOATS,
)
gammaln = elementwise(
    "gammaln",
    _scipy("gammaln"),
    FLOATS,
    [lambda b, x, y: b.emit(polygamma, x, order=0)],
    cost=30,
    rounding=Rounding.OF_FLOATS,
)
gamma = elementwise(
    "gamma",
    _scipy("gamma"),
    FLOATS,
    [lambda b, x, y: b.mul(y, b.emit(polygamma, x, order=0))],
    cost=15,
    rounding=Rounding.OF_FLOATS,
)


def _quotient(b: Any, x: Any, y: Any) -> Any:
    """x/y, and 0 where both are 0."""
    is_undefined = b.emit(ew.bit_and, *(b.eq(v, b.zeros_like(v)) for v in (x, y)))
    return b.div(x, b.select(is_undefined, b.ones_like(y), y))


# x·log(y), and 0 where x = 0
xlogy = elementwise(
    "xlogy",
    _scipy("xlogy"),
    FLOATS,
    [lambda b, x, y, z: b.log(y), lambda b, x, y, z: _quotient(b, x, y)],
    linear=(0,),
    rounding=Rounding.OF_FLOATS,
)
xlog1py = elementwise(
    "xlog1py",
    _scipy("xlog1py"),
    FLOATS,
    [
        lambda b, x, y, z: b.emit(ew.log1p, y),
        lambda b, x, y, z: _quotient(b, x, b.add(y, b.ones_like(y))),
    ],
    linear=(0,),
    rounding=Rounding.OF_FLOATS,
)


def _log_of_quotient(b: Any, x: Any, y: Any) -> Any:
    """log(x/y) of positive numbers, right to its last digits where they are close."""
    gap, one = b.div(b.sub(x, y), y), b.ones_like(x)
    bound = b.scale(one, 0.5)
    is_near = b.emit(ew.lt, b.emit(ew.abs, gap), bound)
    near = b.emit(ew.log1p, b.select(is_near, gap, b.zeros_like(gap)))
    return b.select(is_near, near, b.sub(b.log(x), b.log(y)))


# x log(x/y) − x + y of positive numbers. Sums of its terms' derivatives would cancel where x = y.
kl_div = elementwise(
    "kl_div",
    _scipy("kl_div"),
    FLOATS,
    [
        lambda b, x, y, z: _log_of_quotient(b, x, y),
        lambda b, x, y, z: b.neg(b.emit(ew.expm1, _log_of_quotient(b, x, y))),
    ],
    rounding=Rounding.OF_FLOATS,
)


# Families, of which a derivative has members of other orders
def _family(
    name: str,
    compute: Callable[..., Any],
    derivative: Callable[..., Any],
    **facts: Unpack[Facts],
) -> Op:
    """Make an operation of one attribute: `compute(order, x)`, `derivative(b, x, order)`."""

    def infer(x: Type, *, order: int) -> TensorType:
        check_dtype(tensor_of(x), FLOATS)
        return tensor_of(x)

    def kernel(x: Any, *, order: int) -> Any:
        return np.asarray(compute(order, x), np.asarray(x).dtype)[()]

    def pull_back(b: Any, node: Any, cts: Any) -> Any:
        return (b.mul(cts[0], derivative(b, *node.operands, node.attrs["order"])),)

    return Op(name, infer, kernel, Explicit(pull_back), is_cheap=True, **facts)


def _scipy_member(name: str, *firsts: str) -> Callable[..., Any]:
    """Return SciPy's function of any order, except that the first orders have their own."""

    def compute(order: int, x: Any) -> Any:
        from scipy import special

        if order < len(firsts):
            return getattr(special, firsts[order])(x)
        return getattr(special, name)(order, x)

    return compute


def _bessel_derivative(family: Callable[[], Op], turn: float) -> Callable[..., Any]:
    """Return the rule of ½(C₋ − turn·C₊), C∓ one order lower and higher, but C₀' = −turn·C₁.

    C₋ − C/x would cancel near 0.
    """

    def derivative(b: Any, x: Any, order: int) -> Any:
        higher = b.scale(b.emit(family(), x, order=order + 1), -turn)
        if not order:
            return higher
        return b.scale(b.add(b.emit(family(), x, order=order - 1), higher), 0.5)

    return derivative


bessel_i: Op = _family(
    "bessel_i",
    _scipy_member("iv", "i0", "i1"),
    _bessel_derivative(lambda: bessel_i, -1.0),
    cost=110,
    rounding=Rounding.OF_FLOATS,
)
bessel_j: Op = _family(
    "bessel_j",
    _scipy_member("jv", "j0", "j1"),
    _bessel_derivative(lambda: bessel_j, 1.0),
    cost=110,
    rounding=Rounding.OF_FLOATS,
)
# The derivatives of log Γ; order 0 is digamma
polygamma: Op = _family(
    "polygamma",
    _scipy_member("polygamma", "digamma"),
    lambda b, x, order: b.emit(polygamma, x, order=order + 1),
    rounding=Rounding.OF_FLOATS,
)

# Below this ratio of a step to the distance from a pole, a polygamma function is continued by this
# many terms of its Taylor series.
_MAX_STEP, _STEP_TERMS = 1e-2, 8


def _continue_polygamma(order: int, x: Any, step: Any) -> Any:
    """Return ψₙ(x) − ψₙ(x + step), by a series where the step is short."""
    from scipy import special

    difference = special.polygamma(order, x) - special.polygamma(order, x + step)
    distance = np.where(x > 0, x, abs(x - np.rint(x)))
    is_short = abs(step) < _MAX_STEP * distance
    if np.any(is_short):
        x, step = x[is_short], step[is_short]
        term, total = np.ones_like(x), np.zeros_like(x)
        for k in range(1, _STEP_TERMS + 1):
            term = term * step / k
            total -= term * special.polygamma(order + k, x)
        difference[is_short] = total
    return difference


def _difference_of_poles(order: int, x: Any, y: Any) -> Any:
    """Return the difference of the terms of ψₙ that have the pole at 0, at x and at x + y."""
    total = x + y
    powers = [x ** (k - order - 1) * total ** (-k - 1) for k in range(order + 1)]
    return (-1) ** (order + 1) * math.factorial(order) * y * sum(powers)


def _polygamma_difference(x: Any, y: Any, *, order: int) -> Any:
    shape, dtype = np.shape(x), np.asarray(x).dtype
    x, y = (np.asarray(v, np.float64).reshape(-1) for v in (x, y))
    with np.errstate(all="ignore"):
        is_at_pole = (abs(x) < 0.5) & (abs(x + y) < 0.5)
        difference = _continue_polygamma(order, np.where(is_at_pole, 1 + x, x), y)
        poles = np.where(is_at_pole, _difference_of_poles(order, x, y), 0.0)
        return np.asarray(difference + poles, dtype).reshape(shape)[()]


def _infer_polygamma_difference(x: Type, y: Type, *, order: int) -> TensorType:
    type = check_same((x, y))
    check_dtype(type, FLOATS)
    return type


def _pull_back_polygamma_difference(b: Any, node: Any, cts: Any) -> Any:
    x, y = node.operands
    order = node.attrs["order"] + 1
    by_x = b.emit(polygamma_difference, x, y, order=order)
    by_y = b.neg(b.emit(polygamma, b.add(x, y), order=order))
    return tuple(b.mul(cts[0], partial) for partial in (by_x, by_y))


# ψₙ(x) − ψₙ(x + y), right to its last digits for small y, too: the derivatives of log Β
polygamma_difference: Op = Op(
    "polygamma_difference",
    _infer_polygamma_difference,
    _polygamma_difference,
    Explicit(_pull_back_polygamma_difference),
    is_cheap=True,
    rounding=Rounding.OF_FLOATS,
)
betaln = elementwise(
    "betaln",
    _scipy("betaln"),
    FLOATS,
    [
        lambda b, x, y, z: b.emit(polygamma_difference, x, y, order=0),
        lambda b, x, y, z: b.emit(polygamma_difference, y, x, order=0),
    ],
    rounding=Rounding.OF_FLOATS,
)

# Arguments of Β closer to 0 than this are next to a pole; Cauchy's integral takes this many points
# of a circle, and its radius is this part of the distance to the next pole.
NEAR_POLE = 1e-2
_CIRCLE_POINTS, _RADIUS = 24, 0.25


def _radius(x: Any) -> Any:
    """Return the radius of a circle within which Β has no pole but the one at 0, next to it."""
    distance = np.where(x > 0, x, abs(x - np.rint(x)))
    return _RADIUS * np.where(abs(x) < NEAR_POLE, 1.0, distance)


def _beta_without_poles(x: Any, y: Any, *, first: int, second: int) -> Any:
    """Compute a partial derivative of Β − 1/x − 1/y, of the poles that are near, by Cauchy."""
    from scipy import special

    shape, dtype = np.shape(x), np.asarray(x).dtype
    x, y = (np.asarray(v, np.float64).reshape(-1) for v in (x, y))
    is_near = [abs(v) < NEAR_POLE for v in (x, y)]
    total = np.zeros_like(x)
    with np.errstate(all="ignore"):
        if not first and not second:
            poles = sum(np.where(near, 1 / v, 0) for near, v in zip(is_near, (x, y), strict=True))
            regular = np.where(np.isfinite(poles), special.beta(x, y) - poles, 0)
            return np.asarray(regular, dtype).reshape(shape)[()]
        turns = np.exp(2j * np.pi * (np.arange(_CIRCLE_POINTS) + 0.5) / _CIRCLE_POINTS)[:, None]
        by_x, by_y = _radius(x), _radius(y)
        v = y + by_y * turns
        log_gamma = special.loggamma(v)
        weights = turns**-second * math.factorial(first) * math.factorial(second)
        for turn in turns:
            u = x + by_x * turn
            values = np.exp(special.loggamma(u) + log_gamma - special.loggamma(u + v))
            values -= np.where(is_near[0], 1 / u, 0) + np.where(is_near[1], 1 / v, 0)
            total += (np.mean(values * weights, axis=0) * turn**-first).real
        total /= _CIRCLE_POINTS * by_x**first * by_y**second
    return np.asarray(total, dtype).reshape(shape)[()]


def _infer_beta_without_poles(x: Type, y: Type, *, first: int, second: int) -> TensorType:
    return _infer_polygamma_difference(x, y, order=0)


def _pull_back_beta_without_poles(b: Any, node: Any, cts: Any) -> Any:
    first, second = node.attrs["first"], node.attrs["second"]
    orders = [(first + 1, second), (first, second + 1)]
    partials = [
        b.emit(beta_without_poles, *node.operands, first=first, second=second)
        for first, second in orders
    ]
    return tuple(b.mul(cts[0], partial) for partial in partials)


# Partial derivatives of Β(x, y) − 1/x − 1/y, where a pole is subtracted if its argument is near 0
beta_without_poles: Op = Op(
    "beta_without_poles",
    _infer_beta_without_poles,
    _beta_without_poles,
    Explicit(_pull_back_beta_without_poles),
    is_cheap=True,
    rounding=Rounding.OF_FLOATS,
)

# Below this x, log_ndtr is differentiated by a continued fraction of this length.
_NORMAL_TAIL, _FRACTION_LENGTH = -3.0, 40


def _reciprocal_series(xs: list[Any]) -> list[Any]:
    """Return the Taylor coefficients of 1/x from those of x."""
    ys = [1 / xs[0]]
    for k in range(1, len(xs)):
        ys.append(-ys[0] * sum(xs[j] * ys[k - j] for j in range(1, k + 1)))
    return ys


def _log_ndtr_in_tail(x: Any, count: int) -> list[Any]:
    """Return Taylor coefficients of φ(x)/Φ(x) = t + 1/(t + 2/(t + 3/(t + …))), t = −x.

    By Laplace; where Φ is small, each coefficient is right to its last digits.
    """
    t = [-x, np.full_like(x, -1.0), *[np.zeros_like(x)] * count][:count]
    fraction = [np.zeros_like(x)] * count
    for k in range(_FRACTION_LENGTH, 0, -1):
        denominator = [a + b for a, b in zip(t, fraction, strict=True)]
        fraction = [k * c for c in _reciprocal_series(denominator)]
    return [a + b for a, b in zip(t, fraction, strict=True)]


def _log_ndtr_in_body(x: Any, count: int) -> list[Any]:
    """Return Taylor coefficients of m = φ(x)/Φ(x) by m' = −m·(x + m)."""
    from scipy import special

    x = np.minimum(x, 100.0)  # where m is 0
    ms = [math.sqrt(2 / math.pi) / special.erfcx(-x / math.sqrt(2))]
    for k in range(count - 1):
        sums = [x + ms[0], *([1 + ms[1]] if k else []), *ms[2:]]
        ms.append(-sum(ms[j] * sums[k - j] for j in range(k + 1)) / (k + 1))
    return ms


def _log_ndtr(order: int, x: Any) -> Any:
    from scipy import special

    if not order:
        return special.log_ndtr(x)
    x = np.asarray(x, np.float64)
    in_tail = _log_ndtr_in_tail(np.minimum(x, _NORMAL_TAIL), order)[-1]
    in_body = _log_ndtr_in_body(np.maximum(x, _NORMAL_TAIL), order)[-1]
    return math.factorial(order - 1) * np.where(x < _NORMAL_TAIL, in_tail, in_body)


# The derivatives of log Φ; order 0 is log Φ
log_ndtr: Op = _family(
    "log_ndtr",
    _log_ndtr,
    lambda b, x, order: b.emit(log_ndtr, x, order=order + 1),
    rounding=Rounding.OF_FLOATS,
)
