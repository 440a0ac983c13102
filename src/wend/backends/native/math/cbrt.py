"""The cube root as LLVM IR, without a division.

The bits of a number are nearly a multiple of its logarithm, so minus a third of them gives y, about
1 / cbrt(x). A polynomial in e = 1 - x y^3 makes y accurate to 3e-6, and a series then makes x y^2
accurate to all digits.
"""

from __future__ import annotations

from wend.backends.native.math.format import F32, F64
from wend.backends.native.math.ir_dsl import FunctionBuilder, SsaExpr, polynomial

# The low bits that are dropped, and the number from which a third of the others is subtracted; it
# balances the errors at |1 - x y^3| <= 0.1026
LOW_BITS = {F64: 32, F32: 10}
START = {F64: 1430186361, F32: 1386622}
# (1 - e)^(-1/3) for |e| <= 0.1026
START_SERIES = (0.9999979886121004, 0.33333158950674374, 0.2237492620395772, 0.1741633553524502)
# (1 - e)^(-2/3) = 1 + e (c0 + c1 e + ...), for |e| <= 1e-5
FINAL_SERIES = {F64: (2.0 / 3.0, 5.0 / 9.0, 40.0 / 81.0), F32: (2.0 / 3.0, 5.0 / 9.0)}
# Subnormals are scaled by 2 to this power, a multiple of 3
SUBNORMAL_BITS = {F64: 54, F32: 24}


def cbrt(b: FunctionBuilder) -> SsaExpr:
    """Return the cube root for all arguments."""
    size = abs(b.x)
    is_subnormal = size < b.format.smallest_normal
    up = SUBNORMAL_BITS[b.format]
    x = b.select(is_subnormal, size * 2.0**up, size)
    high = ((x.word() >> LOW_BITS[b.format]) + b.format.magic_bits).real() - b.format.magic
    near = b.fma(high, -1.0 / 3.0, b.format.magic + START[b.format])
    y = (near.word() << LOW_BITS[b.format]).real()
    e = b.fma(-(x * y), y * y, 1.0)
    y = y * polynomial(b, e, e * e, START_SERIES)
    root = x * (y * y)
    e = b.fma(-root, y, 1.0)
    root = b.fma(root * e, polynomial(b, e, e * e, FINAL_SERIES[b.format]), root)
    root = root * b.select(is_subnormal, 2.0 ** (-up // 3), 1.0)
    return b.select(b.is_positive_finite(size), b.copysign(root, b.x), b.x)
