"""exp, exp2, expm1, tanh and expit as LLVM IR, scalar and over vectors by the same code.

exp x = 2^k exp r with |r| <= ln(2)/2, subtracting k ln 2 in two pieces (Cody & Waite).
Coefficients of f64's expm1: Remez exchange in 240-bit arithmetic (mpmath) on |r| <= ln(2)/2 widened
by 2**-20, the first left exact, the others rounded to double one by one while the rest were fitted
again. Largest error: 2.2e-17 relative to expm1 r, where half an ulp is at most 1.1e-16. The others
here and in its neighbours: Chebyshev interpolation in 300-bit arithmetic (mpmath's chebyfit), of
the lowest degree whose error is below a sixth of an ulp of the result.
"""

from __future__ import annotations

from wend.backends.native.math.avx512 import scaled
from wend.backends.native.math.format import F32, F64
from wend.backends.native.math.ir_dsl import FunctionBuilder, SsaExpr, polynomial

# expm1 r = r + r^2 (c0 + c1 r + ...)
EXPM1 = {
    F64: (
        *(0.5000000000000007, 0.166666666666667, 0.0416666666665606, 0.008333333333291133),
        *(0.0013888888936625487, 0.00019841269992038464, 2.4801499318858973e-05),
        *(2.755711191011926e-06, 2.762837616574091e-07, 2.5163051357342003e-08),
    ),
    F32: (
        *(0.5, 0.1666666716337204, 0.041666463017463684),
        *(0.00833331048488617, 0.0013933731243014336, 0.000198910798644647),
    ),
}
# 2^r = 1 + r (c0 + c1 r + ...) for |r| <= 1/2
EXP2 = {
    F64: (
        *(0.6931471805599453, 0.24022650695910097, 0.0555041086648216),
        *(0.009618129107606888, 0.0013333558146416936, 0.0001540353044173605),
        *(1.5252733829836116e-05, 1.321544258792169e-06, 1.0178062445847076e-07),
        *(7.072585949269223e-09, 4.4549605979970973e-10),
    ),
    F32: (
        *(0.6931471824645996, 0.24022650718688965, 0.055503569543361664),
        *(0.009618083015084267, 0.0013390863314270973, 0.00015453163359779865),
    ),
}
LOG2_E = 1.4426950408889634
# ln 2 in two pieces, hi + lo
LN2 = {
    F64: (0.6931471805599453, 2.3190468138462996e-17),
    F32: (0.6931471824645996, -1.904654299957768e-09),
}
# exp and 2^x are 0 or infinite outside of these ranges.
EXP_RANGE = {F64: (-746.0, 710.0), F32: (-104.0, 89.0)}
EXP2_RANGE = {F64: (-1076.0, 1025.0), F32: (-151.0, 129.0)}
EXPM1_LOWEST = {F64: -60.0, F32: -30.0}  # expm1 x is -1 below
TANH_HIGHEST = {F64: 22.0, F32: 10.0}  # tanh 22 is 1 but for 2**-63


def exp_common() -> str:
    """Return exp for |x| <= 708, where 2^k is a normal number; other arguments go to `exp.edge`."""
    b = FunctionBuilder()
    b.branch_unless(abs(b.x) <= 708.0, otherwise="edge")
    near = b.fma(b.x, LOG2_E, b.format.magic)
    k = near - b.format.magic
    high, low = LN2[b.format]
    r = b.fma(-k, high, b.x)
    # The low piece of the reduction multiplies `power` instead of delaying r:
    # exp(r - low) = exp(r) (1 - low) as low^2 is far below an ulp of 1.
    power = power_of_two(b, near.word())
    power = b.fma(-power, k * low, power)
    near_zero, r4, tail = _expm1_parts(b, r)
    b.ret(b.fma(r4 * power, tail, b.fma(power, near_zero, power)))
    b.label("edge")
    b.ret(b.emit("real", "call double @wend.exp.edge(double %x)"))
    return b.definition("exp")


def exp(b: FunctionBuilder) -> SsaExpr:
    """Return exp for all arguments."""
    return full_range_exp(b, b.x)


def full_range_exp(b: FunctionBuilder, x: SsaExpr, low: SsaExpr | None = None) -> SsaExpr:
    """Return exp(x + low) for all x; low is far below 1."""
    lowest, highest = EXP_RANGE[b.format]
    near, k, grown = _exp(b, b.at_least(b.at_most(x, highest), lowest), low)
    return _scaled(b, grown, near, k)


def normal_exp(b: FunctionBuilder, x: SsaExpr, low: SsaExpr) -> SsaExpr:
    """Return exp(x + low), bit-identical to `full_range_exp`, where 2^k is normal."""
    near, k, grown = _exp(b, x, low)
    return scaled(grown, k) if b.uses_avx512 else grown * power_of_two(b, near.word())


def exp2(b: FunctionBuilder) -> SsaExpr:
    """Return 2^x for all arguments: exact where x is an integer."""
    lowest, highest = EXP2_RANGE[b.format]
    x = b.at_least(b.at_most(b.x, highest), lowest)
    near = x + b.format.magic
    k = near - b.format.magic
    r = x - k
    return _scaled(b, b.fma(r, polynomial(b, r, r * r, EXP2[b.format]), 1.0), near, k)


def _exp(b: FunctionBuilder, x: SsaExpr, low: SsaExpr | None) -> tuple[SsaExpr, SsaExpr, SsaExpr]:
    """Return k + magic, k, and exp(x + low - k ln 2)."""
    near = b.fma(x, LOG2_E, b.format.magic)
    k = near - b.format.magic
    r = subtract_multiple_of_ln2(b, x, k)
    return near, k, _expm1(b, r if low is None else r + low) + 1.0


def _scaled(b: FunctionBuilder, x: SsaExpr, near: SsaExpr, k: SsaExpr) -> SsaExpr:
    """Return x 2^k for x about 1; `near` is k + magic.

    Without AVX-512 x is multiplied by two normal powers, so that results overflow and underflow
    correctly: the second product is the only rounding of a subnormal result.
    """
    if b.uses_avx512:
        return scaled(x, k)
    # Biased to be positive, as shifts fill with zeros.
    doubled = near.word() - (b.format.magic_bits - 2 * b.format.bias)
    half, digits = doubled >> 1, b.format.digits
    return x * (half << digits).real() * ((doubled - half) << digits).real()


def _expm1(b: FunctionBuilder, r: SsaExpr) -> SsaExpr:
    """Return expm1 r for |r| <= ln(2)/2."""
    if b.is_loop:
        r2 = r * r
        return b.fma(r2, polynomial(b, r, r2, EXPM1[b.format]), r)
    near_zero, r4, tail = _expm1_parts(b, r)
    return b.fma(r4, tail, near_zero)


def _expm1_parts(b: FunctionBuilder, r: SsaExpr) -> tuple[SsaExpr, SsaExpr, SsaExpr]:
    """Return u, r^4 and v such that expm1 r = u + r^4 v."""
    coefficients = EXPM1[b.format]
    r2 = r * r
    near_zero = b.fma(r2, b.fma(r, coefficients[1], coefficients[0]), r)
    return near_zero, r2 * r2, polynomial(b, r, r2, coefficients[2:])


def power_of_two(b: FunctionBuilder, k: SsaExpr) -> SsaExpr:
    """Return 2^k from words whose low bits are k."""
    return ((k << b.format.digits) + (b.format.bias << b.format.digits)).real()


def _reduce(b: FunctionBuilder, x: SsaExpr) -> tuple[SsaExpr, SsaExpr]:
    """Return k as words, and x - k ln 2."""
    near = b.fma(x, LOG2_E, b.format.magic)
    return near.word(), subtract_multiple_of_ln2(b, x, near - b.format.magic)


def subtract_multiple_of_ln2(b: FunctionBuilder, x: SsaExpr, k: SsaExpr) -> SsaExpr:
    """Return x - k ln 2."""
    high, low = LN2[b.format]
    return b.fma(-k, low, b.fma(-k, high, x))


def expm1(b: FunctionBuilder) -> SsaExpr:
    """Return expm1 for all arguments."""
    x = b.at_least(b.at_most(b.x, EXP_RANGE[b.format][1]), EXPM1_LOWEST[b.format])
    k, r = _reduce(b, x)
    half = power_of_two(b, k - 1)  # 2^1024 would overflow before the result does
    grown = b.fma(half, _expm1(b, r), half - 0.5) * 2.0
    return b.select(abs(b.x) < b.format.epsilon, b.x, grown)


def tanh(b: FunctionBuilder) -> SsaExpr:
    """Return tanh for all arguments: expm1(2|x|) / (expm1(2|x|) + 2) with the sign of x."""
    k, r = _reduce(b, b.at_most(abs(b.x), TANH_HIGHEST[b.format]) * 2.0)
    power = power_of_two(b, k)
    above = b.fma(power, _expm1(b, r), power - 1.0)
    return b.copysign(above / (above + 2.0), b.x)


def expit(b: FunctionBuilder) -> SsaExpr:
    """Return 1 / (1 + exp(-x)) for all arguments, accurate also where it is small."""
    e = full_range_exp(b, -abs(b.x))
    return b.select(b.x < 0.0, e, 1.0) / (e + 1.0)
