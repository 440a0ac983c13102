"""Implementations of the functions of `math` for traced numbers.

Where the result is no number, or too large, they raise what `math` raises: its errors, when run.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from wend import numpy as wnp
from wend.capture.builtins import conversions
from wend.eager.checking import Check, checked, checked_as_python, unhandled
from wend.eager.dispatch import Staged, apply
from wend.eager.promotion import cast, tensor_type
from wend.numpy import elementwise as ew
from wend.numpy import reducing, special
from wend.ops import reducing as ops
from wend.trace.arrays.attributes import class_name, class_of
from wend.trace.control.loops import fori_loop


def _to_int(x: Any) -> Any:
    return cast(x, np.dtype(np.int64))


def _to_float(x: Any) -> Any:
    if not isinstance(x, Staged):
        return float(x)
    return x if tensor_type(x).dtype.kind == "f" else cast(x, np.dtype(np.float64))


def _remainder(x: Any, y: Any) -> Any:
    """Return x minus the nearest multiple of y, ties to the even multiple; exact as in CPython."""
    size, step = ew.absolute(x), ew.absolute(y)
    below = wnp.fmod(size, step)
    above = step - below
    in_tie = below - 2.0 * wnp.fmod(0.5 * (size - below), step)
    nearest = ew.where(below < above, below, ew.where(below > above, -above, in_tie))
    nearest = ew.where(ew.isinf(step), size, nearest)
    return nearest * wnp.copysign(1.0, x)


def _hypot(*xs: Any) -> Any:
    return functools.reduce(ew.hypot, xs) if len(xs) > 1 else ew.absolute(*xs)


def _isclose(a: Any, b: Any, *, rel_tol: float = 1e-9, abs_tol: float = 0.0) -> Any:
    larger = ew.maximum(ew.absolute(a), ew.absolute(b))
    near = ew.absolute(a - b) <= ew.maximum(rel_tol * larger, abs_tol)
    return ew.logical_or(ew.equal(a, b), ew.logical_and(near, ew.isfinite(larger)))


def _isqrt(n: Any) -> Any:
    """Return the root rounded down; the root of a float may be one off."""
    n = checked_as_python(
        _as_integer(n), (n < 0, ValueError, "isqrt() argument must be nonnegative")
    )
    root = wnp.minimum(_to_int(ew.floor(ew.sqrt(_to_float(n)))), _MAX_ROOT)
    root = ew.where(root * root > n, root - 1, root)
    above = wnp.minimum(root + 1, _MAX_ROOT)
    return ew.where(above * above <= n, above, root)


_MAX_ROOT = math.isqrt(2**63 - 1)  # the square of a larger one has more than 64 bits


# All factorials that fit in 64 bits
_FACTORIALS = np.array([math.factorial(n) for n in range(21)])


def _as_integer(x: Any) -> Any:
    """Return an operand that `math` takes as an integer."""
    if not isinstance(x, Staged):
        return operator.index(x)
    type = tensor_type(x)
    if class_of(x) is np.ndarray:
        sizes = [size if isinstance(size, int) else 2 for size in type.dims]
        operator.index(np.ones(sizes, type.dtype))  # NumPy's error
    elif type.dtype.kind not in "iub" or class_of(x) is np.bool_:
        raise TypeError(f"{class_name(x)!r} object cannot be interpreted as an integer")
    return _to_int(x)


def _counts(n: Any, k: Any) -> tuple[Any, Any]:
    n, k = _as_integer(n), _as_integer(k)
    return (
        checked_as_python(n, (n < 0, ValueError, "n must be a non-negative integer")),
        checked_as_python(k, (k < 0, ValueError, "k must be a non-negative integer")),
    )


def _comb(n: Any, k: Any) -> Any:
    """Compute a binomial by products that stay integers; 0 if k exceeds n."""
    n, k = _counts(n, k)
    factors = ew.maximum(ew.minimum(k, n - k), 0)
    return ew.where(k > n, 0, _product_that_fits("comb", n, factors, _next_binomial))


def _next_binomial(n: Any, i: Any, product: Any) -> tuple[Any, Any]:
    """Return `product * (n - i) // (i + 1)` and whether it fits; the product may not."""
    quotient, remainder = product // (i + 1), product % (i + 1)
    carry = remainder * (n - i) // (i + 1)
    return quotient * (n - i) + carry, quotient <= (_MAX_INT - carry) // (n - i)


def _perm(n: Any, k: Any = None) -> Any:
    if k is None:
        return _factorial(n)
    n, k = _counts(n, k)
    factors = ew.where(k > n, 0, k)
    return ew.where(k > n, 0, _product_that_fits("perm", n, factors, _next_falling))


def _next_falling(n: Any, i: Any, product: Any) -> tuple[Any, Any]:
    return product * (n - i), product <= _MAX_INT // (n - i)


def _product_that_fits(name: str, n: Any, factors: Any, following: Computed) -> Any:
    """Return what `following` makes of 1 by the factors; it does not decrease, and fits 64 bits."""

    def body(i: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        product, fits = state
        product, does_fit = following(n, i, product)
        return product, ew.logical_and(fits, does_fit)

    product, fits = fori_loop(0, factors, body, (0 * n + 1, n >= 0))
    return checked(product, _no_int(name, ew.logical_not(fits)))


def _lcm(x: Any, y: Any) -> Any:
    x, y = _as_integer(x), _as_integer(y)
    divisor = wnp.gcd(x, y)
    quotient = x // ew.where(ew.equal(divisor, 0), 1, divisor)
    multiple = ew.absolute(quotient * y)
    is_large = ew.absolute(quotient) > _MAX_INT // ew.maximum(ew.absolute(y), 1)
    return checked(multiple, _no_int("lcm", ew.logical_or(is_large, multiple < 0)))


def _no_int(name: str, is_large: Any) -> Check:
    return is_large, OverflowError, f"the result of {name}() does not fit 64 bits"


_MAX_INT = 2**63 - 1


def _factorial(n: Any) -> Any:
    n = _as_integer(n)
    domain = n < 0, ValueError, "factorial() not defined for negative values"
    size = n >= len(_FACTORIALS), OverflowError, "the factorial of {} does not fit 64 bits"
    n = checked(n, *unhandled(n, domain), size)
    return wnp.take(_FACTORIALS, n)


def _frexp(x: Any) -> tuple[Any, Any]:
    """Return a mantissa in [0.5, 1) and the exponent of 2."""
    mantissa, exponent = wnp.frexp(x)
    return conversions.as_weak(mantissa), conversions.as_weak(_to_int(exponent))


def _dist(p: Any, q: Any) -> Any:
    for x in (p, q):
        if isinstance(x, Staged) and tensor_type(x).shape == ():
            is_array = class_of(x) is np.ndarray
            text = (
                "iteration over a 0-d array"
                if is_array
                else f"{class_name(x)!r} object is not iterable"
            )
            raise TypeError(text)
    p, q = (x if isinstance(x, (Staged, np.ndarray)) else [*x] for x in (p, q))
    if isinstance(p, list) and isinstance(q, list):
        math.dist([0.0] * len(p), [0.0] * len(q))  # Python's error for unequal lengths
        pairs = [[_number(x) for x in pair] for pair in zip(p, q, strict=True)]
        return _hypot(*(x - y for x, y in pairs)) if pairs else 0.0
    difference = ew.absolute(wnp.asarray(p, np.float64) - wnp.asarray(q, np.float64))
    largest = reducing.max(difference, initial=0.0)
    scale = ew.where(ew.logical_and(largest > 0, ew.isfinite(largest)), largest, 1.0)
    parts = difference / scale
    return conversions.as_weak(scale * ew.sqrt(reducing.sum(parts * parts)))


def _prod(xs: Any, *, start: Any = 1) -> Any:
    for x in xs:
        start = start * x
    return start


# Domains
Predicate = Callable[..., Any]
Computed = Callable[..., Any]


def _text(name: str, *arguments: Any) -> str:
    """Return the text of the error that a function raises, with `{}` for a number in it."""
    function = getattr(math, name, None)
    try:
        function and function(*arguments)
    except (ValueError, OverflowError) as error:
        return str(error).replace(f"got {arguments[0]!r}", "got {}")
    return "math domain error"


def _on_domain(name: str, compute: Computed, is_outside: Predicate, sample: float) -> Computed:
    """Return a function that raises a ValueError for numbers outside its domain."""
    text = _text(name, sample)

    def run(x: Any) -> Any:
        return compute(checked_as_python(x, (is_outside(x), ValueError, text)))

    return run


def _bounded(compute: Computed, most: float, size: Computed = lambda x: x) -> Computed:
    """Return a function that raises an OverflowError for finite numbers of a size above `most`.

    The test needs no result: native code makes it before a loop, and vectorizes the loop.
    """

    def run(x: Any) -> Any:
        is_too_large = ew.logical_and(size(x) > most, ew.isfinite(x))
        return checked_as_python(compute(x), (is_too_large, OverflowError, _RANGE_ERROR))

    return run


def _overflow(result: Any, *xs: Any) -> Check:
    is_too_large = ew.isinf(result)
    for x in xs:
        is_too_large = ew.logical_and(is_too_large, ew.isfinite(x))
    return is_too_large, OverflowError, _RANGE_ERROR


_RANGE_ERROR = _text("exp", 1000.0)
# The largest numbers whose exponential is finite, and whose hyperbolic sine is
_MAX_EXPONENT, _MAX_HYPERBOLIC = 709.782712893384, 710.4758600739439
_POLE_ERROR = _text("gamma", -1.0)


def _is_pole(x: Any) -> Any:
    return ew.logical_and(ew.equal(ew.floor(x), x), x <= 0)


def _gamma(x: Any) -> Any:
    x = checked_as_python(x, (_is_pole(x), ValueError, _POLE_ERROR))
    result = special.gamma(x)
    return checked_as_python(result, _overflow(result, x))


def _lgamma(x: Any) -> Any:
    is_pole = ew.logical_and(_is_pole(x), ew.isfinite(x))
    x = checked_as_python(x, (is_pole, ValueError, _text("lgamma", -1.0)))
    size = ew.absolute(x)
    is_tiny = size < 1e-300  # the gamma function of these is 1 / x, which may overflow
    result = special.gammaln(ew.where(ew.isinf(x), size, ew.where(is_tiny, 1.0, x)))
    result = ew.where(is_tiny, -ew.log(ew.where(is_tiny, size, 1.0)), result)
    return checked_as_python(result, _overflow(result, x))


def _pow(x: Any, y: Any) -> Any:
    if isinstance(y, Staged) or y == 0.5:  # NumPy takes the root, which -0.0 and -inf tell
        is_limit = ew.logical_or(ew.equal(x, 0.0), ew.isinf(x))
        x = ew.where(ew.logical_and(is_limit, ew.equal(y, 0.5)), ew.absolute(x), x)
    result = ew.power(x, y)
    are_numbers = ew.logical_and(ew.equal(x, x), ew.equal(y, y))
    is_pole = ew.logical_and(ew.equal(x, 0.0), ew.logical_and(y < 0, ew.isfinite(y)))
    is_outside = ew.logical_or(ew.logical_and(ew.isnan(result), are_numbers), is_pole)
    domain = is_outside, ValueError, _text("pow", -1.0, 0.5)
    return checked_as_python(result, domain, _overflow(result, x, y))


def _modulo(name: str, compute: Computed) -> Computed:
    text = _text(name, 1.0, 0.0)

    def run(x: Any, y: Any) -> Any:
        is_zero = ew.logical_and(ew.equal(y, 0.0), ew.equal(x, x))
        is_outside = ew.logical_or(is_zero, ew.logical_and(ew.isinf(x), ew.equal(y, y)))
        return compute(checked_as_python(x, (is_outside, ValueError, text)), y)

    return run


_log_of_positive = _on_domain("log", ew.log, lambda x: x <= 0, 0.0)


def _log(x: Any, base: Any = None) -> Any:
    return _log_of_positive(x) if base is None else _log_of_positive(x) / _log_of_positive(base)


def _ulp(x: Any) -> Any:
    x = ew.absolute(x)
    above = wnp.nextafter(x, math.inf)
    step = ew.where(ew.isinf(above), x - wnp.nextafter(x, 0.0), above - x)
    return ew.where(ew.isinf(x), x, step)


def _fsum(xs: Any) -> Any:
    """Return the sum rounded once, as `math.fsum` computes it."""
    items = xs if isinstance(xs, (Staged, np.ndarray)) else [_number(x) for x in xs]
    return apply(ops.fsum, wnp.asarray(items, np.float64))


# Name -> implementation for floats; older versions of `math` lack some names.
_OF_FLOATS: Mapping[str, Computed] = {
    "sqrt": _on_domain("sqrt", ew.sqrt, lambda x: x < 0, -1.0),
    "cbrt": ew.cbrt,
    "exp": _bounded(ew.exp, _MAX_EXPONENT),
    "exp2": _bounded(ew.exp2, math.nextafter(1024.0, 0.0)),
    "expm1": _bounded(ew.expm1, _MAX_EXPONENT),
    "log": _log,
    "log1p": _on_domain("log1p", ew.log1p, lambda x: x <= -1, -1.0),
    "log2": _on_domain("log2", ew.log2, lambda x: x <= 0, 0.0),
    "log10": _on_domain("log10", ew.log10, lambda x: x <= 0, 0.0),
    "pow": _pow,
    "sin": _on_domain("sin", ew.sin, ew.isinf, math.inf),
    "cos": _on_domain("cos", ew.cos, ew.isinf, math.inf),
    "tan": _on_domain("tan", ew.tan, ew.isinf, math.inf),
    "asin": _on_domain("asin", ew.asin, lambda x: ew.absolute(x) > 1, 2.0),
    "acos": _on_domain("acos", ew.acos, lambda x: ew.absolute(x) > 1, 2.0),
    "atan": ew.atan,
    "atan2": ew.atan2,
    "sinh": _bounded(ew.sinh, _MAX_HYPERBOLIC, ew.absolute),
    "cosh": _bounded(ew.cosh, _MAX_HYPERBOLIC, ew.absolute),
    "tanh": ew.tanh,
    "asinh": ew.asinh,
    "acosh": _on_domain("acosh", ew.acosh, lambda x: x < 1, 0.5),
    "atanh": _on_domain("atanh", ew.atanh, lambda x: ew.absolute(x) >= 1, 1.0),
    "degrees": lambda x: x * (180.0 / math.pi),
    "radians": lambda x: x * (math.pi / 180.0),
    "hypot": _hypot,
    "fabs": ew.absolute,
    "copysign": wnp.copysign,
    "fmod": _modulo("fmod", wnp.fmod),
    "remainder": _modulo("remainder", _remainder),
    "frexp": _frexp,
    "modf": lambda x: tuple(map(conversions.as_weak, wnp.modf(x))),
    "nextafter": wnp.nextafter,
    "ulp": _ulp,
    "fma": lambda x, y, z: x * y + z,
    "isnan": ew.isnan,
    "isinf": ew.isinf,
    "isfinite": ew.isfinite,
    "isclose": _isclose,
    "erf": special.erf,
    "erfc": special.erfc,
    "gamma": _gamma,
    "lgamma": _lgamma,
}


def _of_floats(compute: Computed) -> Computed:
    """Return a function whose traced operands are converted to floats first."""

    def run(*xs: Any, **options: Any) -> Any:
        return compute(*map(_number, xs), **options)

    return run


def _number(x: Any) -> Any:
    return _as_float(x) if isinstance(x, Staged) else math.ldexp(x, 0)  # with Python's errors


def _as_float(x: Any) -> Any:
    if class_of(x) is complex:
        raise TypeError("must be real number, not complex")
    return conversions.to_float(x)


def _ldexp(x: Any, i: Any) -> Any:
    x, kind = _number(x), class_of(i) if isinstance(i, Staged) else type(i)
    if not issubclass(kind, int):
        raise TypeError("Expected an int as second argument to ldexp.")
    exponent = _to_int(wnp.clip(_as_integer(i), -_EXPONENTS, _EXPONENTS))
    result = wnp.ldexp(x, exponent)
    return checked_as_python(result, _overflow(result, x))


_EXPONENTS = 4096  # beyond these, every number is 0 or too large


# Of integers, of any numbers, or of sequences
_OTHERS: Mapping[str, Computed] = {
    "floor": conversions.floor,
    "ceil": conversions.ceil,
    "trunc": conversions.trunc,
    "isqrt": _isqrt,
    "gcd": lambda *xs: functools.reduce(wnp.gcd, map(_as_integer, xs), 0),
    "lcm": lambda *xs: functools.reduce(_lcm, xs, 1),
    "comb": _comb,
    "perm": _perm,
    "factorial": _factorial,
    "ldexp": _ldexp,
    "dist": _dist,
    "prod": _prod,
    "fsum": _fsum,
    "sumprod": lambda p, q: reducing.sum(wnp.asarray(p) * wnp.asarray(q)),
}

STAGED: Mapping[Callable[..., Any], Callable[..., Any]] = {
    getattr(math, name): staged
    for name, staged in {
        **{name: _of_floats(compute) for name, compute in _OF_FLOATS.items()},
        **_OTHERS,
    }.items()
    if hasattr(math, name)
}
