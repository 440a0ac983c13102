"""The real and imaginary parts of what elementwise operations on complex numbers give.

The parts are numbers or arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from wend.ir.graph import Value
from wend.ir.op import Op
from wend.ops import elementwise
from wend.ops.build import Build

# (builder, parts of each operand) → the parts of the result, one where it is real
Formula: TypeAlias = Callable[..., Sequence[Value]]
_Pair = tuple[Value, Value]


def _each_part(op: Op) -> Formula:
    """Return the formula of an operation that treats both parts alike."""
    return lambda b, *operands: [b.emit(op, *xs) for xs in zip(*operands, strict=True)]


def _joined(op: Op, join: Op) -> Formula:
    """Return the formula of a predicate that joins what it is of the parts."""
    return lambda b, *operands: [
        b.emit(join, *(b.emit(op, *xs) for xs in zip(*operands, strict=True)))
    ]


def _product(b: Build, x: _Pair, y: _Pair) -> _Pair:
    real = b.sub(b.mul(x[0], y[0]), b.mul(x[1], y[1]))
    return real, b.add(b.mul(x[0], y[1]), b.mul(x[1], y[0]))


def _quotient(b: Build, x: _Pair, y: _Pair) -> _Pair:
    """Divide by the algorithm of R. L. Smith (Communications of the ACM 5, 1962), as NumPy does."""
    sizes = [b.emit(elementwise.abs, part) for part in y]
    is_wide = b.emit(elementwise.ge, *sizes)
    large, small = b.select(is_wide, *y), b.select(is_wide, y[1], y[0])
    ratio = b.div(small, large)
    scale = b.div(b.ones_like(large), b.add(large, b.mul(small, ratio)))
    near, far = b.select(is_wide, *x), b.select(is_wide, x[1], x[0])
    real = b.mul(b.add(near, b.mul(far, ratio)), scale)
    turned = b.select(is_wide, b.sub(x[1], b.mul(x[0], ratio)), b.sub(b.mul(x[1], ratio), x[0]))
    imag = b.mul(turned, scale)
    zero = b.zeros_like(large)
    is_zero = b.emit(elementwise.bit_and, is_wide, b.eq(sizes[0], zero))
    return (
        b.select(is_zero, b.div(x[0], sizes[0]), real),
        b.select(is_zero, b.div(x[1], sizes[0]), imag),
    )


def _reciprocal(b: Build, x: _Pair) -> _Pair:
    """Invert by the same algorithm, in the steps of NumPy."""
    is_wide = b.emit(elementwise.ge, *(b.emit(elementwise.abs, part) for part in x))
    large, small = b.select(is_wide, *x), b.select(is_wide, x[1], x[0])
    ratio, one = b.div(small, large), b.ones_like(large)
    scale = b.add(large, b.mul(small, ratio))
    real = b.div(b.select(is_wide, one, ratio), scale)
    return real, b.div(b.neg(b.select(is_wide, ratio, one)), scale)


def _exponential(b: Build, x: _Pair) -> _Pair:
    """Multiply eˣ by the cosine and the sine, as Annex G of C has them at infinities.

    Where eˣ is not representable the product may be, so a factor of it is apart.
    """
    real, imag = x
    limit = 88.0 if real.tensor.dtype.itemsize == 4 else 709.0
    is_large = b.emit(elementwise.gt, real, b.full_like(real, limit))
    small = b.select(is_large, b.sub(real, b.full_like(real, limit)), real)
    factor = b.select(is_large, b.full_like(real, np.exp(limit)), b.ones_like(real))
    length = b.emit(elementwise.exp, small)
    cosine, sine = (
        b.mul(length, b.mul(b.emit(op, imag), factor)) for op in (elementwise.cos, elementwise.sin)
    )
    zero, infinity = b.zeros_like(real), b.full_like(real, np.inf)
    has_no_angle = b.emit(elementwise.bit_not, b.emit(elementwise.isfinite, imag))
    is_far, is_nothing = (
        b.emit(elementwise.bit_and, has_no_angle, b.eq(real, end))
        for end in (infinity, b.neg(infinity))
    )
    signed_zero = b.select(b.emit(elementwise.signbit, imag), b.neg(zero), zero)
    return (
        b.select(is_nothing, zero, b.select(is_far, infinity, cosine)),
        b.select(is_nothing, signed_zero, b.select(b.eq(imag, zero), imag, sine)),
    )


def _root(b: Build, x: _Pair) -> _Pair:
    """Take the root with a part that is not negative (Kahan, Branch cuts …, 1987).

    Numbers near the largest are scaled, as their absolute value may not be representable, and those
    near the smallest, which have fewer digits.
    """
    sizes, limits = [b.emit(elementwise.abs, part) for part in x], np.finfo(x[0].tensor.dtype)
    size, digits = b.emit(elementwise.maximum, *sizes), limits.nmant + 1
    is_large = b.emit(elementwise.ge, size, b.full_like(size, limits.max / 8))
    is_tiny = b.emit(elementwise.lt, size, b.full_like(size, limits.tiny * 2.0**digits))

    def by_size(large: float, tiny: float) -> Value:
        others = b.select(is_tiny, b.full_like(size, tiny), b.ones_like(size))
        return b.select(is_large, b.full_like(size, large), others)

    scale = by_size(0.25, 4.0**digits)
    scaled = [b.mul(size, scale) for size in sizes]
    half = b.mul(b.add(scaled[0], b.emit(elementwise.hypot, *scaled)), b.full_like(scaled[0], 0.5))
    long = b.emit(elementwise.sqrt, half)
    zero = b.zeros_like(long)
    short = b.select(b.eq(long, zero), zero, b.div(scaled[1], b.add(long, long)))
    back = by_size(2.0, 0.5**digits)
    is_right = b.emit(elementwise.bit_not, b.emit(elementwise.signbit, x[0]))
    real, imag = (b.mul(b.select(is_right, *pair), back) for pair in ((long, short), (short, long)))
    imag = b.select(b.emit(elementwise.signbit, x[1]), b.neg(imag), imag)
    is_vertical = b.emit(elementwise.isinf, x[1])
    return b.select(is_vertical, sizes[1], real), b.select(is_vertical, x[1], imag)


def power(b: Build, x: _Pair, exponent: int) -> _Pair:
    """Multiply repeatedly, in NumPy's order; 0 to a negative power is NaN."""
    zero, one = b.zeros_like(x[0]), b.ones_like(x[0])
    if 1 <= exponent <= 3:
        product = x
        for _ in range(exponent - 1):
            product = _product(b, x, product)
    else:
        product, square = (one, zero), x
        for bit in reversed(f"{abs(exponent):b}"):
            product = _product(b, product, square) if bit == "1" else product
            square = _product(b, square, square)
    if exponent < 0:
        product = _quotient(b, (one, zero), product)
    is_zero = b.emit(elementwise.bit_and, *(b.eq(part, zero) for part in x))
    at_zero = b.full_like(zero, np.nan) if exponent < 0 else zero
    real, imag = (b.select(is_zero, at_zero, part) for part in product)
    return real, imag


# With NumPy's rounding
FORMULAS: Mapping[Op, Formula] = {
    elementwise.real: lambda b, x: x[:1],
    elementwise.imag: lambda b, x: x[1:],
    elementwise.complex: lambda b, x, y: (*x, *y),
    elementwise.conj: lambda b, x: (x[0], b.neg(x[1])),
    **{
        op: _each_part(op)
        for op in (elementwise.add, elementwise.sub, elementwise.neg, elementwise.stop_gradient)
    },
    elementwise.mul: _product,
    elementwise.div: _quotient,
    elementwise.reciprocal: _reciprocal,
    elementwise.eq: _joined(elementwise.eq, elementwise.bit_and),
    elementwise.ne: _joined(elementwise.ne, elementwise.bit_or),
    elementwise.isnan: _joined(elementwise.isnan, elementwise.bit_or),
    elementwise.isinf: _joined(elementwise.isinf, elementwise.bit_or),
    elementwise.isfinite: _joined(elementwise.isfinite, elementwise.bit_and),
}
# Within a few units in the last place: for arrays. Of numbers, C's functions have NumPy's bits.
FUNCTIONS: Mapping[Op, Formula] = {
    elementwise.complex_abs: lambda b, x: [b.emit(elementwise.hypot, *x)],
    elementwise.exp: _exponential,
    elementwise.sqrt: _root,
}
