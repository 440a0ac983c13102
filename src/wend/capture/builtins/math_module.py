"""Implementations of the functions of `math` for traced numbers."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from wend import numpy as wnp
from wend.eager.promotion import cast, tensor_type
from wend.numpy import elementwise as ew
from wend.numpy import reducing, shaping, special
from wend.trace.control.loops import fori_loop


def _to_int(x: Any) -> Any:
    return shaping.astype(x, np.int64)


def _to_float(x: Any) -> Any:
    return x if tensor_type(x).dtype.kind == "f" else cast(x, np.dtype(np.float64))


def _log(x: Any, base: Any = None) -> Any:
    return ew.log(x) if base is None else ew.log(x) / ew.log(base)


def _remainder(x: Any, y: Any) -> Any:
    """Return x minus the nearest multiple of y, with ties to the even multiple."""
    return x - y * ew.rint(ew.divide(x, y))


def _hypot(*xs: Any) -> Any:
    return functools.reduce(ew.hypot, xs) if len(xs) > 1 else ew.absolute(*xs)


def _isclose(a: Any, b: Any, *, rel_tol: float = 1e-9, abs_tol: float = 0.0) -> Any:
    larger = ew.maximum(ew.absolute(a), ew.absolute(b))
    near = ew.absolute(a - b) <= ew.maximum(rel_tol * larger, abs_tol)
    return ew.logical_or(ew.equal(a, b), ew.logical_and(near, ew.isfinite(larger)))


def _isqrt(n: Any) -> Any:
    """Return the root rounded down; the root of a float may be one off."""
    root = _to_int(ew.floor(ew.sqrt(_to_float(n))))
    root = ew.where(root * root > n, root - 1, root)
    return ew.where((root + 1) * (root + 1) <= n, root + 1, root)


# All factorials that fit in 64 bits
_FACTORIALS = np.array([math.factorial(n) for n in range(21)])


def _comb(n: Any, k: Any) -> Any:
    """Compute a binomial by products that stay integers; 0 if k exceeds n."""
    binomial = fori_loop(0, k, lambda i, product: product * (n - i) // (i + 1), 0 * n + 1)
    return ew.where(k > n, 0, binomial)


def _perm(n: Any, k: Any = None) -> Any:
    if k is None:
        return _factorial(n)
    return ew.where(k > n, 0, fori_loop(0, k, lambda i, product: product * (n - i), 0 * n + 1))


def _factorial(n: Any) -> Any:
    return wnp.take(_FACTORIALS, n)


def _frexp(x: Any) -> tuple[Any, Any]:
    """Return a mantissa in [0.5, 1) and the exponent of 2."""
    x = _to_float(x)
    magnitude = ew.where(ew.logical_and(x != 0, ew.isfinite(x)), ew.absolute(x), 1.0)
    exponent = _to_int(ew.floor(ew.log2(magnitude))) + 1
    mantissa = magnitude * ew.exp2(_to_float(-exponent))
    # The logarithm may be off by one at powers of 2.
    exponent = ew.where(
        mantissa >= 1.0, exponent + 1, ew.where(mantissa < 0.5, exponent - 1, exponent)
    )
    mantissa = x * ew.exp2(_to_float(-exponent))
    is_regular = ew.logical_and(x != 0, ew.isfinite(x))
    return ew.where(is_regular, mantissa, x), ew.where(is_regular, exponent, 0)


def _dist(p: Any, q: Any) -> Any:
    difference = wnp.asarray(p) - wnp.asarray(q)
    return ew.sqrt(reducing.sum(difference * difference))


def _prod(xs: Any, *, start: Any = 1) -> Any:
    for x in xs:
        start = start * x
    return start


# Name -> implementation; older versions of `math` lack some names.
_STAGED_BY_NAME: Mapping[str, Callable[..., Any]] = {
    "sqrt": ew.sqrt,
    "cbrt": ew.cbrt,
    "exp": ew.exp,
    "exp2": ew.exp2,
    "expm1": ew.expm1,
    "log": _log,
    "log1p": ew.log1p,
    "log2": ew.log2,
    "log10": ew.log10,
    "pow": ew.power,
    "sin": ew.sin,
    "cos": ew.cos,
    "tan": ew.tan,
    "asin": ew.asin,
    "acos": ew.acos,
    "atan": ew.atan,
    "atan2": ew.atan2,
    "sinh": ew.sinh,
    "cosh": ew.cosh,
    "tanh": ew.tanh,
    "asinh": ew.asinh,
    "acosh": ew.acosh,
    "atanh": ew.atanh,
    "degrees": lambda x: x * (180.0 / math.pi),
    "radians": lambda x: x * (math.pi / 180.0),
    "hypot": _hypot,
    "floor": lambda x: _to_int(ew.floor(x)),
    "ceil": lambda x: _to_int(ew.ceil(x)),
    "trunc": lambda x: _to_int(ew.trunc(x)),
    "fabs": lambda x: ew.absolute(_to_float(x)),
    "copysign": lambda x, y: wnp.copysign(_to_float(x), _to_float(y)),
    "fmod": lambda x, y: wnp.fmod(_to_float(x), _to_float(y)),
    "remainder": _remainder,
    "isqrt": _isqrt,
    "gcd": lambda *xs: functools.reduce(wnp.gcd, xs),
    "lcm": lambda *xs: functools.reduce(wnp.lcm, xs),
    "comb": _comb,
    "perm": _perm,
    "factorial": _factorial,
    "frexp": _frexp,
    "ldexp": lambda x, i: x * ew.exp2(_to_float(i)),
    "modf": lambda x: wnp.modf(_to_float(x)),
    "nextafter": lambda x, y: wnp.nextafter(_to_float(x), _to_float(y)),
    "ulp": lambda x: wnp.nextafter(ew.absolute(_to_float(x)), math.inf) - ew.absolute(_to_float(x)),
    "dist": _dist,
    "prod": _prod,
    "fsum": lambda xs: reducing.sum(wnp.asarray(xs)),
    "sumprod": lambda p, q: reducing.sum(wnp.asarray(p) * wnp.asarray(q)),
    "fma": lambda x, y, z: x * y + z,
    "isnan": ew.isnan,
    "isinf": ew.isinf,
    "isfinite": ew.isfinite,
    "isclose": _isclose,
    "erf": special.erf,
    "erfc": special.erfc,
    "gamma": special.gamma,
    "lgamma": special.gammaln,
}

STAGED: Mapping[Callable[..., Any], Callable[..., Any]] = {
    getattr(math, name): staged for name, staged in _STAGED_BY_NAME.items() if hasattr(math, name)
}
