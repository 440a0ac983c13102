"""log, log1p, log2 and log10 as LLVM IR.

Scalar log (for latency): x = 2^k m with m in one of 128 intervals; a table holds 1/c, rounded, and
-ln(1/c) for the centre c of each. Then m/c - 1 = r is exact but for one rounding, |r| <= 2**-8, and
a polynomial of degree 6 gives ln(1 + r). One interval is centred at c = 1: nothing cancels near
x = 1. (As Tang, "Table-driven implementation of the logarithm
function", 1990.)

Vectors, loops and the others: x = 2^k (1 + f) with 1 + f between 3/4 and 3/2, and log(1 + f) from
s = f / (2 + f), whose series is short: 2 atanh s (as in fdlibm's e_log).

Coefficients: Remez exchange (LOG) and Lawson's reweighted least squares (LOG_NEAR_1) in 240-bit
arithmetic (mpmath), rounded to double one by one while the rest were fitted again. Largest errors
relative to the logarithm: LOG 1.2e-18, LOG_NEAR_1 2.0e-17, where half an ulp is at most 1.1e-16.
"""

from __future__ import annotations

from typing import TypeAlias

from wend.backends.native.math import avx512
from wend.backends.native.math.exp import LN2
from wend.backends.native.math.format import F32, F64, bits_of, double_of
from wend.backends.native.math.ir_dsl import FunctionBuilder, SsaExpr, literal, polynomial

# 1 + f is between this and twice this, the interval of AVX-512's getmant; the polynomial is as
# accurate there as between sqrt(1/2) and sqrt(2)
LOWEST_FRACTION = 0.75
# log(1 + f) = 2s + s z (c0 + c1 z + ...) with s = f / (2 + f), z = s^2
LOG = {
    F64: (
        *(0.6666666666667271, 0.39999999996160074, 0.28571429395585635, 0.22222138476630654),
        *(0.18186357117311525, 0.1525017069915397, 0.15368253914356175),
    ),
    F32: (0.666669487953186, 0.3995768129825592, 0.303634375333786),
}
# log(1 + r) = r + r^2 (c0 + c1 r + ...) for |r| <= 2**-8
LOG_NEAR_1 = (
    *(-0.5, 0.3333333333189473, -0.24999999998520378, 0.200003041023187, -0.1666694929980806),
)
# 1 / ln b; log 2 to the base b in two pieces
UNITS = {
    (2, F64): (1.4426950408889634, 1.0, 0.0),
    (2, F32): (1.4426950216293335, 1.0, 0.0),
    (10, F64): (0.4342944819032518, 0.3010299956639812, -2.8037281277851704e-18),
    (10, F32): (0.4342944920063019, 0.3010300099849701, -1.432098883924482e-08),
}
SMALLEST_NORMAL = F64.smallest_normal

INTERVAL_BITS = 7
STEP = 1 << (52 - INTERVAL_BITS)  # one interval, in units of the last place
# 11/16 less half an interval, so that 1 is the centre of one
FIRST_BITS = bits_of(0.6875) - STEP // 2


def table() -> str:
    """Return the rows 1/c, -ln(1/c) of `log`."""
    from decimal import Context, Decimal  # late, as in `trig.pi`

    rows = []
    for j in range(1 << INTERVAL_BITS):
        inverse = 1.0 / double_of(FIRST_BITS + j * STEP + STEP // 2)
        rows.append((inverse, -float(Decimal(inverse).ln(Context(prec=40)))))
    values = ", ".join(f"double {literal(value + 0.0)}" for row in rows for value in row)
    return f"@wend.log.table = internal constant [{2 * len(rows)} x double] [{values}], align 16\n"


def log_common() -> str:
    """Return scalar log of positive normal numbers; other arguments go to `log.edge`."""
    b = FunctionBuilder()
    # One unsigned comparison excludes zero, subnormals, negative numbers, inf and NaN.
    above = (b.x.word() - bits_of(SMALLEST_NORMAL)).name
    width = bits_of(float("inf")) - bits_of(SMALLEST_NORMAL)
    b.branch_unless(b.emit("flag", f"icmp ult i64 {above}, {width}"), otherwise="edge")
    offset = b.x.word() - FIRST_BITS
    k = b.emit("word", f"ashr i64 {offset.name}, 52")
    m = (b.x.word() - (k << 52)).real()
    row = (offset >> (52 - INTERVAL_BITS - 4)) & ((2**INTERVAL_BITS - 1) << 4)  # 16 bytes a row
    rows = b.address("wend.log.table")
    r = b.fma(m, _entry(b, rows, row, 0), -1.0)
    count = b.emit("real", f"sitofp i64 {k.name} to double")
    r2 = r * r
    # LN2's second piece is omitted: it would change the sum by less than a third of an ulp.
    ln_c = b.fma(count, LN2[F64][0], _entry(b, rows, row, 8))
    b.ret(b.fma(r2, polynomial(b, r, r2, LOG_NEAR_1), ln_c + r))
    b.label("edge")
    b.ret(b.emit("real", "call double @wend.log.edge(double %x)"))
    return b.definition("log")


def _entry(b: FunctionBuilder, rows: str, row: SsaExpr, offset: int) -> SsaExpr:
    address = b.define(f"getelementptr i8, ptr {rows}, i64 {row.name}")
    address = b.define(f"getelementptr i8, ptr {address}, i64 {offset}")
    return b.emit("real", f"load double, ptr {address}, align 8, !invariant.load !{{}}")


def log(b: FunctionBuilder) -> SsaExpr:
    """Return log for all arguments."""
    x, shift = normalized(b, b.x)
    count, f, parts = _split(b, x, shift)
    return log_limits(b, _sum(b, count, f, *parts), b.x)


def log2(b: FunctionBuilder) -> SsaExpr:
    """Return log2 for all arguments: exact for powers of 2."""
    return _log_of_base(2, b)


def log10(b: FunctionBuilder) -> SsaExpr:
    """Return log10 for all arguments: exact for powers of 10."""
    return _log_of_base(10, b)


def _log_of_base(base: int, b: FunctionBuilder) -> SsaExpr:
    x, shift = normalized(b, b.x)
    count, f, (s, z, half_square, series) = _split(b, x, shift)
    inner = f - (half_square - s * b.fma(z, series, half_square))
    unit, step, step_low = UNITS[base, b.format]
    part = b.fma(count, step_low, inner * unit) if step_low else inner * unit
    return log_limits(b, b.fma(count, step, part), b.x)


def log1p(b: FunctionBuilder) -> SsaExpr:
    """Return log1p for all arguments: log(u + low) where u + low = 1 + x exactly."""
    u, low = one_more(b, b.x)
    inner = log_of_sum(b, u, low)
    return b.select(abs(b.x) < b.format.epsilon, b.x, log_limits(b, inner, u))


def one_more(b: FunctionBuilder, x: SsaExpr) -> tuple[SsaExpr, SsaExpr]:
    """Return 1 + x rounded, and its rounding error."""
    u = x + 1.0
    x_in_u = u - 1.0
    return u, (x - x_in_u) - (u - x_in_u - 1.0)


def log_limits(b: FunctionBuilder, inner: SsaExpr, x: SsaExpr) -> SsaExpr:
    """Return log x, which is `inner` where x is positive and finite."""
    if b.uses_avx512:
        return avx512.limited_logarithm(inner, x)
    at_end = b.select(x.equals(0.0), -float("inf"), b.select(x < 0.0, float("nan"), x))
    return b.select(b.is_positive_finite(x), inner, at_end)


def log_of_sum(
    b: FunctionBuilder, u: SsaExpr, low: SsaExpr | None, shift: SsaExpr | float = 0.0
) -> SsaExpr:
    """Return log(u + low) + shift ln 2 for normal u > 0 and low of at most half an ulp of it."""
    count, f, parts = _split(b, u, shift, low)
    return _sum(b, count, f, *parts)


def normalized(b: FunctionBuilder, x: SsaExpr) -> tuple[SsaExpr, SsaExpr | float]:
    """Return x times a power of two if it is subnormal, and what to add to the exponent."""
    if b.uses_avx512:
        return x, 0.0
    subnormal = x < b.format.smallest_normal
    bits = b.format.digits + 2
    return b.select(subnormal, x * 2.0**bits, x), b.select(subnormal, float(-bits), 0.0)


_LogTerms: TypeAlias = tuple[SsaExpr, SsaExpr, SsaExpr, SsaExpr]


def _split(
    b: FunctionBuilder, x: SsaExpr, shift: SsaExpr | float, low: SsaExpr | None = None
) -> tuple[SsaExpr, SsaExpr, _LogTerms]:
    """Return n, f and the terms of log(1 + f), where (x + low) 2^shift = 2^n (1 + f).

    The terms are s, z, f^2 / 2 and P: log(1 + f) = f - (f^2 / 2 - s (f^2 / 2 + z P)).
    """
    if low is None:
        count, f = fraction(b, x, shift)
    else:
        count, f, k = _by_words(b, x, shift)
        # As f is rounded more finely than x, this adds nothing to the error; far from 1 (where
        # 2^-k could overflow) `low` does not show.
        scale = ((-k + 2 * b.format.bias) << b.format.digits).real()
        f = b.select(x < 2.0**60, b.fma(low, scale, f), f)
    s = f / (f + 2.0)
    z = s * s
    return count, f, (s, z, f * (f * 0.5), polynomial(b, z, z * z, LOG[b.format]))


def fraction(b: FunctionBuilder, x: SsaExpr, shift: SsaExpr | float) -> tuple[SsaExpr, SsaExpr]:
    """Return n and f where x 2^shift = 2^n (1 + f); LOWEST_FRACTION is the lower bound of 1 + f."""
    if not b.uses_avx512:
        return _by_words(b, x, shift)[:2]
    near_1 = avx512.fraction(x)
    count = avx512.exponent(x) - avx512.exponent(near_1)
    return count if shift == 0.0 else count + shift, near_1 - 1.0


def _by_words(
    b: FunctionBuilder, x: SsaExpr, shift: SsaExpr | float
) -> tuple[SsaExpr, SsaExpr, SsaExpr]:
    """Return as `fraction` n and f of normal x > 0, and the word n - shift + bias.

    Even with AVX-512 the word is available sooner than an exponent from getexp.
    """
    format = b.format
    unit = format.bias << format.digits
    k = (x.word() - (format.bits(LOWEST_FRACTION) - unit)) >> format.digits
    f = (x.word() - (k << format.digits) + unit).real() - 1.0
    count = (k + format.magic_bits).real() - (format.magic + format.bias)
    return count if shift == 0.0 else count + shift, f, k


def _sum(
    b: FunctionBuilder,
    count: SsaExpr,
    f: SsaExpr,
    s: SsaExpr,
    z: SsaExpr,
    half_square: SsaExpr,
    series: SsaExpr,
) -> SsaExpr:
    """Return count ln 2 + log(1 + f)."""
    high, low = LN2[b.format]
    # 2s = f - s f: subtracting from f, which is exact, keeps the rounding of s small
    inner = half_square - b.fma(s, b.fma(z, series, half_square), count * low)
    return b.fma(count, high, f - inner)
