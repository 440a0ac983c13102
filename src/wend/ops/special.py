"""Special functions by SciPy's definitions. SciPy is imported when one first runs, not before."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wend.ir.dtypes import FLOATS
from wend.ir.op import Explicit, Op
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
    "erf", _scipy("erf"), FLOATS, [lambda b, x, y: _gauss(b, x, _TWO_OVER_ROOT_PI, -1.0)]
)
erfc = elementwise(
    "erfc", _scipy("erfc"), FLOATS, [lambda b, x, y: _gauss(b, x, -_TWO_OVER_ROOT_PI, -1.0)]
)
erfinv = elementwise(
    "erfinv", _scipy("erfinv"), FLOATS, [lambda b, x, y: _gauss(b, y, 1 / _TWO_OVER_ROOT_PI, 1.0)]
)
erfcinv = elementwise(
    "erfcinv",
    _scipy("erfcinv"),
    FLOATS,
    [lambda b, x, y: _gauss(b, y, -1 / _TWO_OVER_ROOT_PI, 1.0)],
)
ndtri = elementwise(
    "ndtri", _scipy("ndtri"), FLOATS, [lambda b, x, y: _gauss(b, y, _ROOT_TWO_PI, 0.5)]
)


def _log_ndtr_partial(b: Any, x: Any, y: Any) -> Any:
    # exp(−x²/2)/√2π over Φ(x), in logarithms: Φ(x) itself underflows.
    exponent = b.sub(b.scale(b.square(x), -0.5), y)
    return b.scale(b.emit(ew.exp, exponent), 1 / _ROOT_TWO_PI)


log_ndtr = elementwise("log_ndtr", _scipy("log_ndtr"), FLOATS, [_log_ndtr_partial])
expit = elementwise("expit", _scipy("expit"), FLOATS, [lambda b, x, y: b.mul(y, b.one_minus(y))])


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
)
gammaln = elementwise(
    "gammaln", _scipy("gammaln"), FLOATS, [lambda b, x, y: b.emit(polygamma, x, order=0)]
)
gamma = elementwise(
    "gamma", _scipy("gamma"), FLOATS, [lambda b, x, y: b.mul(y, b.emit(polygamma, x, order=0))]
)


def _quotient(b: Any, x: Any, y: Any) -> Any:
    """x/y, and 0 where x = 0, also for y = 0."""
    zero = b.eq(x, b.zeros_like(x))
    return b.select(zero, b.zeros_like(x), b.div(x, b.select(zero, b.ones_like(y), y)))


# x·log(y), and 0 where x = 0
xlogy = elementwise(
    "xlogy",
    _scipy("xlogy"),
    FLOATS,
    [lambda b, x, y, z: b.log(y), lambda b, x, y, z: _quotient(b, x, y)],
    linear=(0,),
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
)


# Bessel functions
def _i1_over_x(b: Any, x: Any, y: Any) -> Any:
    """i1(x)/x, and its limit 1/2 at 0."""
    zero = b.eq(x, b.zeros_like(x))
    ratio = b.div(y, b.select(zero, b.ones_like(x), x))
    return b.select(zero, b.full_like(x, 0.5), ratio)


i0: Op = elementwise("i0", _scipy("i0"), FLOATS, [lambda b, x, y: b.emit(i1, x)])
i1: Op = elementwise(
    "i1", _scipy("i1"), FLOATS, [lambda b, x, y: b.sub(b.emit(i0, x), _i1_over_x(b, x, y))]
)
j0: Op = elementwise("j0", _scipy("j0"), FLOATS, [lambda b, x, y: b.neg(b.emit(j1, x))])
j1: Op = elementwise(
    "j1", _scipy("j1"), FLOATS, [lambda b, x, y: b.sub(b.emit(j0, x), _i1_over_x(b, x, y))]
)


# The derivatives of log Γ: order 0 is digamma
def _infer_polygamma(x: Type, *, order: int) -> TensorType:
    check_dtype(tensor_of(x), FLOATS)
    return tensor_of(x)


def _kernel_polygamma(x: Any, *, order: int) -> Any:
    from scipy import special

    value = special.digamma(x) if order == 0 else special.polygamma(order, x)
    return np.asarray(value, np.asarray(x).dtype)[()]


def _pull_back_polygamma(b: Any, node: Any, cts: Any) -> Any:
    (x,) = node.operands
    return (b.mul(cts[0], b.emit(polygamma, x, order=node.attrs["order"] + 1)),)


polygamma: Op = Op(
    "polygamma", _infer_polygamma, _kernel_polygamma, Explicit(_pull_back_polygamma), is_cheap=True
)
