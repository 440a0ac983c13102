"""AVX-512 instructions that other processors emulate in several, with bit-identical results.

They split and join exponents and fractions of all numbers, including subnormals and infinities, so
no special cases are needed before or after them.
"""

from __future__ import annotations

from wend.backends.native.math.ir_dsl import FunctionBuilder, SsaExpr
from wend.backends.native.target.platform import platform

# The target features of functions that use these instructions
_FEATURES = ("avx512f", "avx512dq", "avx512bw", "avx512vl", "fma")
ATTRIBUTE = f'"target-features"="{",".join(f"+{name}" for name in _FEATURES)}"'
# getmant: fraction between 3/4 and 3/2; NaN for negative numbers, but 1 for -0.0
_GETMANT_AROUND_1 = 0b1111
# fixupimm, four bits each from the lowest on for quiet NaN, signalling NaN, 0, 1, -inf, inf,
# negative, positive: 0 keep the result, 1 the argument, 2 the argument as quiet NaN, 3 NaN, 4 -inf,
# 5 inf
_FIXUP_LOGARITHM = 0x03530421


def is_available() -> bool:
    """Return whether the processor has all of these features."""
    return platform().has(*_FEATURES)


def scaled(x: SsaExpr, k: SsaExpr) -> SsaExpr:
    """Return x 2^k for whole k, rounded once."""
    return _call(x.body, "scalef", x, k, _passthrough(x))


def exponent(x: SsaExpr) -> SsaExpr:
    """Return k where |x| is between 2^k and 2^(k + 1); -inf for 0."""
    return _call(x.body, "getexp", x, _passthrough(x))


def fraction(x: SsaExpr) -> SsaExpr:
    """Return x 2^-k between 3/4 and 3/2; 1 for 0 and inf, NaN for negative numbers."""
    return _call(x.body, "getmant", x, f"i32 {_GETMANT_AROUND_1}", _passthrough(x))


def limited_logarithm(inner: SsaExpr, x: SsaExpr) -> SsaExpr:
    """Return the logarithm of x, which is `inner` where x is positive and finite."""
    b = x.body
    table = f"{b.type('word')} splat ({b.format.element('word')} {_FIXUP_LOGARITHM})"
    return _call(b, "fixupimm", inner, x, table, "i32 0")


def _passthrough(x: SsaExpr) -> str:
    """Return the pass-through operand of masked-out lanes; no lane is masked out."""
    return f"{x.body.type('real')} zeroinitializer"


def _call(b: FunctionBuilder, name: str, *arguments: SsaExpr | str) -> SsaExpr:
    """Emit a call of an intrinsic; those of 512 bits also take the rounding mode."""
    bits = b.lanes * b.format.width
    operands = [x if isinstance(x, str) else b.typed(x) for x in arguments]
    operands.append(f"i{max(b.lanes, 8)} -1")
    if bits == 512:
        operands.append("i32 4")
    suffix = "pd" if b.format.width == 64 else "ps"
    function = f"@llvm.x86.avx512.mask.{name}.{suffix}.{bits}"
    return b.emit("real", f"call {b.type('real')} {function}({', '.join(operands)})")
