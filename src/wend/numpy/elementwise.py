"""Elementwise functions: NumPy's ufuncs, with NumPy's dtype promotion."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from wend.eager.dispatch import Staged, any_staged, apply
from wend.eager.promotion import (
    as_array,
    broadcast,
    cast,
    is_weak,
    result_dtype,
    tensor_type,
    wrapped,
)
from wend.ir.dtypes import BOOL, INT64
from wend.ir.op import Op
from wend.numpy.public import STAGED, implements
from wend.numpy.ufuncs import make_ufunc, ufunc
from wend.ops import elementwise as ops
from wend.ops import special

UINT64 = np.dtype(np.uint64)


add = ufunc(np.add, ops.add, bools=ops.bit_or)
subtract = ufunc(np.subtract, ops.sub)
multiply = ufunc(np.multiply, ops.mul, bools=ops.bit_and)
divide = true_divide = ufunc(np.divide, ops.div)
negative = ufunc(np.negative, ops.neg)
floor_divide = ufunc(np.floor_divide, ops.floor_divide)
remainder = mod = ufunc(np.remainder, ops.remainder)
maximum = ufunc(np.maximum, ops.maximum)
minimum = ufunc(np.minimum, ops.minimum)
reciprocal = ufunc(np.reciprocal, ops.reciprocal)

sqrt = ufunc(np.sqrt, ops.sqrt)
cbrt = ufunc(np.cbrt, ops.cbrt)
exp = ufunc(np.exp, ops.exp)
exp2 = ufunc(np.exp2, ops.exp2)
expm1 = ufunc(np.expm1, ops.expm1)
log = ufunc(np.log, ops.log)
log2 = ufunc(np.log2, ops.log2)
log10 = ufunc(np.log10, ops.log10)
log1p = ufunc(np.log1p, ops.log1p)

sin = ufunc(np.sin, ops.sin)
cos = ufunc(np.cos, ops.cos)
tan = ufunc(np.tan, ops.tan)
arcsin = asin = ufunc(np.arcsin, ops.asin)
arccos = acos = ufunc(np.arccos, ops.acos)
arctan = atan = ufunc(np.arctan, ops.atan)
arctan2 = atan2 = ufunc(np.arctan2, ops.atan2)
sinh = ufunc(np.sinh, ops.sinh)
cosh = ufunc(np.cosh, ops.cosh)
tanh = ufunc(np.tanh, ops.tanh)
arcsinh = asinh = ufunc(np.arcsinh, ops.asinh)
arccosh = acosh = ufunc(np.arccosh, ops.acosh)
arctanh = atanh = ufunc(np.arctanh, ops.atanh)

rint = ufunc(np.rint, ops.rint)
bitwise_and = ufunc(np.bitwise_and, ops.bit_and)
bitwise_or = ufunc(np.bitwise_or, ops.bit_or)
bitwise_xor = ufunc(np.bitwise_xor, ops.bit_xor)
bitwise_invert = invert = bitwise_not = ufunc(np.invert, ops.bit_not)
left_shift = bitwise_left_shift = ufunc(np.left_shift, ops.shift_left)
right_shift = bitwise_right_shift = ufunc(np.right_shift, ops.shift_right)


def _comparison(original: np.ufunc, op: Op) -> Callable[..., Any]:
    """Make a comparison, which is by value if integer operands have no common dtype."""

    def compute(x: Any, y: Any) -> Any:
        kinds = tensor_type(x).dtype.kind + tensor_type(y).dtype.kind
        if kinds not in ("iu", "ui"):
            return apply(op, x, y)
        # A negative number is less than any unsigned number.
        signed, signs = (x, (-1, 0)) if kinds == "iu" else (y, (0, -1))
        unsigned = apply(op, wrapped(x, UINT64), wrapped(y, UINT64))
        return where(less(signed, 0), bool(original(*signs)), unsigned)

    by_dtype = make_ufunc(original, compute)

    def by_value(x: Any, y: Any) -> Any:
        for number in (x, y):
            if type(number) is int and not -(2**63) <= number < 2**64:
                return _full_like(
                    y if number is x else x, _compare_out_of_range(original, x, y), BOOL
                )
        x, y = (np.uint64(n) if type(n) is int and n >= 2**63 else n for n in (x, y))
        *dtypes, _ = original.resolve_dtypes((tensor_type(x).dtype, tensor_type(y).dtype, None))
        return compute(*broadcast(*(cast(n, d) for n, d in zip((x, y), dtypes, strict=True))))

    @functools.wraps(by_dtype)
    def function(*xs: Any, **options: Any) -> Any:
        if options or len(xs) != 2 or not any_staged(xs) or is_weak(xs[0]) == is_weak(xs[1]):
            return by_dtype(*xs, **options)
        arrays = [as_array(x) for x in xs]
        are_integers = all(tensor_type(x).dtype.kind in "iu" for x in arrays)
        return by_value(*arrays) if are_integers else by_dtype(*arrays)

    STAGED[original] = function
    return function


def _compare_out_of_range(original: np.ufunc, x: Any, y: Any) -> bool:
    """Compare any integer array with a Python int that is out of range of all its dtypes."""
    return bool(original(*(n if type(n) is int else np.int64(0) for n in (x, y))))


equal = _comparison(np.equal, ops.eq)
not_equal = _comparison(np.not_equal, ops.ne)
less = _comparison(np.less, ops.lt)
less_equal = _comparison(np.less_equal, ops.le)
greater = _comparison(np.greater, ops.gt)
greater_equal = _comparison(np.greater_equal, ops.ge)


def _make_logical(original: np.ufunc, op: Op) -> Callable[..., Any]:
    def prepare(x: Any) -> Any:
        if original.nin == 2 and type(x) is int and not -(2**63) <= x < 2**63:
            raise OverflowError("Python int too large to convert to C long")
        return as_array(x)

    compute = lambda *xs: apply(op, *(cast(x, BOOL) for x in xs))  # noqa: E731
    return make_ufunc(original, compute, prepare=prepare)


logical_and = _make_logical(np.logical_and, ops.bit_and)
logical_or = _make_logical(np.logical_or, ops.bit_or)
logical_xor = _make_logical(np.logical_xor, ops.bit_xor)
logical_not = _make_logical(np.logical_not, ops.bit_not)


def _make_rounding(original: np.ufunc, op: Op) -> Callable[..., Any]:
    """Make a rounding function, which is the identity on integers."""
    return make_ufunc(original, lambda x: apply(op, x) if tensor_type(x).dtype.kind == "f" else x)


def _make_predicate(original: np.ufunc, op: Op, otherwise: bool) -> Callable[..., Any]:
    """Make a predicate that is constant for all but inexact dtypes."""

    def compute(x: Any) -> Any:
        return apply(op, x) if tensor_type(x).dtype.kind in "fc" else _full_like(x, otherwise, BOOL)

    return make_ufunc(original, compute)


def _full_like(like: Any, number: complex, dtype: np.dtype) -> Any:
    """Return an array of one number, with the shape of another array."""
    return broadcast(cast(number, dtype), like)[0]


floor = _make_rounding(np.floor, ops.floor)
ceil = _make_rounding(np.ceil, ops.ceil)
trunc = _make_rounding(np.trunc, ops.trunc)
isnan = _make_predicate(np.isnan, ops.isnan, otherwise=False)
isinf = _make_predicate(np.isinf, ops.isinf, otherwise=False)
isfinite = _make_predicate(np.isfinite, ops.isfinite, otherwise=True)


def _absolute(x: Any) -> Any:
    kind = tensor_type(x).dtype.kind
    if kind == "b":
        return x
    return apply(ops.complex_abs if kind == "c" else ops.abs, x)


def _sign(x: Any) -> Any:
    if tensor_type(x).dtype.kind != "c":
        return apply(ops.sign, x)
    parts, magnitude = (apply(ops.real, x), apply(ops.imag, x)), apply(ops.complex_abs, x)
    # One infinite part determines the direction; with two it is undefined.
    are_both_infinite = isinf(parts[0]) & isinf(parts[1])
    x, y = (where(isinf(magnitude), where(isinf(v), sign(v), 0), v) for v in parts)
    directions = apply(ops.direction, x, y), apply(ops.direction, y, x)
    directions = tuple(where(magnitude == 0, 0, v) for v in directions)
    return apply(ops.complex, *(where(are_both_infinite, np.nan, v) for v in directions))


absolute = abs = make_ufunc(np.absolute, _absolute)
sign = make_ufunc(np.sign, _sign)
positive = make_ufunc(np.positive, lambda x: x)
square = make_ufunc(np.square, lambda x: apply(ops.mul, x, x))
conjugate = conj = make_ufunc(
    np.conjugate, lambda x: apply(ops.conj, x) if tensor_type(x).dtype.kind == "c" else x
)


_power = ufunc(np.power, ops.pow)


@implements(np.power, np.pow)
def power(x: Any, y: Any) -> Any:
    """Return elements of x raised to powers from y; see `numpy.power`.

    The derivative with respect to the base is 0 where the exponent is 0; that with respect to the
    exponent is 0 where the base is 0.
    """
    if type(y) in (int, float) and y == 2 and tensor_type(x).dtype.kind in "fc":
        return multiply(x, x)  # as in NumPy
    if type(y) is float and y == 0.5 and tensor_type(x).dtype in (np.float32, np.float64):
        return sqrt(x)  # as in NumPy: of -0.0 and -inf, the power is another
    return _power(x, y)


pow = power


def operator_power(x: Any, y: Any) -> Any:
    """Return `x ** y`: `square`, `sqrt` or `reciprocal` of an array for those exponents."""
    x_type = tensor_type(x)
    if type(y) in (int, float) and x_type.shape != ():
        if y == 2:
            return square(x)
        if y == 0.5 and x_type.dtype.kind in "fc":
            return sqrt(x)
        if y == -1 and x_type.dtype.kind == "c":
            return reciprocal(x)
    return power(x, y)


hypot = ufunc(np.hypot, ops.hypot)
logaddexp = ufunc(np.logaddexp, special.logaddexp)


@implements(np.real)
def real(x: Any) -> Any:
    """Return the real part of the complex argument; see `numpy.real`."""
    dtype = tensor_type(x).dtype
    if dtype == BOOL and is_weak(x):
        return cast(x, INT64).as_weak()  # of a Python bool, an int
    return apply(ops.real, x) if dtype.kind == "c" else x


@implements(np.imag)
def imag(x: Any) -> Any:
    """Return the imaginary part of the complex argument; see `numpy.imag`."""
    dtype = tensor_type(x).dtype
    return apply(ops.imag, x) if dtype.kind == "c" else _full_like(x, 0, dtype)


# NumPy 2.5 raises OverflowError for a Python int out of range of the dtype, which wrapped before
_WHERE_WRAPS = np.lib.NumpyVersion(np.__version__) < "2.5.0.dev0"


@implements(np.where)
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Return elements chosen from x or y depending on condition; see `numpy.where`.

    Both `x` and `y` are computed; elements that are not selected have derivative 0. If a function
    is not finite there, guard it with `wend.cond`, or with a `where` inside its argument.
    """
    if x is None and y is None:
        return STAGED[np.nonzero](condition)
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    x, y = as_array(x), as_array(y)
    dtype = result_dtype(x, y)
    condition = cast(as_array(condition), BOOL)
    convert = _wrapping_cast if _WHERE_WRAPS else cast
    x, y = (convert(v, dtype) for v in (x, y))
    return apply(ops.select, *broadcast(condition, x, y))


def _wrapping_cast(x: Any, dtype: np.dtype) -> Any:
    if type(x) is int:
        return np.asarray(x).astype(dtype)[()]
    return wrapped(x, dtype) if dtype.kind in "iu" else cast(x, dtype)


@implements(np.clip)
def clip(
    x: Any,
    a_min: Any = None,
    a_max: Any = None,
    *,
    min: Any = None,
    max: Any = None,
) -> Any:
    """Clip (limit) the values in an array; see `numpy.clip`."""
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    dtype = tensor_type(x).dtype
    if dtype.kind in "iu":  # as in NumPy, a Python int may be out of range
        low = None if type(low) is int and low <= np.iinfo(dtype).min else low
        high = None if type(high) is int and high >= np.iinfo(dtype).max else high
        low, high = _within(low, high, np.iinfo(dtype))
    if low is None and high is None:
        return positive(x)
    if low is None or high is None:
        return minimum(x, high) if low is None else maximum(x, low)
    dtype = result_dtype(*map(as_array, (x, low, high)))
    x, low, high = (cast(as_array(v), dtype) for v in (x, low, high))
    return minimum(maximum(x, low), high)


def _within(low: Any, high: Any, limits: np.iinfo) -> tuple[Any, Any]:
    """Return bounds of `clip`, where a traced Python int that bounds nothing is a limit."""
    if isinstance(low, Staged) and low.weak and low.type.dtype.kind == "i":
        low = maximum(low, int(limits.min)).as_weak()
    if isinstance(high, Staged) and high.weak and high.type.dtype.kind == "i":
        high = minimum(high, int(limits.max) & (2**63 - 1)).as_weak()
    return low, high


def graft(x: Any, y: Any) -> Any:
    """Return x with the derivatives of y, which has its value by another formula."""
    return apply(ops.graft, x, cast(y, tensor_type(x).dtype))


def stop_gradient(x: Any) -> Any:
    """Return the same array, as a constant to differentiation.

    Under a `GradientTape` the result is a plain array, so `float(wend.stop_gradient(x))` works.

    Args:
        x: an array of any shape and dtype.

    Example:
        >>> import wend
        >>> wend.grad(lambda x: x * wend.stop_gradient(x))(3.0)
        np.float64(3.0)
    """
    x = as_array(x) if isinstance(x, Staged) else x
    return apply(ops.stop_gradient, x) if isinstance(x, Staged) else x
