"""pow as LLVM IR: exp(y log|x|), with the special cases of the C standard.

Most powers have a positive base and neither overflow nor underflow: they are not special. A vector
function tests whether all of its lanes are common, else it calls one that handles special cases.

The error of the logarithm is multiplied by up to 745, so for f64 it is computed as a sum of two
numbers, by the series of `log.py` with two more terms kept exact. A power of f32 is computed in f64
and rounded, by polynomials just long enough for f32. Coefficients as in `exp.py`, those of f64 to
2**-68 of the logarithm.
"""

from __future__ import annotations

from wend.backends.native.math.exp import full_range_exp, normal_exp, power_of_two
from wend.backends.native.math.format import F64, Format
from wend.backends.native.math.ir_dsl import FunctionBuilder, SsaExpr, polynomial
from wend.backends.native.math.log import fraction, normalized

# log(1 + f) = 2s + s z (2/3 + z (c0 + c1 z + ...)) with s = f / (2 + f), z = s^2
TAIL = (
    *(0.39999999999999725, 0.2857142857157731, 0.22222222191249552, 0.18181821525904443),
    *(0.15384406650444832, 0.13341144692292922, 0.11592351218836211, 0.1257150114034289),
)
TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
LN2 = (0.6931471805598903, 5.497923018708371e-14)  # the first with room for 11 more bits
# log2(1 + f) = f (c0 + c1 f + ...) from 3/4 to 3/2, within 2**-33
SHORT_LOG2 = (
    *(1.442695040994508, -0.7213475168565446, 0.48089828221235403, -0.3606743592948937),
    *(0.2885460245451372, -0.24042822277442696, 0.20582037524112567, -0.1803144975092003),
    *(0.16465709274961873, -0.15287130962962106, 0.11550527780069596, -0.044955495514818304),
)
# 2^r = 1 + r (c0 + c1 r + ...) for |r| <= 1/2, within 2**-28
SHORT_EXP2 = (
    *(0.6931471880262288, 0.24022650760568126, 0.05550357114219078),
    *(0.009618082557277852, 0.0013390863364671234, 0.0001545316294512069),
)
# The largest |y log|x|| that is not special; for f32, with logarithms to the base 2, the power is
# then outside of f32 and far from the limits of f64
MAX_LOG, MAX_LOG2_F32 = 600.0, 1000.0


def pow(b: FunctionBuilder, general: str) -> None:
    """Emit x to the power of y; `general` is called if a lane is a special case."""
    format = b.format
    if format == F64:
        product, low = _times(b.y, *_precise_log(b, b.x, 0.0))
    else:
        product, low = _to_f64(b.y) * _short_log2(b, b.x, 0.0), None
    limit = MAX_LOG if format == F64 else MAX_LOG2_F32
    is_common = b.is_positive_finite(b.x, at_least=format.smallest_normal) & (abs(product) <= limit)
    b.branch_unless(is_common, otherwise="far")
    if low is not None:
        b.ret(normal_exp(b, product, low))
    else:
        k, root = _short_exp2(product)
        b.ret(_from_f64(b, (root.word() + (k << F64.digits)).real()))
    b.label("far")
    call = f"call {b.type('real')} @wend.{general}({b.typed(b.x)}, {b.typed(b.y)})"
    b.ret(b.emit("real", call))


def pow_large(lanes: int, format: Format, name: str, attributes: str) -> str:
    """Return the definition of pow for all arguments, bit-identical to `pow` where both apply."""
    b = FunctionBuilder(lanes, format, is_loop=True)
    size = abs(b.x)
    x, shift = normalized(b, size)
    if format == F64:
        log_high, log_low = _precise_log(b, x, shift)
        product, low = _times(b.y, _with_limits(log_high, size), log_low)
        low = b.select(abs(product) < 1000.0, low, 0.0)
        power = full_range_exp(b, product, low)
    else:
        log_high = _with_limits(_short_log2(b, x, shift), _to_f64(size))
        product = _to_f64(b.y) * log_high
        f64_builder = product.body
        k, root = _short_exp2(
            f64_builder.at_least(f64_builder.at_most(product, MAX_LOG2_F32), -MAX_LOG2_F32)
        )
        power = _from_f64(b, root * power_of_two(f64_builder, k))
    b.ret(_special_cases(b, size, power))
    return b.definition(name, arguments="xy", attributes=attributes)


def _to_f64(x: SsaExpr) -> SsaExpr:
    """Convert to f64."""
    f64_builder = x.body.with_format(F64)
    return f64_builder.emit("real", f"fpext {x.body.typed(x)} to {f64_builder.type('real')}")


def _from_f64(b: FunctionBuilder, x: SsaExpr) -> SsaExpr:
    return b.emit("real", f"fptrunc {x.body.typed(x)} to {b.type('real')}")


def _times(y: SsaExpr, high: SsaExpr, low: SsaExpr) -> tuple[SsaExpr, SsaExpr]:
    """Return y (high + low) as a sum of two numbers."""
    b, product = y.body, y * high
    return product, b.fma(y, low, b.fma(y, high, -product))


def _with_limits(log: SsaExpr, size: SsaExpr) -> SsaExpr:
    """Return the logarithm, corrected for 0, infinity and NaN."""
    b = log.body
    at_end = b.select(size.equals(0.0), -float("inf"), size)
    return b.select(b.is_positive_finite(size), log, at_end)


def _short_log2(b: FunctionBuilder, x: SsaExpr, shift: SsaExpr | float) -> SsaExpr:
    """Return log2 x + shift in f64, to 2**-33, of normal x > 0 in f32."""
    count, f = fraction(b, x, shift)
    count, f = _to_f64(count), _to_f64(f)
    return f.body.fma(f, polynomial(f.body, f, f * f, SHORT_LOG2), count)


def _short_exp2(x: SsaExpr) -> tuple[SsaExpr, SsaExpr]:
    """Return k in low bits and 2^r, to the digits of f32, where x = k + r."""
    b = x.body
    near = x + b.format.magic
    r = x - (near - b.format.magic)
    return near.word(), b.fma(r, polynomial(b, r, r * r, SHORT_EXP2), 1.0)


def _precise_log(b: FunctionBuilder, x: SsaExpr, shift: SsaExpr | float) -> tuple[SsaExpr, SsaExpr]:
    """Return log x + shift ln 2, for normal x > 0, as a sum of two numbers."""
    count, f = fraction(b, x, shift)
    denominator = f + 2.0
    inverse = b.one / denominator
    s = f * inverse
    s_low = (b.fma(-s, denominator, f) - s * (f - (denominator - 2.0))) * inverse
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
    tail = (third - (inner - first)) + b.fma(s_low, 2.0, third_low)
    tail = b.fma(cube * z, polynomial(b, z, z * z, TAIL), tail)
    whole = count * LN2[0]  # exact
    rough = whole + inner
    tail = (whole - rough) + inner + b.fma(count, LN2[1], tail)
    high = rough + tail
    return high, tail - (high - rough)


def _special_cases(b: FunctionBuilder, size: SsaExpr, power: SsaExpr) -> SsaExpr:
    """Return x to the power of y, given |x| to the power of y."""
    half = b.y * 0.5
    is_whole = b.intrinsic("rint", b.y).equals(b.y)
    is_odd = is_whole & (b.intrinsic("rint", half).equals(half) ^ 1)
    is_negative = b.copysign(1.0, b.x) < 0.0
    power = b.select(size.equals(1.0) & b.y.equals(b.y), 1.0, power)
    signed = b.select(is_negative & is_odd, -power, power)
    is_undefined = (b.x < 0.0) & (size < float("inf")) & (is_whole ^ 1)
    signed = b.select(is_undefined, float("nan"), signed)
    return b.select(b.x.equals(1.0) | b.y.equals(0.0), 1.0, signed)
