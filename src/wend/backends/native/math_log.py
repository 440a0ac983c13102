"""log and log1p as LLVM IR.

Scalar log (made for loops that wait for its result): x = 2^k m with m in one of 128 intervals, of
which a table holds 1/c, rounded, and -ln(1/c) for the centre c. Then m/c - 1 = r is exact but for
one rounding, |r| <= 2**-8, and a polynomial of degree 6 gives ln(1 + r). One interval is centred at
1, where c = 1: near x = 1 nothing cancels. (As Tang, "Table-driven implementation of the logarithm
function", 1990.)

Vectors and log1p: x = 2^k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), and log(1 + f) from
s = f / (2 + f), whose series is short: 2 atanh s (as in fdlibm's e_log).

Coefficients: Remez exchange (LOG) and Lawson's reweighted least squares (LOG_NEAR_1) in 240-bit
arithmetic (mpmath), rounded to double one by one while the rest were fitted again. Largest errors
relative to the logarithm: LOG 1.2e-18, LOG_NEAR_1 2.0e-17, where half an ulp is at most 1.1e-16.
"""

from __future__ import annotations

from wend.backends.native.math_body import (
    COLD,
    INLINE,
    MAGIC,
    MAGIC_BITS,
    Body,
    Term,
    bits_of,
    double_of,
    estrin,
    literal,
)

# log(1 + f) = 2s + s z (c0 + c1 z + ...) with s = f / (2 + f), z = s^2
LOG = (
    0.6666666666666734,
    0.3999999999941664,
    0.28571428742028154,
    0.22222198605061974,
    0.18183562850518523,
    0.15314084874115147,
    0.14795632867723466,
)
# log(1 + r) = r + r^2 (c0 + c1 r + ...) for |r| <= 2**-8
LOG_NEAR_1 = (
    -0.5,
    0.3333333333189473,
    -0.24999999998520378,
    0.200003041023187,
    -0.1666694929980806,
)
LN2 = (0.6931471805599453, 2.3190468138462996e-17)  # in two pieces: hi + lo
BIAS = 1023
SMALLEST_NORMAL = 2.0**-1022
SQRT_HALF_BITS = bits_of(0.7071067811865476)
EPSILON = 2.0**-54  # below, log1p x and x are the same double

INTERVAL_BITS = 7
STEP = 1 << (52 - INTERVAL_BITS)  # one interval, in units of the last place
# 11/16 less half an interval, so that 1 is the centre of one
FIRST_BITS = bits_of(0.6875) - STEP // 2


def table() -> str:
    """Return the rows 1/c, -ln(1/c) of `log`."""
    from decimal import Context, Decimal  # late, as in `math_trig.pi`

    rows = []
    for j in range(1 << INTERVAL_BITS):
        inverse = 1.0 / double_of(FIRST_BITS + j * STEP + STEP // 2)
        rows.append((inverse, -float(Decimal(inverse).ln(Context(prec=40)))))
    values = ", ".join(f"double {literal(value + 0.0)}" for row in rows for value in row)
    return f"@wend.log.table = internal constant [{2 * len(rows)} x double] [{values}], align 16\n"


def log_common() -> str:
    """Return scalar log of positive normal numbers; other arguments go to `log.edge`."""
    b = Body()
    # one unsigned comparison: zero, subnormals, negatives, inf and NaN all lie outside
    above = (b.x.word() - bits_of(SMALLEST_NORMAL)).name
    width = bits_of(float("inf")) - bits_of(SMALLEST_NORMAL)
    b.go_on_if(b.define(f"icmp ult i64 {above}, {width}"), otherwise="edge")
    offset = b.x.word() - FIRST_BITS
    k = b.emit("word", f"ashr i64 {offset.name}, 52")
    m = (b.x.word() - (k << 52)).real()
    row = (offset >> (52 - INTERVAL_BITS - 4)) & ((2**INTERVAL_BITS - 1) << 4)  # 16 bytes a row
    rows = b.address("wend.log.table")
    r = b.fma(m, _entry(b, rows, row, 0), -1.0)
    count = b.emit("real", f"sitofp i64 {k.name} to double")
    r2 = r * r
    # LN2's second piece would change the sum by less than a third of an ulp
    ln_c = b.fma(count, LN2[0], _entry(b, rows, row, 8))
    b.ret(b.fma(r2, estrin(b, r, r2, LOG_NEAR_1), ln_c + r))
    b.label("edge")
    b.ret(b.emit("real", "call double @wend.log.edge(double %x)"))
    return b.definition("log")


def _entry(b: Body, rows: str, row: Term, offset: int) -> Term:
    place = b.define(f"getelementptr i8, ptr {rows}, i64 {row.name}")
    place = b.define(f"getelementptr i8, ptr {place}, i64 {offset}")
    return b.emit("real", f"load double, ptr {place}, align 8, !invariant.load !{{}}")


def log_everywhere(lanes: int, name: str) -> str:
    """Return log for all arguments, as a function of this name."""
    b = Body(lanes)
    subnormal = b.x < SMALLEST_NORMAL
    x = b.select(subnormal, b.x * 2.0**54, b.x)
    inner = _log(b, x, b.select(subnormal, -54.0, 0.0))
    b.ret(_log_limits(b, inner, b.x))
    return b.definition(name, attributes=COLD if lanes == 1 else INLINE)


def log1p(lanes: int, name: str) -> str:
    """Return log1p for all arguments: log(u) + (what u = 1 + x rounded off) / u."""
    b = Body(lanes)
    u = b.x + 1.0
    x_in_u = u - 1.0
    lost = (b.x - x_in_u) - (u - x_in_u - 1.0)
    inner = _log(b, u, 0.0, lost / u)
    b.ret(b.select(abs(b.x) < EPSILON, b.x, _log_limits(b, inner, u)))
    return b.definition(name)


def _log_limits(b: Body, inside: Term, x: Term) -> Term:
    """Return log x, which is `inside` where x is positive and finite."""
    at_end = b.select(x.equals(0.0), -float("inf"), b.select(x < 0.0, float("nan"), x))
    return b.select((x > 0.0) & (x < float("inf")), inside, at_end)


def _log(b: Body, x: Term, shift: Term | float, low: Term | None = None) -> Term:
    """Return log x + shift ln 2 + low for normal x > 0; low is below an ulp of 1."""
    k = (x.word() - (SQRT_HALF_BITS - (BIAS << 52))) >> 52
    f = (x.word() - (k << 52) + (BIAS << 52)).real() - 1.0
    count = (k + MAGIC_BITS).real() - (MAGIC + BIAS) + shift
    s = f / (f + 2.0)
    z = s * s
    half_square = f * (f * 0.5)
    tail = count * LN2[1] if low is None else b.fma(count, LN2[1], low)
    # 2s = f - s f: subtracting from f, which is exact, keeps the rounding of s small
    inner = half_square - b.fma(s, half_square + z * estrin(b, z, z * z, LOG), tail)
    return b.fma(count, LN2[0], f - inner)
