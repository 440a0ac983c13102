"""What AVX-512 does in one instruction, and other processors in several: to the same bits.

Exponents and fractions are taken apart and put together for all numbers, subnormal ones and limits
too, so nothing has to be looked after before or behind.
"""

from __future__ import annotations

from wend.backends.native.math.ir_dsl import FunctionBuilder, SsaExpr
from wend.backends.native.target import host_cpu

# What a function is compiled for that holds these
_FEATURES = ("avx512f", "avx512dq", "avx512bw", "avx512vl", "fma")
ATTRIBUTE = f'"target-features"="{",".join(f"+{name}" for name in _FEATURES)}"'
# getmant: between 3/4 and 3/2; NaN for what is negative, but 1 for -0.0
_AROUND_1 = 0b1111
# fixupimm, four bits each from the lowest on for quiet NaN, signalling NaN, 0, 1, -inf, inf,
# negative, positive: 0 the result as it is, 1 the argument, 2 NaN of it, 3 NaN, 4 -inf, 5 inf
_LOGARITHM = 0x03530421


def is_there() -> bool:
    """Whether this machine has all of that."""
    return all(host_cpu.features().get(name) for name in _FEATURES)


def scaled(x: SsaExpr, k: SsaExpr) -> SsaExpr:
    """Return x 2^k for whole k, rounded once."""
    return _call(x.body, "scalef", x, k, _type(x))


def exponent(x: SsaExpr) -> SsaExpr:
    """Return k where |x| is between 2^k and 2^(k + 1); -inf for 0."""
    return _call(x.body, "getexp", x, _type(x))


def fraction(x: SsaExpr) -> SsaExpr:
    """Return x 2^-k between 3/4 and 3/2; 1 for 0 and inf, NaN for what is negative."""
    return _call(x.body, "getmant", x, f"i32 {_AROUND_1}", _type(x))


def limited_logarithm(found: SsaExpr, x: SsaExpr) -> SsaExpr:
    """Return the logarithm of x, `found` where x is positive and finite."""
    b = x.body
    table = f"{b.type('word')} splat ({b.format.element('word')} {_LOGARITHM})"
    return _call(b, "fixupimm", found, x, table, "i32 0")


def _type(x: SsaExpr) -> str:
    """What is there where no lane is masked out: nothing is."""
    return f"{x.body.type('real')} zeroinitializer"


def _call(b: FunctionBuilder, name: str, *given: SsaExpr | str) -> SsaExpr:
    """Call an intrinsic: of 512 bits they are told how to round, too."""
    bits = b.lanes * b.format.width
    operands = [x if isinstance(x, str) else b.typed(x) for x in given]
    operands.append(f"i{max(b.lanes, 8)} -1")
    if bits == 512:
        operands.append("i32 4")
    suffix = "pd" if b.format.width == 64 else "ps"
    function = f"@llvm.x86.avx512.mask.{name}.{suffix}.{bits}"
    return b.emit("real", f"call {b.type('real')} {function}({', '.join(operands)})")
