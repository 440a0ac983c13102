"""Conversions between dtypes.

Where the C standard leaves the result undefined, they give what NumPy gives on this machine (D21).
"""

from __future__ import annotations

import numpy as np

from wend.backends.native.target.kinds import Kind
from wend.backends.native.target.platform import platform
from wend.backends.native.target.writer import Writer
from wend.ir.dtypes import FLOAT64, INT64


def emit_cast(w: Writer, source: Kind, target: Kind, x: str) -> str:
    """Emit the conversion of `x` from one dtype to another."""
    if source.dtype == target.dtype:
        return x
    old, new = source.text, target.text
    if target.is_bool:
        compare = "fcmp une" if source.is_real else "icmp ne"
        return w.define(f"{compare} {old} {x}, {source.literal(0)}")
    if source.is_real:
        if target.is_real:
            opcode = "fpext" if target.dtype == FLOAT64 else "fptrunc"
            return w.define(f"{opcode} {old} {x} to {new}")
        return _to_integer(w, source, target, x)
    unsigned = source.is_unsigned or source.is_bool
    if target.is_real:
        return w.define(f"{'uitofp' if unsigned else 'sitofp'} {old} {x} to {new}")
    if source.bits == target.bits:
        return x
    if source.bits > target.bits:
        return w.define(f"trunc {old} {x} to {new}")
    return w.define(f"{'zext' if unsigned else 'sext'} {old} {x} to {new}")


def _to_integer(w: Writer, source: Kind, target: Kind, x: str) -> str:
    """Emit a float-to-integer conversion that gives what the processor, and so NumPy, gives.

    On x86 a value that does not fit becomes the lowest integer. Integers narrower than 32 bits are
    truncated from i32, u32 from i64, and u64 is converted in two halves.
    """
    if not platform().is_x86:
        signedness = "u" if target.is_unsigned else "s"
        name = f"@llvm.fpto{signedness}i.sat.{target.suffix}.{source.suffix}"
        return w.define(f"call {target.text} {name}({source.text} {x})")
    if target.is_unsigned and target.bits == 64:
        return _to_u64(w, source, target, x)
    bits = 64 if target.bits == 64 or (target.is_unsigned and target.bits == 32) else 32
    wide = target.of(np.dtype(f"i{bits // 8}"))
    signed = _to_signed(w, source, wide, x)
    if wide.bits > target.bits:
        return w.define(f"trunc {wide.text} {signed} to {target.text}")
    return signed


def _to_signed(w: Writer, source: Kind, target: Kind, x: str) -> str:
    """Emit `fptosi`, with the lowest integer for every value that does not fit."""
    real, flags, lowest = source.text, source.flags.text, -(2.0 ** (target.bits - 1))
    below = w.define(f"fcmp olt {real} {x}, {source.literal(-lowest)}")
    # f64 has values between the lowest i32 and that minus one; they truncate to the lowest.
    above = w.define(
        f"fcmp ogt {real} {x}, {source.literal(lowest - 1.0)}"
        if source.dtype == FLOAT64 and target.bits == 32
        else f"fcmp oge {real} {x}, {source.literal(lowest)}"
    )
    fits = w.define(f"and {flags} {below}, {above}")
    safe = w.define(f"select {flags} {fits}, {real} {x}, {real} {source.literal(lowest)}")
    return w.define(f"fptosi {real} {safe} to {target.text}")


def _to_u64(w: Writer, source: Kind, target: Kind, x: str) -> str:
    """Emit a conversion to u64 by way of i64: values of 2**63 and more are shifted down first."""
    real, flags, half = source.text, source.flags.text, source.literal(2.0**63)
    signed = target.of(INT64)
    is_low = w.define(f"fcmp ult {real} {x}, {half}")  # also for NaN, as in NumPy
    low_half = _to_signed(w, source, signed, x)
    shifted = _to_signed(w, source, signed, w.define(f"fsub {real} {x}, {half}"))
    high_half = w.define(f"xor {target.text} {shifted}, {target.literal(-(2**63))}")
    return w.define(f"select {flags} {is_low}, {target.text} {low_half}, {target.text} {high_half}")
