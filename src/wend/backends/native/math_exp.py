"""exp, expm1 and tanh as LLVM IR, scalar and over vectors by the same text.

exp x = 2^k exp r with |r| <= ln(2)/2, subtracting k ln 2 in two pieces (Cody & Waite).
Coefficients: Remez exchange in 240-bit arithmetic (mpmath) on |r| <= ln(2)/2 widened by 2**-20,
the first left exact, the others rounded to double one by one while the rest were fitted again.
Largest error: 2.2e-17 relative to expm1 r, where half an ulp is at most 1.1e-16.
"""

from __future__ import annotations

from wend.backends.native.math_body import (
    COLD,
    INLINE,
    MAGIC,
    MAGIC_BITS,
    Body,
    Term,
    estrin,
)

# expm1 r = r + r^2 (c0 + c1 r + ...)
EXPM1 = (
    0.5000000000000007,
    0.166666666666667,
    0.0416666666665606,
    0.008333333333291133,
    0.0013888888936625487,
    0.00019841269992038464,
    2.4801499318858973e-05,
    2.755711191011926e-06,
    2.762837616574091e-07,
    2.5163051357342003e-08,
)
LOG2_E = 1.4426950408889634
LN2 = (0.6931471805599453, 2.3190468138462996e-17)  # in two pieces: hi + lo
BIAS = 1023
EPSILON = 2.0**-54  # below, expm1 x and x are the same double


def exp_common() -> str:
    """Return exp for |x| <= 708, where 2^k is a normal number; other arguments go to `exp.edge`."""
    b = Body()
    b.go_on_if((abs(b.x) <= 708.0).name, otherwise="edge")
    near = b.fma(b.x, LOG2_E, MAGIC)
    b.ret(_exp(b, b.x, near - MAGIC, _power_of_two(near.word())))
    b.label("edge")
    b.ret(b.emit("real", "call double @wend.exp.edge(double %x)"))
    return b.definition("exp")


def exp_everywhere(lanes: int, name: str) -> str:
    """Return exp for all arguments, as a function of this name.

    2^k is applied in two normal halves, so that results overflow and underflow as they should:
    the second product is the only rounding of a subnormal result.
    """
    b = Body(lanes)
    x = b.at_least(b.at_most(b.x, 710.0), -746.0)
    near = b.fma(x, LOG2_E, MAGIC)
    k = near.word() - (MAGIC_BITS - 2 * BIAS)  # positive, since shifts fill with zeros
    half = k >> 1
    first, second = (half << 52).real(), ((k - half) << 52).real()
    b.ret(_exp(b, x, near - MAGIC, first) * second)
    return b.definition(name, attributes=COLD if lanes == 1 else INLINE)


def _exp(b: Body, x: Term, k: Term, power: Term) -> Term:
    """Return power * exp(x - k ln 2).

    The low piece of the reduction multiplies `power` instead of holding up r:
    exp(r - low) = exp(r) (1 - low) as low^2 < 2**-90.
    """
    r = b.fma(-k, LN2[0], x)
    power = b.fma(-power, k * LN2[1], power)
    near_zero, r4, rest = _expm1_parts(b, r)
    return b.fma(r4 * power, rest, b.fma(power, near_zero, power))


def _expm1_parts(b: Body, r: Term) -> tuple[Term, Term, Term]:
    """Return u, r^4 and v such that expm1 r = u + r^4 v."""
    r2 = r * r
    near_zero = b.fma(r2, b.fma(r, EXPM1[1], EXPM1[0]), r)
    return near_zero, r2 * r2, estrin(b, r, r2, EXPM1[2:])


def _power_of_two(k: Term) -> Term:
    """Return 2^k from words whose low 12 bits are k."""
    return ((k << 52) + (BIAS << 52)).real()


def _scaled_expm1(b: Body, x: Term) -> tuple[Term, Term, Term]:
    """Return k as words, 2^k and expm1(x - k ln 2), accurate also relative to itself."""
    near = b.fma(x, LOG2_E, MAGIC)
    k = near - MAGIC
    r = b.fma(-k, LN2[1], b.fma(-k, LN2[0], x))
    near_zero, r4, rest = _expm1_parts(b, r)
    return near.word(), _power_of_two(near.word()), b.fma(r4, rest, near_zero)


def expm1(lanes: int, name: str) -> str:
    """Return expm1 for all arguments."""
    b = Body(lanes)
    k, _, small = _scaled_expm1(b, b.at_least(b.at_most(b.x, 710.0), -60.0))
    half = _power_of_two(k - 1)  # 2^1024 would overflow where the result does not yet
    grown = b.fma(half, small, half - 0.5) * 2.0
    b.ret(b.select(abs(b.x) < EPSILON, b.x, grown))
    return b.definition(name)


def tanh(lanes: int, name: str) -> str:
    """Return tanh for all arguments: expm1(2|x|) / (expm1(2|x|) + 2) with the sign of x."""
    b = Body(lanes)
    # tanh 22 is 1 but for 2**-63
    _, power, small = _scaled_expm1(b, b.at_most(abs(b.x), 22.0) * 2.0)
    above = b.fma(power, small, power - 1.0)
    below = b.fma(power, small, power + 1.0)
    b.ret(b.copysign(above / below, b.x))
    return b.definition(name)
