"""`wend.numpy.special`: special functions with SciPy's names and definitions.

On plain arrays each function calls SciPy's own; SciPy is imported at the first such call.
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
from wend.numpy.operands import normalize_axes, promote_dtypes_inexact, staged
from wend.ops import special as ops
from wend.ops.elementwise import stop_gradient


def _scipy(name: str) -> Any:
    return getattr(importlib.import_module("scipy.special"), name)


def _make_special(name: str, compute: Callable[..., Any], note: str = "") -> Callable[..., Any]:
    """Make the public function of one of SciPy's ufuncs."""
    cache: list[Callable[..., Any]] = []

    def function(*xs: Any) -> Any:
        if not any_staged(xs):
            return _scipy(name)(*xs)
        if not cache:
            cache.append(composed(_scipy(name), compute))
        return cache[0](*xs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Compute `scipy.special.{name}` elementwise, of plain and traced arrays.{note}"
    )
    return function


erf = _make_special("erf", lambda x: apply(ops.erf, x))
erfc = _make_special("erfc", lambda x: apply(ops.erfc, x))
erfinv = _make_special("erfinv", lambda x: apply(ops.erfinv, x))
erfcinv = _make_special("erfcinv", lambda x: apply(ops.erfcinv, x))
ndtr = _make_special("ndtr", lambda x: apply(ops.erfc, x * -math.sqrt(0.5)) * 0.5)
ndtri = _make_special("ndtri", lambda x: apply(ops.ndtri, x))
log_ndtr = _make_special("log_ndtr", lambda x: apply(ops.log_ndtr, x))

gamma = _make_special("gamma", lambda x: apply(ops.gamma, x))
gammaln = _make_special("gammaln", lambda x: apply(ops.gammaln, x))
digamma = _make_special("digamma", lambda x: apply(ops.polygamma, x, order=0))
psi = _make_special("psi", lambda x: apply(ops.polygamma, x, order=0))


def _betaln(x: Any, y: Any) -> Any:
    return apply(ops.gammaln, x) + apply(ops.gammaln, y) - apply(ops.gammaln, x + y)


betaln = _make_special("betaln", _betaln)
beta = _make_special(
    "beta", lambda x, y: ew.exp(_betaln(x, y)), "\n\n    Traced arrays must be positive."
)

i0 = _make_special("i0", lambda x: apply(ops.i0, x))
i1 = _make_special("i1", lambda x: apply(ops.i1, x))
j0 = _make_special("j0", lambda x: apply(ops.j0, x))
j1 = _make_special("j1", lambda x: apply(ops.j1, x))

expit = _make_special("expit", lambda x: apply(ops.expit, x))
logit = _make_special("logit", lambda x: ew.log(x) - ew.log1p(-x))
log_expit = _make_special("log_expit", lambda x: -ew.logaddexp(-x, 0.0))
xlogy = _make_special(
    "xlogy",
    lambda x, y: apply(ops.xlogy, x, y),
    "\n\n    Its derivatives are log(y), and x/y or 0 where x is 0.",
)
xlog1py = _make_special("xlog1py", lambda x, y: apply(ops.xlog1py, x, y))


def _entr(x: Any) -> Any:
    safe = ew.where(x < 0, 0, x)
    return ew.where(x < 0, -np.inf, -apply(ops.xlogy, safe, safe))


def _rel_entr(x: Any, y: Any) -> Any:
    inside = (x > 0) & (y > 0)
    ratio = ew.where(inside, x, 1) / ew.where(inside, y, 1)
    outside = ew.where((x == 0) & (y >= 0), 0, np.inf)
    return ew.where(inside, x * ew.log(ratio), ew.where(ew.isnan(x + y), np.nan, outside))


entr = _make_special("entr", _entr)
rel_entr = _make_special("rel_entr", _rel_entr)
kl_div = _make_special("kl_div", lambda x, y: _rel_entr(x, y) - x + y)


def polygamma(n: int, x: Any) -> Any:
    """Compute a polygamma function of one order; see `scipy.special.polygamma`."""
    if not any_staged([n, x]):
        return _scipy("polygamma")(n, x)
    (x,) = promote_dtypes_inexact(x)
    return apply(ops.polygamma, x, order=int(n))


# Exponentials that neither overflow nor underflow
def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """Compute the log of the sum of exponentials of the elements; see `scipy.special.logsumexp`.

    Traced arrays must be real.
    """
    if not any_staged([a, b]):
        return _scipy("logsumexp")(a, axis, b, keepdims, return_sign)
    (a,) = promote_dtypes_inexact(a)
    if b is not None:
        a, b = broadcast(*promote_dtypes_inexact(a, b))
        a = ew.where(b == 0, -np.inf, a)
    axes = normalize_axes(a, axis)
    peak = _finite_max(_pad_empty_axes(a, axes), axes)
    terms = ew.exp(a - peak)
    total = reducing.sum(terms if b is None else b * terms, axis=axes, keepdims=True)
    result = ew.log(ew.absolute(total) if return_sign else total) + peak
    sign = ew.sign(total)
    if not keepdims:
        result, sign = shaping.squeeze(result, axes), shaping.squeeze(sign, axes)
    return (result, sign) if return_sign else result


def _pad_empty_axes(a: Any, axes: tuple[int, ...]) -> Any:
    """Append −inf along axes that may be empty, because an empty maximum is not defined."""
    dims = tensor_type(a).dims
    may_be_empty = [k in axes and (isinstance(n, Symbol) or n == 0) for k, n in enumerate(dims)]
    if not any(may_be_empty):
        return a
    widths = [(0, int(flag)) for flag in may_be_empty]
    return shaping.pad(a, widths, constant_values=-np.inf)


def _finite_max(a: Any, axes: tuple[int, ...]) -> Any:
    """Return the maximum as a constant to differentiation; 0 where it is not finite."""
    peak = apply(stop_gradient, reducing.max(a, axis=axes, keepdims=True))
    return ew.where(ew.isfinite(peak), peak, 0)


def softmax(x: Any, axis: Any = None) -> Any:
    """Compute the softmax function; see `scipy.special.softmax`."""
    if not any_staged([x]):
        return _scipy("softmax")(x, axis)
    (x,) = promote_dtypes_inexact(staged(x))
    axes = normalize_axes(x, axis)
    terms = ew.exp(x - _finite_max(x, axes))
    return terms / reducing.sum(terms, axis=axes, keepdims=True)


def log_softmax(x: Any, axis: Any = None) -> Any:
    """Compute the logarithm of the softmax function; see `scipy.special.log_softmax`."""
    if not any_staged([x]):
        return _scipy("log_softmax")(x, axis)
    (x,) = promote_dtypes_inexact(staged(x))
    axes = normalize_axes(x, axis)
    shifted = x - _finite_max(x, axes)
    return shifted - ew.log(reducing.sum(ew.exp(shifted), axis=axes, keepdims=True))
