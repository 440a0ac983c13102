"""sin, cos, tan and sincos as LLVM IR; `payne_hanek.py` has the path for huge arguments.

Scalar (for latency: a loop may need the result of one call before the next):
x = n*h + d with h = pi/32 and |d| <= h/2. The reduction subtracts n*h in two pieces (Cody & Waite);
the first subtraction is exact because fma rounds once. Row n mod 64 of a table holds the
coefficients of sin(n*h + d) as a polynomial of degree 7 in d, so that neither a select between sin
and cos nor a sign is left for the end. Two cases leave this path, both predicted not taken: |x|
beyond TABLE_LIMIT, and a result so small that a third piece of h would matter.

Vectors (for throughput): x = n*pi/2 + r with pi/2 in three pieces, both polynomials on
|r| <= pi/4, and a select by quadrant.

Coefficients: Remez exchange in 240-bit arithmetic (mpmath) on the interval widened by 2**-10
(STEP_) and 2**-20 (QUARTER_), leading coefficients exact (1, 1, 1/2), the others rounded to
double one by one while the rest were fitted again. Largest errors relative to sin and cos:
STEP_SIN 8.5e-19, STEP_COS 7.7e-18, QUARTER_SIN 3.7e-18, QUARTER_COS 5.7e-20, where half an ulp
is at most 1.1e-16.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from wend.backends.native.math.format import F32, F64, Format
from wend.backends.native.math.ir_dsl import (
    COLD,
    MAGIC,
    FunctionBuilder,
    SsaExpr,
    literal,
    polynomial,
)

if TYPE_CHECKING:
    from fractions import Fraction

# sin d = d + d s (c0 + c1 s + c2 s^2), cos d = 1 + s (c0 + ...), with s = d^2 and |d| <= pi/64
STEP_SIN = (-0.16666666666665955, 0.008333333315449302, -0.00019839991916850396)
STEP_COS = (-0.49999999999993594, 0.0416666665056658, -0.0013887738603131211)
# sin r = r + r s (c0 + ...), cos r = 1 - s/2 + s^2 (c0 + ...), with s = r^2 and |r| <= pi/4;
# those of f32 as in `exp.py`
QUARTER_SIN = {
    F64: (
        *(-0.1666666666666663, 0.00833333333332184, -0.00019841269829358528),
        *(2.7557313538514225e-06, -2.5050734389253013e-08, 1.5895433288751217e-10),
    ),
    F32: (
        -0.1666666716337204,
        0.008333331905305386,
        -0.00019840085587929934,
        2.724985051827389e-06,
    ),
}
QUARTER_COS = {
    F64: (
        *(0.041666666666666595, -0.0013888888888873342, 2.480158728900208e-05),
        *(-2.755731421703886e-07, 2.0875705396029227e-09, -1.1358749239931884e-11),
    ),
    F32: (0.0416666641831398, -0.001388830249197781, 2.454788045724854e-05),
}
# sin(j pi/32) for j = 0..16, correctly rounded
FIRST_QUADRANT = (
    *(0.0, 0.0980171403295606, 0.19509032201612828, 0.2902846772544624, 0.3826834323650898),
    *(0.47139673682599764, 0.5555702330196022, 0.6343932841636455, 0.7071067811865476),
    *(0.773010453362737, 0.8314696123025452, 0.881921264348355, 0.9238795325112867),
    *(0.9569403357322088, 0.9807852804032304, 0.9951847266721969, 1.0),
)
ROWS, ROW_BYTES = 64, 64
COS_BYTES = ROWS // 4 * ROW_BYTES  # cos x = sin(x + pi/2): a quarter of the rows further
# The two highest coefficients use d1, not d = d1 - n*STEP[1], to start one fma earlier; up to this
# |x| the error is at most 0.3 ulp.
TABLE_LIMIT = 2.0**20
# The third piece of h is 2**-113: n times it is under a quarter ulp of results above this.
THIRD_PIECE = 2.0**-58
VECTOR_LIMIT = {F64: 2.0**30, F32: 2.0**20}


@cache
def pi() -> Fraction:
    """Return pi to 1280 bits by Machin's formula."""
    # Late: a tenth of the start-up time of the first native function
    from fractions import Fraction

    one = 1 << 1300

    def arctan_of_inverse(n: int) -> int:
        total, term, k = 0, one // n, 1
        while term:
            total += (term if k % 4 == 1 else -term) // k
            term //= n * n
            k += 2
        return total

    return Fraction(16 * arctan_of_inverse(5) - 4 * arctan_of_inverse(239), one)


def pieces(value: Fraction, count: int, format: Format = F64) -> list[float]:
    """Split a number into a sum of numbers of a format, of decreasing size."""
    parts: list[float] = []
    for _ in range(count):
        parts.append(format.round(float(value)))
        value -= type(value)(parts[-1])
    return parts


def table() -> str:
    """Return the rows S0 C0 S1 C1 S2 C2 S3 C3 of sin(n*h + d) = sum of (Sk + Ck d) d^2k."""
    rows = [_row(n) for n in range(ROWS + ROWS // 4)]
    values = ", ".join(f"double {literal(value)}" for row in rows for value in row)
    count = sum(map(len, rows))
    return f"@wend.sin.table = internal constant [{count} x double] [{values}], align 64\n"


def _row(n: int) -> list[float]:
    sine, cosine = _grid_sine(n), _grid_sine(n + ROWS // 4)
    s, c = [sine * f for f in (1.0, *STEP_COS)], [cosine * f for f in (1.0, *STEP_SIN)]
    if sine == 0.0:
        # sin(-0.0) = -0.0: every term added to C0*d must then be -0.0 as well, whatever d's sign,
        # hence a tiny negative number for the zeros that are multiplied by d^2 = 0.
        s = [-0.0] + [-(2.0**-1000)] * len(STEP_COS)
    return [value for pair in zip(s, c, strict=True) for value in pair]


def _grid_sine(n: int) -> float:
    """Return sin(n*pi/32) from the first quadrant by symmetry."""
    quadrant, step = divmod(n % ROWS, ROWS // 4)
    value = FIRST_QUADRANT[step if quadrant % 2 == 0 else ROWS // 4 - step]
    return value if quadrant < 2 else -value


def scalar_sincos(name: str) -> str:
    """Return the definition of scalar `sin`, `cos` or `sincos`."""
    b = FunctionBuilder()
    step = pieces(pi() / 32, 2)
    b.branch_unless(abs(b.x) <= TABLE_LIMIT, otherwise="far")
    near = b.fma(b.x, float(32 / pi()), MAGIC)
    row = (near.word() & (ROWS - 1)) << 6
    n = near - MAGIC
    d1 = b.fma(-n, step[0], b.x)
    d = b.fma(-n, step[1], d1)
    starts = {"sin": [0], "cos": [COS_BYTES], "sincos": [0, COS_BYTES]}[name]
    rows = b.address("wend.sin.table")
    values = [_polynomial(b, rows, row, start, d1, d) for start in starts]
    # A result can be small only where d is; squares are compared to save two absolute values.
    limit = n * THIRD_PIECE
    b.branch_unless(d * d >= limit * limit, otherwise="far")
    b.ret(*values)
    b.label("far")
    pair = b.define(f"call {b.pair_type} @wend.sincos.far(double %x)")
    picks = {"sin": [0], "cos": [1], "sincos": [0, 1]}[name]
    b.ret(*[b.emit("real", f"extractvalue {b.pair_type} {pair}, {i}") for i in picks])
    return b.definition(name, pair=name == "sincos")


def _polynomial(
    b: FunctionBuilder, rows: str, row: SsaExpr, start: int, d1: SsaExpr, d: SsaExpr
) -> SsaExpr:
    """Return the sum of (Sk + Ck d) d^2k with the coefficients of a table row."""
    base = b.define(f"getelementptr i8, ptr {rows}, i64 {row.name}")

    def coefficient(index: int) -> SsaExpr:
        address = b.define(f"getelementptr i8, ptr {base}, i64 {start + 8 * index}")
        return b.emit("real", f"load double, ptr {address}, align 8, !invariant.load !{{}}")

    def linear(k: int, at: SsaExpr) -> SsaExpr:
        return b.fma(coefficient(2 * k + 1), at, coefficient(2 * k))

    high = b.fma(d1 * d1, linear(3, d1), linear(2, d1))
    s = d * d
    low = b.fma(s, linear(1, d), linear(0, d))
    return b.fma(s * s, high, low)


def vector_sincos(lanes: int) -> str:
    """Return the definition of sincos over `<lanes x double>`."""
    b = FunctionBuilder(lanes)
    b.branch_unless(abs(b.x) <= VECTOR_LIMIT[F64], otherwise="far")
    b.ret(*rotate(b, *_reduced_sincos(b)))
    b.label("far")
    pair = b.define(f"call {b.pair_type} @wend.sincos.far.v{lanes}({b.typed(b.x)})")
    b.lines.append(f"  ret {b.pair_type} {pair}")
    return b.definition(f"sincos.v{lanes}", pair=True)


def _reduced_sincos(b: FunctionBuilder) -> tuple[SsaExpr, SsaExpr, SsaExpr]:
    """Return n modulo 4 in low bits, sin r and cos r of x = n*pi/2 + r within VECTOR_LIMIT."""
    near = b.fma(b.x, float(2 / pi()), b.format.magic)
    n = near - b.format.magic
    first, second, third = pieces(pi() / 2, 3, b.format)
    r = b.fma(-n, third, b.fma(-n, second, b.fma(-n, first, b.x)))
    sine, cosine = quarter(b, r)
    # For x = -0.0 the sum of the terms is +0.0.
    return near.word(), b.select(b.x.equals(0.0), b.x, sine), cosine


def loop_sincos(name: str, format: Format, symbol: str, attributes: str) -> str:
    """Return the definition of scalar sin, cos or tan, bit-identical to `vector_loop_sincos`."""
    b = FunctionBuilder(1, format, is_loop=True)
    b.branch_unless(abs(b.x) <= VECTOR_LIMIT[format], otherwise="far")
    b.ret(_sincos(b, name, *rotate(b, *_reduced_sincos(b))))
    b.label("far")
    x = "%x" if format == F64 else b.define("fpext float %x to double")
    value = b.define(f"call double @wend.{name}.far(double {x})")
    if format != F64:
        value = b.define(f"fptrunc double {value} to float")
    b.ret(SsaExpr(b, "real", value))
    return b.definition(symbol, attributes=attributes)


def vector_loop_sincos(
    name: str, format: Format, lanes: int, symbol: str, scalar_symbol: str, attributes: str
) -> str:
    """Return the definition of sin, cos or tan of a vector, for loops to call.

    If one element is huge, the function `scalar_symbol` is called for each: no result depends on
    its neighbours.
    """
    b = FunctionBuilder(lanes, format, is_loop=True)
    b.branch_unless(abs(b.x) <= VECTOR_LIMIT[format], otherwise="far")
    b.ret(_sincos(b, name, *rotate(b, *_reduced_sincos(b))))
    b.label("far")
    values = "poison"
    for i in range(lanes):
        x = b.define(f"extractelement {b.typed(b.x)}, i64 {i}")
        value = b.define(f"call {format.real} @wend.{scalar_symbol}({format.real} {x})")
        text = f"insertelement {b.type('real')} {values}, {format.real} {value}, i64 {i}"
        values = b.define(text)
    b.ret(SsaExpr(b, "real", values))
    return b.definition(symbol, attributes=attributes)


def large_sincos(name: str) -> str:
    """Return the definition of sin, cos or tan of huge arguments."""
    b = FunctionBuilder()
    pair = b.define(f"call {b.pair_type} @wend.sincos.far(double %x)")
    sine, cosine = (b.emit("real", f"extractvalue {b.pair_type} {pair}, {i}") for i in range(2))
    b.ret(_sincos(b, name, sine, cosine))
    return b.definition(f"{name}.far", attributes=COLD)


def _sincos(b: FunctionBuilder, name: str, sine: SsaExpr, cosine: SsaExpr) -> SsaExpr:
    return {"sin": lambda: sine, "cos": lambda: cosine, "tan": lambda: sine / cosine}[name]()


def vector_sin_or_cos(name: str, lanes: int) -> str:
    """Return the definition of `sin` or `cos` over `<lanes x double>`: one half of sincos."""
    b = FunctionBuilder(lanes)
    pair = b.define(f"call {b.pair_type} @wend.sincos.v{lanes}({b.typed(b.x)})")
    index = ("sin", "cos").index(name)
    b.ret(b.emit("real", f"extractvalue {b.pair_type} {pair}, {index}"))
    return b.definition(f"{name}.v{lanes}")


def quarter(b: FunctionBuilder, r: SsaExpr, low: SsaExpr | None = None) -> tuple[SsaExpr, SsaExpr]:
    """Return sin and cos of r + low for |r| <= pi/4; `low` is the rounding error of r."""
    s = r * r
    s2 = s * s
    tail = (r * s) * polynomial(b, s, s2, QUARTER_SIN[b.format])
    sine = r + (tail if low is None else tail + low)
    high = b.fma(s2, polynomial(b, s, s2, QUARTER_COS[b.format]), b.fma(s, -0.5, 1.0))
    return sine, high if low is None else b.fma(-r, low, high)


def rotate(
    b: FunctionBuilder, quadrant: SsaExpr, sine: SsaExpr, cosine: SsaExpr
) -> tuple[SsaExpr, SsaExpr]:
    """Return sin and cos of n*pi/2 + r, given those of r and n modulo 4 in low bits."""
    parity = (quadrant & 1).name
    odd = b.emit("flag", f"icmp ne {b.type('word')} {parity}, {b.operand('word', 0)}")
    sine, cosine = b.select(odd, cosine, sine), b.select(odd, sine, cosine)
    top = b.format.width - 2
    sign_bit = -(2 << top)
    sine_sign = (quadrant << top) & sign_bit
    cosine_sign = ((quadrant + 1) << top) & sign_bit
    return (sine.word() ^ sine_sign).real(), (cosine.word() ^ cosine_sign).real()
