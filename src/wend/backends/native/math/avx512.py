"""What AVX-512 does in one instruction, and other processors in several: to the same bits.

Exponents and fractions are taken apart and put together for all numbers, subnormal ones and limits
too, so nothing has to be looked after before or behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from llvmlite import binding

from wend.backends.native.math.body import Body, Term

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
    features = binding.get_host_cpu_features()
    return all(features.get(name) for name in _FEATURES)


def scaled(x: Term, k: Term) -> Term:
    """Return x 2^k for whole k, rounded once."""
    return _call(x.body, "scalef", x, k, _type(x))


def exponent(x: Term) -> Term:
    """Return k where |x| is between 2^k and 2^(k + 1); -inf for 0."""
    return _call(x.body, "getexp", x, _type(x))


def fraction(x: Term) -> Term:
    """Return x 2^-k between 3/4 and 3/2; 1 for 0 and inf, NaN for what is negative."""
    return _call(x.body, "getmant", x, f"i32 {_AROUND_1}", _type(x))


def limited_logarithm(found: Term, x: Term) -> Term:
    """Return the logarithm of x, `found` where x is positive and finite."""
    b = x.body
    table = f"{b.type('word')} splat ({b.format.element('word')} {_LOGARITHM})"
    return _call(b, "fixupimm", found, x, table, "i32 0")


def entry(word: Term, values: Sequence[float]) -> Term:
    """Return which of sixteen numbers the low four bits of words say."""
    b = word.body
    if b.format.width == 32 and b.lanes == 16:
        parts = [_constant(b, values), b.typed(word)]
        return _emit(b, "permvar.sf.512", parts)
    # of two registers
    lanes = max(b.lanes, 8)
    wide = replace(b, lanes=lanes)
    index = b.typed(word)
    if lanes > b.lanes:
        index = f"{wide.type('word')} {_resized(b, index, lanes)}"
    parts = [_constant(wide, values[:lanes]), index, _constant(wide, values[lanes:])]
    bits = lanes * b.format.width
    found = _emit(wide, f"vpermi2var.{_suffix(b)}.{bits}", parts)
    if lanes == b.lanes:
        return found
    return Term(b, "real", _resized(b, wide.typed(found), b.lanes))


def _constant(b: Body, values: Sequence[float]) -> str:
    numbers = ", ".join(f"{b.format.real} {b.format.literal(x)}" for x in values)
    return f"{b.type('real')} <{numbers}>"


def _resized(b: Body, vector: str, lanes: int) -> str:
    """Return the first so many lanes of a vector."""
    type = vector.rpartition(" ")[0]
    indices = ", ".join(f"i32 {i if i < b.lanes else 0}" for i in range(lanes))
    return b.define(f"shufflevector {vector}, {type} poison, <{lanes} x i32> <{indices}>")


def _emit(b: Body, name: str, operands: Sequence[str]) -> Term:
    return b.emit("real", f"call {b.type('real')} @llvm.x86.avx512.{name}({', '.join(operands)})")


def _suffix(b: Body) -> str:
    return "pd" if b.format.width == 64 else "ps"


def _type(x: Term) -> str:
    """What is there where no lane is masked out: nothing is."""
    return f"{x.body.type('real')} zeroinitializer"


def _call(b: Body, name: str, *given: Term | str) -> Term:
    """Call an intrinsic: of 512 bits they are told how to round, too."""
    bits = b.lanes * b.format.width
    operands = [x if isinstance(x, str) else b.typed(x) for x in given]
    operands.append(f"i{max(b.lanes, 8)} -1")
    if bits == 512:
        operands.append("i32 4")
    return _emit(b, f"mask.{name}.{_suffix(b)}.{bits}", operands)
