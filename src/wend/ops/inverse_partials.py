"""Partial derivatives of the inverse trigonometric and hyperbolic functions.

They are accurate near ±1 and near 0, do not overflow, and follow the cuts of complex functions.
"""

from __future__ import annotations

from typing import Any

from wend.ir.op import TABLE


def _one_plus(b: Any, x: Any) -> Any:
    """1 + x; the sign of a zero imaginary part, which names the side of a cut, stays."""
    if x.type.dtype.kind != "c":
        return b.add(x, b.ones_like(x))
    part = b.real(x)
    return b.complex(b.add(part, b.ones_like(part)), b.imag(x))


def _is_small(b: Any, x: Any, square: Any) -> Any:
    """|x| < ½, with the square of x."""
    size = square if x.type.dtype.kind != "c" else b.add(b.square(b.real(x)), b.square(b.imag(x)))
    return b.lt(size, b.full_like(size, 0.25))


def _one_minus_square(b: Any, x: Any) -> tuple[Any, Any]:
    """Factors of 1 − x²: (1 − x)·(1 + x), which is accurate near ±1, and itself near 0."""
    square = b.square(x)
    is_small = _is_small(b, x, square)
    return (
        b.select(is_small, b.one_minus(square), _one_plus(b, b.neg(x))),
        b.select(is_small, b.ones_like(x), _one_plus(b, x)),
    )


def root_of_one_minus_square(b: Any, x: Any) -> Any:
    """Return √(1 − x²); of complex numbers that of two roots, which the cuts need."""
    factors = _one_minus_square(b, x)
    is_complex = x.type.dtype.kind == "c"
    return b.mul(*map(b.sqrt, factors)) if is_complex else b.sqrt(b.mul(*factors))


def _turned(b: Any, x: Any) -> Any:
    """i·x, of which asin and atanh are those of x with an h, and without it, times i."""
    return b.complex(b.neg(b.imag(x)), b.real(x))


def asinh_partial(b: Any, x: Any) -> Any:
    """Return 1/√(1 + x²)."""
    if x.type.dtype.kind != "c":
        return b.reciprocal(b.emit(TABLE["hypot"], x, b.ones_like(x)))
    return b.reciprocal(root_of_one_minus_square(b, _turned(b, x)))


def atanh_partial(b: Any, x: Any) -> Any:
    """Return 1/(1 − x²)."""
    factors = _one_minus_square(b, x)
    # Of large complex numbers the product overflows, and has NaN for infinity.
    is_complex = x.type.dtype.kind == "c"
    return b.mul(*map(b.reciprocal, factors)) if is_complex else b.reciprocal(b.mul(*factors))


def atan_partial(b: Any, x: Any) -> Any:
    """Return 1/(1 + x²)."""
    if x.type.dtype.kind == "c":
        return atanh_partial(b, _turned(b, x))
    quotient = b.reciprocal(b.add(b.ones_like(x), b.square(x)))
    # Its own derivatives divide by powers of x² that overflow.
    return b.emit(TABLE["graft"], quotient, b.square(b.emit(TABLE["direction"], b.ones_like(x), x)))


def acosh_partial(b: Any, x: Any) -> Any:
    """Return 1/(√(x − 1)·√(x + 1))."""
    below = b.sub(x, b.ones_like(x))
    quotient = b.reciprocal(b.mul(b.sqrt(below), b.sqrt(_one_plus(b, x))))
    if x.type.dtype.kind != "c":
        return quotient
    # Near 0, where derivatives of the two roots cancel, it is ∓i/√(1 − x²).
    is_small = _is_small(b, x, b.square(x))
    small = b.select(is_small, x, b.zeros_like(x))
    side = b.imag(x)
    one = b.ones_like(side)
    sign = b.select(b.emit(TABLE["signbit"], side), one, b.neg(one))
    turned = b.complex(b.zeros_like(side), sign)
    return b.select(is_small, b.div(turned, b.sqrt(b.one_minus(b.square(small)))), quotient)
