"""Argument reduction of sin and cos for huge arguments: the cold path of `trig.py`.

Payne & Hanek, "Radian reduction for trigonometric functions" (1983): x*2/pi modulo 4 needs only
192 of the bits of 2/pi, in a window that x's exponent places.
"""

from __future__ import annotations

from wend.backends.native.math.ir_dsl import COLD, SIGN_BIT, FunctionBuilder, SsaExpr
from wend.backends.native.math.trig import pi, pieces, quarter, rotate

# The window has 2 bits of quadrant and 190 of fraction, and stands at byte
# FIRST_BYTE - exponent/8 of the little-endian integer 2/pi * 2**(190 + 8*FIRST_BYTE).
FRACTION_BITS, WINDOW_BYTES = 190, 24
FIRST_BYTE = 121  # doubles are below 2**53 * 2**(8*121 + 7)
LAST_BYTE = FIRST_BYTE + 10 + WINDOW_BYTES  # the window of 2**-27, under which sin x = x
TINY = 2.0**-27


def table() -> str:
    """Return the bits of 2/pi for `sincos.far`, lowest byte first."""
    scaled = int(2 / pi() * 2 ** (FRACTION_BITS + 8 * FIRST_BYTE))
    values = ", ".join(f"i8 {byte}" for byte in scaled.to_bytes(LAST_BYTE, "little"))
    return f"@wend.sincos.far.table = internal constant [{LAST_BYTE} x i8] [{values}]\n"


def scalar() -> str:
    """Return scalar sincos for all arguments by Payne & Hanek's reduction.

    Only the upper 128 of the 192 bits of the product are kept: no double times 2/pi is closer to
    an integer than 2**-62 (6381956970095103 * 2**797 comes closest), and 2**-126 is 2**-64 of it.
    """
    b = FunctionBuilder()
    b.branch_unless(abs(b.x) >= TINY, otherwise="tiny_or_nan")
    b.branch_unless(abs(b.x) < float("inf"), otherwise="infinite")
    bits = b.x.word()
    exponent = ((bits >> 52) & 0x7FF) - (1023 + 52)
    # |x| = mantissa * 2**(8k + j): j shifts the mantissa, k moves the window
    k, j = b.emit("word", f"ashr i64 {exponent.name}, 3"), exponent & 7
    mantissa = b.emit("word", f"shl i64 {((bits & (2**52 - 1)) + 2**52).name}, {j.name}")
    quarters = _product(b, mantissa, b.emit("word", f"sub i64 {FIRST_BYTE}, {k.name}"))

    top = _narrow(b, b.define(f"lshr i128 {quarters}, 125"))
    quadrant = (top + 1) >> 1  # to the nearest
    fraction = b.define(f"shl i128 {quarters}, 2")  # of pi/2, in 2**-128, from -1/2 to 1/2
    mask = b.define(f"ashr i128 {fraction}, 127")
    size = b.define(f"sub i128 {b.define(f'xor i128 {fraction}, {mask}')}, {mask}")
    zeros = b.define(f"call i128 @llvm.ctlz.i128(i128 {size}, i1 true)")
    digits = b.define(f"shl i128 {size}, {zeros}")
    first = _narrow(b, b.define(f"lshr i128 {digits}, 75"))  # 53 bits, and 53 more:
    second = _narrow(b, b.define(f"lshr i128 {digits}, 22")) & (2**53 - 1)
    scale = b.emit("word", f"sub i64 {1023 - 53}, {_narrow(b, zeros).name}") << 52
    unit = (scale ^ (_narrow(b, mask) & SIGN_BIT)).real()
    high = b.emit("real", f"sitofp i64 {first.name} to double") * unit
    low = b.emit("real", f"sitofp i64 {second.name} to double") * (unit * 2.0**-53)

    half_pi = pieces(pi() / 2, 2)
    r = high * half_pi[0]
    r_low = b.fma(high, half_pi[0], -r) + b.fma(high, half_pi[1], low * half_pi[0])
    sine, cosine = rotate(b, quadrant, *quarter(b, r, r_low))
    # the reduction was of |x|
    b.ret((sine.word() ^ (bits & SIGN_BIT)).real(), cosine)
    b.label("tiny_or_nan")
    b.ret(b.x, b.x * 0.0 + 1.0)
    b.label("infinite")
    nan = b.x - b.x
    b.ret(nan, nan)
    return b.definition("sincos.far", pair=True, attributes=COLD)


def vector(lanes: int) -> str:
    """Return the cold path of vectors with a huge element: sincos lane by lane."""
    b, lane = FunctionBuilder(lanes), FunctionBuilder()
    vectors = ["poison", "poison"]
    for i in range(lanes):
        x = b.define(f"extractelement {b.typed(b.x)}, i64 {i}")
        pair = b.define(f"call {lane.pair_type} @wend.sincos.far(double {x})")
        for index in range(2):
            value = b.define(f"extractvalue {lane.pair_type} {pair}, {index}")
            text = f"insertelement {b.type('real')} {vectors[index]}, double {value}, i64 {i}"
            vectors[index] = b.define(text)
    b.ret(*[SsaExpr(b, "real", vector) for vector in vectors])
    return b.definition(f"sincos.far.v{lanes}", pair=True, attributes=COLD)


def _product(b: FunctionBuilder, mantissa: SsaExpr, offset: SsaExpr) -> str:
    """Return mantissa times the window at this byte of the table, modulo 2**192, over 2**64."""
    window_address = b.define(f"getelementptr i8, ptr @wend.sincos.far.table, i64 {offset.name}")
    products = []
    for byte in (0, 8, 16):
        word_address = b.define(f"getelementptr i8, ptr {window_address}, i64 {byte}")
        window = b.define(f"zext i64 {b.define(f'load i64, ptr {word_address}, align 1')} to i128")
        factor = b.define(f"zext i64 {mantissa.name} to i128")
        products.append(b.define(f"mul i128 {window}, {factor}"))
    low = b.define(f"lshr i128 {products[0]}, 64")
    high = b.define(f"shl i128 {products[2]}, 64")
    return b.define(f"add i128 {b.define(f'add i128 {low}, {products[1]}')}, {high}")


def _narrow(b: FunctionBuilder, wide: str) -> SsaExpr:
    """Return the low word of an i128."""
    return b.emit("word", f"trunc i128 {wide} to i64")
