"""Special functions, by SciPy's names and definitions: `wend.numpy.special`.

On plain arrays each is SciPy's own. SciPy is imported when one is first used.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wend.eager.dispatch import any_staged, apply
from wend.eager.promotion import broadcast, tensor_type
from wend.ir.types import Symbol
from wend.numpy import elementwise as ew
from wend.numpy import reducing, shaping
from wend.numpy.composed import composed
from wend.numpy.operands import axes_of, inexact, staged
from wend.ops import special as ops
from wend.ops.elementwise import stop_gradient


def _scipy(name: str) -> Any:
    return getattr(importlib.import_module("scipy.special"), name)


def _special(name: str, compute: Callable[..., Any], note: str = "") -> Callable[..., Any]:
    """Make the public function of one of SciPy's ufuncs."""
    made: list[Callable[..., Any]] = []

    def function(*xs: Any) -> Any:
        if not any_staged(xs):
            return _scipy(name)(*xs)
        if not made:
            made.append(composed(_scipy(name), compute))
        return made[0](*xs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`scipy.special.{name}`, for traced arrays as well.{note}"
    return function


erf = _special("erf", lambda x: apply(ops.erf, x))
erfc = _special("erfc", lambda x: apply(ops.erfc, x))
erfinv = _special("erfinv", lambda x: apply(ops.erfinv, x))
erfcinv = _special("erfcinv", lambda x: apply(ops.erfcinv, x))
ndtr = _special("ndtr", lambda x: apply(ops.erfc, x * -math.sqrt(0.5)) * 0.5)
ndtri = _special("ndtri", lambda x: apply(ops.ndtri, x))
log_ndtr = _special("log_ndtr", lambda x: apply(ops.log_ndtr, x))

gamma = _special("gamma", lambda x: apply(ops.gamma, x))
gammaln = _special("gammaln", lambda x: apply(ops.gammaln, x))
digamma = _special("digamma", lambda x: apply(ops.polygamma, x, order=0))
psi = _special("psi", lambda x: apply(ops.polygamma, x, order=0))


def _betaln(x: Any, y: Any) -> Any:
    return apply(ops.gammaln, x) + apply(ops.gammaln, y) - apply(ops.gammaln, x + y)


betaln = _special("betaln", _betaln)
beta = _special("beta", lambda x, y: ew.exp(_betaln(x, y)), "\n\n    Traced: of positive numbers.")

i0 = _special("i0", lambda x: apply(ops.i0, x))
i1 = _special("i1", lambda x: apply(ops.i1, x))
j0 = _special("j0", lambda x: apply(ops.j0, x))
j1 = _special("j1", lambda x: apply(ops.j1, x))

expit = _special("expit", lambda x: apply(ops.expit, x))
logit = _special("logit", lambda x: ew.log(x) - ew.log1p(-x))
log_expit = _special("log_expit", lambda x: -ew.logaddexp(-x, 0.0))
xlogy = _special(
    "xlogy",
    lambda x, y: apply(ops.xlogy, x, y),
    "\n\n    Its derivatives are log(y), and x/y or 0 where x is 0.",
)
xlog1py = _special("xlog1py", lambda x, y: apply(ops.xlog1py, x, y))


def _entr(x: Any) -> Any:
    safe = ew.where(x < 0, 0, x)
    return ew.where(x < 0, -np.inf, -apply(ops.xlogy, safe, safe))


def _rel_entr(x: Any, y: Any) -> Any:
    inside = (x > 0) & (y > 0)
    ratio = ew.where(inside, x, 1) / ew.where(inside, y, 1)
    outside = ew.where((x == 0) & (y >= 0), 0, np.inf)
    return ew.where(inside, x * ew.log(ratio), ew.where(ew.isnan(x + y), np.nan, outside))


entr = _special("entr", _entr)
rel_entr = _special("rel_entr", _rel_entr)
kl_div = _special("kl_div", lambda x, y: _rel_entr(x, y) - x + y)


def polygamma(n: int, x: Any) -> Any:
    """`scipy.special.polygamma` of one order, for traced arrays as well."""
    if not any_staged([n, x]):
        return _scipy("polygamma")(n, x)
    (x,) = inexact(x)
    return apply(ops.polygamma, x, order=int(n))


# Exponentials that neither overflow nor lose what is small
def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """`scipy.special.logsumexp`, for traced arrays as well; of real numbers."""
    if not any_staged([a, b]):
        return _scipy("logsumexp")(a, axis, b, keepdims, return_sign)
    (a,) = inexact(a)
    if b is not None:
        a, b = broadcast(*inexact(a, b))
        a = ew.where(b == 0, -np.inf, a)
    axes = axes_of(a, axis)
    peak = _peak(_with_a_least(a, axes), axes)
    terms = ew.exp(a - peak)
    total = reducing.sum(terms if b is None else b * terms, axis=axes, keepdims=True)
    found = ew.log(ew.absolute(total) if return_sign else total) + peak
    sign = ew.sign(total)
    if not keepdims:
        found, sign = shaping.squeeze(found, axes), shaping.squeeze(sign, axes)
    return (found, sign) if return_sign else found


def _with_a_least(a: Any, axes: tuple[int, ...]) -> Any:
    """An array with −inf at the end of axes that may be empty: of nothing there is no greatest."""
    dims = tensor_type(a).dims
    may_be_empty = [k in axes and (isinstance(n, Symbol) or n == 0) for k, n in enumerate(dims)]
    if not any(may_be_empty):
        return a
    widths = [(0, int(flag)) for flag in may_be_empty]
    return shaping.pad(a, widths, constant_values=-np.inf)


def _peak(a: Any, axes: tuple[int, ...]) -> Any:
    """The greatest element, a constant to derivatives; 0 where that is not finite."""
    peak = apply(stop_gradient, reducing.max(a, axis=axes, keepdims=True))
    return ew.where(ew.isfinite(peak), peak, 0)


def softmax(x: Any, axis: Any = None) -> Any:
    """`scipy.special.softmax`, for traced arrays as well."""
    if not any_staged([x]):
        return _scipy("softmax")(x, axis)
    (x,) = inexact(staged(x))
    axes = axes_of(x, axis)
    terms = ew.exp(x - _peak(x, axes))
    return terms / reducing.sum(terms, axis=axes, keepdims=True)


def log_softmax(x: Any, axis: Any = None) -> Any:
    """`scipy.special.log_softmax`, for traced arrays as well."""
    if not any_staged([x]):
        return _scipy("log_softmax")(x, axis)
    (x,) = inexact(staged(x))
    axes = axes_of(x, axis)
    moved = x - _peak(x, axes)
    return moved - ew.log(reducing.sum(ew.exp(moved), axis=axes, keepdims=True))
