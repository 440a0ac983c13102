"""sinh and cosh as LLVM IR, without a division.

x = k ln 2 + r, and by the addition theorems sinh x = sinh r cosh(k ln 2) + cosh r sinh(k ln 2), and
cosh x likewise: the second factors are sums of two powers of two, the first ones short polynomials
in r^2. Coefficients as in `exp.py`.
"""

from __future__ import annotations

from wend.backends.native.math.exp import LOG2_E, power_of_two, subtract_multiple_of_ln2
from wend.backends.native.math.format import F32, F64
from wend.backends.native.math.ir_dsl import FunctionBuilder, SsaExpr, polynomial

# sinh r = r + r z (c0 + c1 z + ...) with z = r^2
SINH = {
    F64: (
        *(0.16666666666666669, 0.008333333333330051, 0.00019841269863105952),
        *(2.7557268378709608e-06, 2.5100424144926963e-08),
    ),
    F32: (0.1666666716337204, 0.00833331048488617, 0.00019891030387952924),
}
# cosh r = 1 + z (c0 + c1 z + ...)
COSH = {
    F64: (
        *(0.5000000000000001, 0.04166666666662399, 0.0013888888917281772),
        *(2.4801521190250773e-05, 2.762013870402797e-07),
    ),
    F32: (0.5, 0.041666463017463684, 0.0013933685841038823),
}
OVERFLOW_BOUND = {F64: 710.6, F32: 89.5}  # sinh and cosh are infinite above
MAX_NEGATIVE_EXPONENT = {F64: 200.0, F32: 60.0}  # for larger k 2^-k is negligible beside 2^k


def sinh(b: FunctionBuilder) -> SsaExpr:
    """Return sinh for all arguments."""
    sine, cosine, grown, small = _parts(b)
    result = b.fma(sine, grown + small, cosine * (grown - small)) * 2.0
    return b.select(abs(b.x) < b.format.epsilon, b.x, b.copysign(result, b.x))


def cosh(b: FunctionBuilder) -> SsaExpr:
    """Return cosh for all arguments."""
    sine, cosine, grown, small = _parts(b)
    return b.fma(cosine, grown + small, sine * (grown - small)) * 2.0


def _parts(b: FunctionBuilder) -> tuple[SsaExpr, SsaExpr, SsaExpr, SsaExpr]:
    """Return sinh r, cosh r, 2^k/4 and 2^-k/4 of |x|; 2^k/2 would overflow before sinh does."""
    magic = b.format.magic
    x = b.at_most(abs(b.x), OVERFLOW_BOUND[b.format])
    near = b.fma(x, LOG2_E, magic)
    k = near - magic
    r = subtract_multiple_of_ln2(b, x, k)
    z = r * r
    z2 = z * z
    sine = b.fma(r * z, polynomial(b, z, z2, SINH[b.format]), r)
    cosine = b.fma(z, polynomial(b, z, z2, COSH[b.format]), 1.0)
    negated = -b.at_most(k, MAX_NEGATIVE_EXPONENT[b.format]) + magic
    return sine, cosine, power_of_two(b, near.word() - 2), power_of_two(b, negated.word() - 2)
