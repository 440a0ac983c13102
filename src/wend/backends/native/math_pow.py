"""pow as LLVM IR, without branches: exp(y log|x|), and signs and limits by C's rules.

An error of the logarithm is multiplied by up to 745, so it is computed as a sum of two numbers
(f64 alone: a power of f32 is one of f64, rounded). Its series is that of `math_log` with two terms
more kept exact. Coefficients as in `math_exp`, to 2**-68 of the logarithm.
"""

from __future__ import annotations

from wend.backends.native.math_body import Body, Term, polynomial
from wend.backends.native.math_exp import whole_exp
from wend.backends.native.math_format import F64
from wend.backends.native.math_log import fraction, log_of_sum, made_normal

# log(1 + f) = 2s + s z (2/3 + z (c0 + c1 z + ...)) with s = f / (2 + f), z = s^2
TAIL = (
    0.4,
    0.2857142857142937,
    0.22222222221654733,
    0.1818181833565416,
    0.15384594934597917,
    0.13334806212100603,
    0.11706195689881364,
    0.11723603622905411,
)
TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
LN2 = (0.6931471805598903, 5.497923018708371e-14)  # the first with room for 11 more bits


def pow(name: str, *, short: bool) -> str:
    """Return x to the power of y for all arguments; if short, for numbers that f32 holds."""
    b = Body.of_loop(F64)
    size = abs(b.x)
    x, shift = made_normal(b, size)
    if short:
        high, low = log_of_sum(b, x, None, shift), None
    else:
        high, low = _precise_log(b, x, shift)
    limit = b.select(size.equals(0.0), -float("inf"), size)
    high = b.select((size > 0.0) & (size < float("inf")), high, limit)
    product = b.y * high
    lost: Term | None = None
    if low is not None:
        lost = b.fma(b.y, low, b.fma(b.y, high, -product))
        lost = b.select(abs(product) < 1000.0, lost, 0.0)
    b.ret(_with_rules(b, size, whole_exp(b, product, lost)))
    return b.definition(name, arguments="xy")


def _precise_log(b: Body, x: Term, shift: Term) -> tuple[Term, Term]:
    """Return log x + shift ln 2, for normal x > 0, as a sum of two numbers."""
    count, f, _ = fraction(b, x, shift)
    below = f + 2.0
    inverse = b.one / below
    s = f * inverse
    s_low = (b.fma(-s, below, f) - s * (f - (below - 2.0))) * inverse
    z = s * s
    z_low = b.fma(s, s, -z) + (s * s_low) * 2.0
    cube = s * z
    cube_low = b.fma(s, z, -cube) + b.fma(s, z_low, s_low * z)
    third = cube * TWO_THIRDS[0]
    third_low = b.fma(cube, TWO_THIRDS[0], -third) + b.fma(
        cube, TWO_THIRDS[1], cube_low * TWO_THIRDS[0]
    )
    first = s * 2.0
    inner = first + third
    rest = (third - (inner - first)) + b.fma(s_low, 2.0, third_low)
    rest = b.fma(cube * z, polynomial(b, z, z * z, TAIL), rest)
    whole = count * LN2[0]  # exact
    rough = whole + inner
    rest = (whole - rough) + inner + b.fma(count, LN2[1], rest)
    high = rough + rest
    return high, rest - (high - rough)


def _with_rules(b: Body, size: Term, power: Term) -> Term:
    """Return the power of x, given that of |x|."""
    half = b.y * 0.5
    is_whole = b.intrinsic("rint", b.y).equals(b.y)
    is_odd = is_whole & (b.intrinsic("rint", half).equals(half) ^ 1)
    is_negative = b.copysign(1.0, b.x) < 0.0
    power = b.select(size.equals(1.0) & b.y.equals(b.y), 1.0, power)
    signed = b.select(is_negative & is_odd, -power, power)
    has_none = (b.x < 0.0) & (size < float("inf")) & (is_whole ^ 1)
    signed = b.select(has_none, float("nan"), signed)
    return b.select(b.x.equals(1.0) | b.y.equals(0.0), 1.0, signed)
