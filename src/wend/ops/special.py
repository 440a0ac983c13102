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
from wend.ops.shapes import check_dtype, tensor_of


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
