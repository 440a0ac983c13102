"""arcsin, arccos, arctan and arctan2 as LLVM IR, without branches.

Coefficients as in `exp.py`.
"""

from __future__ import annotations

from wend.backends.native.math.format import F32, F64
from wend.backends.native.math.ir_dsl import FunctionBuilder, SsaExpr, polynomial

# asin x = x + x z (c0 + c1 z + ...) with z = x^2, |x| <= 1/2
ASIN = {
    F64: (
        *(0.16666666666666669, 0.07499999999998433, 0.04464285714635543, 0.030381944138531247),
        *(0.02237217294214989, 0.017352392720869973, 0.013971212973552933),
        *(0.011479177415184906, 0.01032281435018578, 0.005457506718640358),
        *(0.01740087944269402, -0.014851887071247204, 0.028757851367421566),
    ),
    F32: (
        *(0.1666666567325592, 0.07500094175338745, 0.04459940269589424),
        *(0.031100662425160408, 0.017149237915873528, 0.03369084745645523),
    ),
}
# atan x = x + x z (c0 + c1 z + ...) with z = x^2, |x| <= 1
ATAN = {
    F64: (
        *(-0.3333333333333333, 0.19999999999999554, -0.14285714285648404, 0.11111111107234799),
        *(-0.09090908969557403, 0.07692305354678655, -0.06666636435777692, 0.05882074956371294),
        *(-0.05261265735709454, 0.04752086773576656, -0.04308119655330471, 0.03872640214042632),
        *(-0.033750132001619734, 0.027567942297344678, -0.020238706986393514),
        *(0.012756172907694298, -0.006575683344151699, 0.002622977891906089),
        *(-0.0007518472526973822, 0.0001368724853148122, -1.1832505417555692e-05),
    ),
    F32: (
        *(-0.3333333432674408, 0.19999949634075165, -0.14284004271030426, 0.11088261753320694),
        *(-0.08931826800107956, 0.07031914591789246, -0.04896051436662674),
        *(0.026305001229047775, -0.00914462935179472, 0.001488691894337535),
    ),
}
# pi/2 in two pieces
HALF_PI = {
    F64: (1.5707963267948966, 6.123233995736766e-17),
    F32: (1.5707963705062866, -4.3711390001862426e-08),
}


def asin(b: FunctionBuilder) -> SsaExpr:
    """Return arcsin for all arguments."""
    is_above_half, angle = _asin_parts(b)
    return b.copysign(b.select(is_above_half, _from_half_pi(b, angle * 2.0), angle), b.x)


def acos(b: FunctionBuilder) -> SsaExpr:
    """Return arccos for all arguments."""
    is_above_half, angle = _asin_parts(b)
    high, low = HALF_PI[b.format]
    twice = angle * 2.0
    folded = b.select(b.x < 0.0, (-twice + 2.0 * high) + 2.0 * low, twice)
    return b.select(is_above_half, folded, _from_half_pi(b, b.copysign(angle, b.x)))


def _asin_parts(b: FunctionBuilder) -> tuple[SsaExpr, SsaExpr]:
    """Return whether |x| > 1/2, and asin of sqrt((1 - |x|) / 2) there, of |x| elsewhere.

    asin x = pi/2 - 2 asin sqrt((1 - x) / 2); beyond 1 the root is NaN.
    """
    size = abs(b.x)
    is_above_half = size > 0.5
    z = b.select(is_above_half, (-size + 1.0) * 0.5, size * size)
    t = b.select(is_above_half, b.intrinsic("sqrt", z), size)
    return is_above_half, b.fma(t * z, polynomial(b, z, z * z, ASIN[b.format]), t)


def atan(b: FunctionBuilder) -> SsaExpr:
    """Return arctan for all arguments."""
    size = abs(b.x)
    is_above_one = size > 1.0
    angle = _atan(b, b.select(is_above_one, b.one / size, size))
    return b.copysign(b.select(is_above_one, _from_half_pi(b, angle), angle), b.x)


def atan2(b: FunctionBuilder) -> SsaExpr:
    """Return arctan2 of x and y, in this order, for all arguments."""
    rise, run = abs(b.x), abs(b.y)
    is_steep = rise > run
    larger, smaller = b.select(is_steep, rise, run), b.select(is_steep, run, rise)
    # The quotient inf / inf counts as 1, and 0 / 0 as 0.
    of_equals = b.select(larger.equals(0.0), larger, b.one)
    angle = _atan(b, b.select(larger.equals(smaller), of_equals, smaller / larger))
    angle = b.select(is_steep, _from_half_pi(b, angle), angle)
    high, low = HALF_PI[b.format]
    is_left = b.copysign(1.0, b.y) < 0.0  # -0.0, too
    angle = b.select(is_left, (-angle + 2.0 * high) + 2.0 * low, angle)
    return b.copysign(angle, b.x)


def _atan(b: FunctionBuilder, x: SsaExpr) -> SsaExpr:
    """Return arctan x for 0 <= x <= 1."""
    z = x * x
    return b.fma(x * z, polynomial(b, z, z * z, ATAN[b.format]), x)


def _from_half_pi(b: FunctionBuilder, x: SsaExpr) -> SsaExpr:
    """Return pi/2 - x."""
    high, low = HALF_PI[b.format]
    return (-x + high) + low
