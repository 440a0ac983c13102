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
from wend.eager.promotion import broadcast, cast, tensor_type
from wend.ir.dtypes import BOOL, FLOAT64
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
log_ndtr = _make_special("log_ndtr", lambda x: apply(ops.log_ndtr, x, order=0))

gamma = _make_special("gamma", lambda x: apply(ops.gamma, x))
gammaln = _make_special("gammaln", lambda x: apply(ops.gammaln, x))
digamma = _make_special("digamma", lambda x: apply(ops.polygamma, x, order=0))
psi = _make_special("psi", lambda x: apply(ops.polygamma, x, order=0))


# Beyond this number Γ or its third derivative overflows.
_MAX_GAMMA = 168
# Beyond this number logarithms of Γ are too large for the digits of a pole beside it.
_MAX_BESIDE_POLE = 1e3


def _reflect(x: Any, y: Any) -> tuple[Any, Any, Any]:
    """Return x, a sign, and whether Β has a pole, where x may be an integer below 1.

    Β(x, y) = (−1)^y Β(1 − x − y, y) if y is an integer, too, and 1 − x − y is positive.
    """
    is_negative_integer = (x <= 0) & (x == ew.floor(x))
    has_limit = is_negative_integer & (y == ew.floor(y)) & (1 - x - y > 0)
    has_limit = has_limit & (x > -(2.0**31))  # as in SciPy
    sign = ew.where(has_limit & (ew.remainder(y, 2) == 1), -1, 1)
    return ew.where(has_limit, 1 - x - y, x), sign, is_negative_integer & ~has_limit


def _beta_parts(x: Any, y: Any) -> tuple[Any, Any, Any, Any]:
    """Return arguments whose Β is equal up to a sign; the sign, and where poles are."""
    x, first_sign, has_first_pole = _reflect(x, y)
    y, second_sign, has_second_pole = _reflect(y, x)
    return x, y, first_sign * second_sign, has_first_pole | has_second_pole


def _betaln(x: Any, y: Any) -> Any:
    x, y, _, has_pole = _beta_parts(x, y)
    x, y = (ew.where(has_pole, 1, v) for v in (x, y))
    return ew.where(has_pole, np.inf, apply(ops.betaln, x, y))


def _sign_of_gamma(x: Any) -> Any:
    """Return the sign of Γ, which alternates between the poles."""
    return ew.where((x < 0) & (ew.floor(x) % 2 == 1), -1, 1)


def _inverse_gamma(x: Any) -> Any:
    """Return 1 / Γ(x), which is 0 at the poles of Γ, where it has derivatives, too."""
    # Reflection formula (DLMF 5.5.3); the sine is that of the distance to the nearest integer.
    is_reflected = x < 0.5
    left, right = ew.where(is_reflected, x, 0), ew.where(is_reflected, 1, x)
    nearest = ew.rint(left)
    sign = 1 - 2 * (nearest % 2)
    reflected = sign * ew.sin(np.pi * (left - nearest)) / np.pi * apply(ops.gamma, 1 - left)
    # The derivatives of a quotient would divide by powers of Γ, which overflow.
    exponential = ew.exp(-apply(ops.gammaln, right))
    quotient = ew.graft(1 / apply(ops.gamma, right), exponential)
    return ew.where(is_reflected, reflected, quotient)


def _is_next_to_pole(x: Any, y: Any) -> Any:
    """Return whether x is next to the pole at 0 of Γ, and y to no other one."""
    is_other_regular = (y > -0.5) | (ew.absolute(y - ew.rint(y)) > ops.NEAR_POLE)
    return (ew.absolute(x) < ops.NEAR_POLE) & is_other_regular & (ew.absolute(y) < _MAX_BESIDE_POLE)


def _pole(x: Any) -> Any:
    """Return 1/x where x is next to 0, and 0 elsewhere."""
    is_near = ew.absolute(x) < ops.NEAR_POLE
    return ew.where(is_near, 1 / ew.where(is_near, x, 1), 0)


def _beta(x: Any, y: Any) -> Any:
    """Return Β(x, y), computed in float64 as in SciPy: Γ overflows float32 from 36 on."""
    result = _beta_of_doubles(cast(x, FLOAT64), cast(y, FLOAT64))
    return cast(result, tensor_type(x).dtype)


def _beta_of_doubles(x: Any, y: Any) -> Any:
    x, y, sign, has_pole = _beta_parts(x, y)
    is_near = (_is_next_to_pole(x, y) | _is_next_to_pole(y, x)) & ~has_pole
    near = [ew.where(is_near, v, 1) for v in (x, y)]
    regular = apply(ops.beta_without_poles, *near, first=0, second=0)
    far = _beta_far_from_poles(*(ew.where(is_near | has_pole, 1, v) for v in (x, y)))
    result = ew.where(is_near, _pole(near[0]) + _pole(near[1]) + regular, far)
    return sign * ew.where(has_pole, np.inf, result)


def _beta_far_from_poles(x: Any, y: Any) -> Any:
    total = x + y
    is_small = ew.maximum(ew.maximum(ew.absolute(x), ew.absolute(y)), ew.absolute(total))
    is_small = is_small < _MAX_GAMMA
    # Next to the zeros of Β the derivatives of its logarithm are sums that cancel; elsewhere those
    # of a product of Γ are.
    is_nonzero = (x > 0) & (y > 0) | (total > 0.5) | (ew.absolute(total - ew.rint(total)) > 0.1)
    is_nonzero = is_small & is_nonzero
    logarithm = apply(ops.betaln, *(ew.where(is_small & ~is_nonzero, 1, v) for v in (x, y)))
    by_logarithm = _sign_of_gamma(x) * _sign_of_gamma(y) * _sign_of_gamma(total) * ew.exp(logarithm)
    left, right = (ew.where(is_small, v, 1) for v in (x, y))
    by_gammas = apply(ops.gamma, left) * _inverse_gamma(left + right) * apply(ops.gamma, right)
    by_gammas = ew.graft(by_gammas, ew.where(is_nonzero, by_logarithm, by_gammas))
    return ew.where(is_small, by_gammas, by_logarithm)


betaln = _make_special("betaln", _betaln)
beta = _make_special("beta", _beta)

i0 = _make_special("i0", lambda x: apply(ops.bessel_i, x, order=0))
i1 = _make_special("i1", lambda x: apply(ops.bessel_i, x, order=1))
j0 = _make_special("j0", lambda x: apply(ops.bessel_j, x, order=0))
j1 = _make_special("j1", lambda x: apply(ops.bessel_j, x, order=1))

expit = _make_special("expit", lambda x: apply(ops.expit, x))
logit = _make_special("logit", lambda x: ew.log(x) - ew.log1p(-x))
log_expit = _make_special("log_expit", lambda x: -ew.logaddexp(-x, 0.0))
xlogy = _make_special(
    "xlogy",
    lambda x, y: apply(ops.xlogy, x, y),
    "\n\n    Its derivatives are log(y), and x/y or 0 where both are 0.",
)
xlog1py = _make_special("xlog1py", lambda x, y: apply(ops.xlog1py, x, y))


def _entr(x: Any) -> Any:
    safe = ew.where(x < 0, 0, x)
    return ew.where(x < 0, -np.inf, 0 - apply(ops.xlogy, safe, safe))


def _rel_entr(x: Any, y: Any) -> Any:
    return _in_domain(x, y, _log_ratio_times(*_inside(x, y)), 0)


def _kl_div(x: Any, y: Any) -> Any:
    return _in_domain(x, y, apply(ops.kl_div, *_inside(x, y)), y)


def _inside(x: Any, y: Any) -> Any:
    """Return positive numbers as they are, and 1 for both where one is not."""
    is_inside = (x > 0) & (y > 0)
    return ew.where(is_inside, x, 1), ew.where(is_inside, y, 1)


def _in_domain(x: Any, y: Any, inside: Any, at_zero: Any) -> Any:
    """Return a divergence: inside its domain, where x is 0, and infinity elsewhere."""
    outside = ew.where((x == 0) & (y >= 0), at_zero, np.inf)
    outside = ew.where(ew.isnan(x) | ew.isnan(y), np.nan, outside)
    return ew.where((x > 0) & (y > 0), inside, outside)


def _log_ratio_times(x: Any, y: Any) -> Any:
    """Return x log(x/y) of positive numbers."""
    ratio = x / y
    is_near = (ratio > 0.5) & (ratio < 2)
    is_normal = (ratio > np.finfo(tensor_type(ratio).dtype).tiny) & (ratio < np.inf)
    near = ew.log1p(ew.where(is_near, (x - y) / y, 0))
    middle = ew.log(ew.where(is_normal, ratio, 1))
    return x * ew.where(is_near, near, ew.where(is_normal, middle, ew.log(x) - ew.log(y)))


entr = _make_special("entr", _entr)
rel_entr = _make_special("rel_entr", _rel_entr)
kl_div = _make_special("kl_div", _kl_div)


def polygamma(n: int, x: Any) -> Any:
    """Compute a polygamma function of one order; see `scipy.special.polygamma`."""
    if not any_staged([n, x]):
        return _scipy("polygamma")(n, x)
    (x,) = promote_dtypes_inexact(x)
    return apply(ops.polygamma, cast(x, FLOAT64), order=int(n))


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


def _constant_max(a: Any, axes: tuple[int, ...]) -> Any:
    return apply(stop_gradient, reducing.max(a, axis=axes, keepdims=True))


def _finite_max(a: Any, axes: tuple[int, ...]) -> Any:
    """Return the maximum as a constant to differentiation; 0 where it is not finite."""
    peak = _constant_max(a, axes)
    return ew.where(ew.isfinite(peak), peak, 0)


def _as_exponent(x: Any) -> Any:
    """Return the operand in the dtype of its exponential, which has no bools."""
    x = staged(x)
    dtype = tensor_type(x).dtype
    if dtype == BOOL:
        np.subtract.resolve_dtypes((dtype, dtype, None))  # NumPy's error
    return cast(x, np.exp.resolve_dtypes((dtype, None))[1])


def softmax(x: Any, axis: Any = None) -> Any:
    """Compute the softmax function; see `scipy.special.softmax`."""
    if not any_staged([x]):
        return _scipy("softmax")(x, axis)
    x = _as_exponent(x)
    axes = normalize_axes(x, axis)
    terms = ew.exp(x - _constant_max(x, axes))
    return terms / reducing.sum(terms, axis=axes, keepdims=True)


def log_softmax(x: Any, axis: Any = None) -> Any:
    """Compute the logarithm of the softmax function; see `scipy.special.log_softmax`."""
    if not any_staged([x]):
        return _scipy("log_softmax")(x, axis)
    x = _as_exponent(x)
    axes = normalize_axes(x, axis)
    shifted = x - _finite_max(x, axes)
    return shifted - ew.log(reducing.sum(ew.exp(shifted), axis=axes, keepdims=True))
