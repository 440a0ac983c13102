"""Elementwise functions: NumPy's ufuncs, with NumPy's own choice of dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wend.base.errors import TypeMismatchError
from wend.eager.dispatch import Staged, any_staged, apply
from wend.eager.promotion import (
    as_array,
    broadcast,
    cast,
    promotion_kinds,
    result_dtype,
    tensor_type,
)
from wend.ir.dtypes import BOOL
from wend.ir.op import Op
from wend.numpy.public import STAGED, implements
from wend.ops import elementwise as ops


def _ufunc(original: np.ufunc, op: Op, *, bools: Op | None = None) -> Callable[..., Any]:
    """Make the public function of a ufunc; `bools` is what it does to two bools."""

    def function(*xs: Any, **options: Any) -> Any:
        if not any_staged(xs):
            return original(*xs, **options)
        if options:
            raise TypeMismatchError(
                f"{original.__name__} on a traced array takes no {', '.join(options)}; "
                "use the result, and wnp.where in place of where="
            )
        if len(xs) != original.nin:
            raise TypeError(f"{original.__name__} takes {original.nin} arrays, not {len(xs)}")
        arrays = [as_array(x) for x in xs]
        *taken, given = original.resolve_dtypes((*promotion_kinds(arrays), None))
        operands = broadcast(*(cast(x, d) for x, d in zip(arrays, taken, strict=True)))
        chosen = bools if bools is not None and taken[0] == BOOL else op
        return cast(apply(chosen, *operands), given)

    function.__name__ = function.__qualname__ = original.__name__
    function.__doc__ = f"`numpy.{original.__name__}`, for traced arrays as well."
    STAGED[original] = function
    return function


add = _ufunc(np.add, ops.add, bools=ops.bit_or)
subtract = _ufunc(np.subtract, ops.sub)
multiply = _ufunc(np.multiply, ops.mul, bools=ops.bit_and)
divide = true_divide = _ufunc(np.divide, ops.div)
negative = _ufunc(np.negative, ops.neg)
floor_divide = _ufunc(np.floor_divide, ops.floor_divide)
remainder = mod = _ufunc(np.remainder, ops.remainder)
sign = _ufunc(np.sign, ops.sign)
maximum = _ufunc(np.maximum, ops.maximum)
minimum = _ufunc(np.minimum, ops.minimum)
reciprocal = _ufunc(np.reciprocal, ops.reciprocal)

sqrt = _ufunc(np.sqrt, ops.sqrt)
cbrt = _ufunc(np.cbrt, ops.cbrt)
exp = _ufunc(np.exp, ops.exp)
exp2 = _ufunc(np.exp2, ops.exp2)
expm1 = _ufunc(np.expm1, ops.expm1)
log = _ufunc(np.log, ops.log)
log2 = _ufunc(np.log2, ops.log2)
log10 = _ufunc(np.log10, ops.log10)
log1p = _ufunc(np.log1p, ops.log1p)

sin = _ufunc(np.sin, ops.sin)
cos = _ufunc(np.cos, ops.cos)
tan = _ufunc(np.tan, ops.tan)
arcsin = asin = _ufunc(np.arcsin, ops.asin)
arccos = acos = _ufunc(np.arccos, ops.acos)
arctan = atan = _ufunc(np.arctan, ops.atan)
arctan2 = atan2 = _ufunc(np.arctan2, ops.atan2)
sinh = _ufunc(np.sinh, ops.sinh)
cosh = _ufunc(np.cosh, ops.cosh)
tanh = _ufunc(np.tanh, ops.tanh)
arcsinh = asinh = _ufunc(np.arcsinh, ops.asinh)
arccosh = acosh = _ufunc(np.arccosh, ops.acosh)
arctanh = atanh = _ufunc(np.arctanh, ops.atanh)

rint = _ufunc(np.rint, ops.rint)
bitwise_and = _ufunc(np.bitwise_and, ops.bit_and)
bitwise_or = _ufunc(np.bitwise_or, ops.bit_or)
bitwise_xor = _ufunc(np.bitwise_xor, ops.bit_xor)
bitwise_invert = invert = bitwise_not = _ufunc(np.invert, ops.bit_not)
left_shift = bitwise_left_shift = _ufunc(np.left_shift, ops.shift_left)
right_shift = bitwise_right_shift = _ufunc(np.right_shift, ops.shift_right)

equal = _ufunc(np.equal, ops.eq)
not_equal = _ufunc(np.not_equal, ops.ne)
less = _ufunc(np.less, ops.lt)
less_equal = _ufunc(np.less_equal, ops.le)
greater = _ufunc(np.greater, ops.gt)
greater_equal = _ufunc(np.greater_equal, ops.ge)


def _to_bool(x: Any) -> Any:
    x = as_array(x)
    return cast(x, BOOL)


@implements(np.logical_and)
def logical_and(x: Any, y: Any) -> Any:
    """`numpy.logical_and`, for traced arrays as well."""
    return bitwise_and(_to_bool(x), _to_bool(y))


@implements(np.logical_or)
def logical_or(x: Any, y: Any) -> Any:
    """`numpy.logical_or`, for traced arrays as well."""
    return bitwise_or(_to_bool(x), _to_bool(y))


@implements(np.logical_xor)
def logical_xor(x: Any, y: Any) -> Any:
    """`numpy.logical_xor`, for traced arrays as well."""
    return bitwise_xor(_to_bool(x), _to_bool(y))


@implements(np.logical_not)
def logical_not(x: Any) -> Any:
    """`numpy.logical_not`, for traced arrays as well."""
    return invert(_to_bool(x))


def _rounding(original: np.ufunc, op: Op) -> Callable[..., Any]:
    """A rounding function: of whole numbers it is the number itself."""

    def staged(x: Any) -> Any:
        return apply(op, x) if tensor_type(x).dtype.kind == "f" else positive(x)

    staged.__name__ = staged.__qualname__ = original.__name__
    staged.__doc__ = f"`numpy.{original.__name__}`, for traced arrays as well."
    return implements(original)(staged)


def _testing(original: np.ufunc, op: Op, otherwise: bool) -> Callable[..., Any]:
    """A test that only floats can answer differently."""

    def staged(x: Any) -> Any:
        if tensor_type(x).dtype.kind in "fc":
            return apply(op, x)
        return equal(x, x) if otherwise else not_equal(x, x)

    staged.__name__ = staged.__qualname__ = original.__name__
    staged.__doc__ = f"`numpy.{original.__name__}`, for traced arrays as well."
    return implements(original)(staged)


floor = _rounding(np.floor, ops.floor)
ceil = _rounding(np.ceil, ops.ceil)
trunc = _rounding(np.trunc, ops.trunc)
isnan = _testing(np.isnan, ops.isnan, otherwise=False)
isinf = _testing(np.isinf, ops.isinf, otherwise=False)
isfinite = _testing(np.isfinite, ops.isfinite, otherwise=True)


@implements(np.absolute)
def absolute(x: Any) -> Any:
    """`numpy.absolute`, for traced arrays as well; of complex numbers the modulus."""
    kind = tensor_type(x).dtype.kind
    if kind == "b":
        return x
    return apply(ops.complex_abs if kind == "c" else ops.abs, x)


abs = absolute


@implements(np.positive)
def positive(x: Any) -> Any:
    """`numpy.positive`, for traced arrays as well."""
    return x


@implements(np.square)
def square(x: Any) -> Any:
    """`numpy.square`, for traced arrays as well."""
    return multiply(x, x)


_power = _ufunc(np.power, ops.pow)


@implements(np.power, np.pow)
def power(x: Any, y: Any) -> Any:
    """`numpy.power`, for traced arrays as well.

    Its derivative is 0 in the base where the exponent is 0, and 0 in the exponent where the base
    is 0.
    """
    if type(y) in (int, float) and y == 2 and tensor_type(x).dtype.kind in "fc":
        return multiply(x, x)  # as NumPy does
    return _power(x, y)


pow = power


@implements(np.hypot)
def hypot(x: Any, y: Any) -> Any:
    """`numpy.hypot`, for traced arrays as well; safe against overflow."""
    x, y = absolute(x), absolute(y)
    big, small = maximum(x, y), minimum(x, y)
    ratio = small / where(big == 0, 1, big)
    return big * sqrt(1 + ratio * ratio)


@implements(np.logaddexp)
def logaddexp(x: Any, y: Any) -> Any:
    """`numpy.logaddexp`, for traced arrays as well."""
    big, small = maximum(x, y), minimum(x, y)
    gap = where(big == small, 0.0, small - big)
    return big + log1p(exp(gap))


@implements(np.real)
def real(x: Any) -> Any:
    """`numpy.real`, for traced arrays as well."""
    return apply(ops.real, x) if tensor_type(x).dtype.kind == "c" else x


@implements(np.imag)
def imag(x: Any) -> Any:
    """`numpy.imag`, for traced arrays as well."""
    return apply(ops.imag, x) if tensor_type(x).dtype.kind == "c" else multiply(x, 0)


@implements(np.conjugate)
def conjugate(x: Any) -> Any:
    """`numpy.conjugate`, for traced arrays as well."""
    return apply(ops.conj, x) if tensor_type(x).dtype.kind == "c" else x


conj = conjugate


@implements(np.where)
def where(condition: Any, x: Any, y: Any) -> Any:
    """`numpy.where` of three arguments, for traced arrays as well.

    An element that is not chosen has derivative 0, but is computed: guard a function that is not
    finite there by `wend.cond`, or inside its argument.
    """
    x, y = as_array(x), as_array(y)
    dtype = result_dtype(x, y)
    condition = _to_bool(condition)
    return apply(ops.select, *broadcast(condition, cast(x, dtype), cast(y, dtype)))


@implements(np.clip)
def clip(x: Any, min: Any = None, max: Any = None) -> Any:
    """`numpy.clip`, for traced arrays as well."""
    if min is not None:
        x = maximum(x, min)
    return x if max is None else minimum(x, max)


def stop_gradient(x: Any) -> Any:
    """The same array, as a constant to every derivative.

    Args:
        x: an array of any shape and dtype.

    Example:
        >>> import wend
        >>> wend.grad(lambda x: x * wend.stop_gradient(x))(3.0)
        np.float64(3.0)
    """
    return apply(ops.stop_gradient, x) if isinstance(x, Staged) else x
