"""Integer and float division with NumPy's semantics, where LLVM's differ or are undefined (D21)."""

from __future__ import annotations

from collections.abc import Iterable

_INLINE = "alwaysinline nofree nosync nounwind willreturn memory(none)"


def definitions(names: Iterable[str]) -> str:
    """Return the IR of these functions: `floor_divide.i64`, `remainder.f32`, `remainder.ui8`."""
    return "".join(_text(name) for name in sorted(names))


def _text(name: str) -> str:
    operation, _, kind_suffix = name.partition(".")
    if kind_suffix.startswith("u"):
        body, type = _UNSIGNED[operation], kind_suffix[1:]
    elif kind_suffix.startswith("i"):
        body, type = _SIGNED[operation], kind_suffix
    else:
        body, type = _REAL[operation], {"f64": "double", "f32": "float"}[kind_suffix]
    head = f"define internal {type} @wend.{name}({type} %x, {type} %y) {_INLINE} {{"
    return f"{head}{body.format(t=type, s=kind_suffix)}}}\n"


# x // 0 and x % 0 are 0; the minimum integer // -1 is itself.
_SAFE_DIVISOR = """
  %zero = icmp eq {t} %y, 0
  %minus = icmp eq {t} %y, -1
  %odd = or i1 %zero, %minus
  %divisor = select i1 %odd, {t} 1, {t} %y
"""

_SIGNED = {
    "floor_divide": _SAFE_DIVISOR
    + """
  %q = sdiv {t} %x, %divisor
  %back = mul {t} %q, %divisor
  %exact = icmp eq {t} %back, %x
  %signs = xor {t} %x, %divisor
  %falls = icmp slt {t} %signs, 0
  %inexact = xor i1 %exact, true
  %down = and i1 %inexact, %falls
  %less = sext i1 %down to {t}
  %floor = add {t} %q, %less
  %negated = sub {t} 0, %x
  %a = select i1 %minus, {t} %negated, {t} %floor
  %b = select i1 %zero, {t} 0, {t} %a
  ret {t} %b
""",
    "remainder": _SAFE_DIVISOR
    + """
  %r = srem {t} %x, %divisor
  %some = icmp ne {t} %r, 0
  %signs = xor {t} %r, %divisor
  %differ = icmp slt {t} %signs, 0
  %moves = and i1 %some, %differ
  %moved = add {t} %r, %divisor
  %m = select i1 %moves, {t} %moved, {t} %r
  ret {t} %m
""",
}

_UNSIGNED = {
    operation: f"""
  %zero = icmp eq {{t}} %y, 0
  %divisor = select i1 %zero, {{t}} 1, {{t}} %y
  %found = {opcode} {{t}} %x, %divisor
  %result = select i1 %zero, {{t}} 0, {{t}} %found
  ret {{t}} %result
"""
    for operation, opcode in (("floor_divide", "udiv"), ("remainder", "urem"))
}
# Euclid's algorithm
_UNSIGNED["gcd"] = """
  br label %head
head:
  %a = phi {t} [ %x, %0 ], [ %r, %more ]
  %b = phi {t} [ %y, %0 ], [ %a, %more ]
  %done = icmp eq {t} %a, 0
  br i1 %done, label %end, label %more
more:
  %r = urem {t} %b, %a
  br label %head
end:
  ret {t} %b
"""

# The remainder with the divisor's sign, from `frem`, which has the dividend's
_FLOORED = """
  %rest = frem {t} %x, %y
  %some = fcmp une {t} %rest, 0.0
  %below = fcmp olt {t} %y, 0.0
  %under = fcmp olt {t} %rest, 0.0
  %differ = xor i1 %below, %under
  %moves = and i1 %some, %differ
  %moved = fadd {t} %rest, %y
  %signed = select i1 %moves, {t} %moved, {t} %rest
  %none = call {t} @llvm.copysign.{s}({t} 0.0, {t} %y)
  %mod = select i1 %some, {t} %signed, {t} %none
  %by_zero = fcmp oeq {t} %y, 0.0
"""

_REAL = {
    "remainder": _FLOORED
    + """
  %result = select i1 %by_zero, {t} %rest, {t} %mod
  ret {t} %result
""",
    # The quotient is made exact before it is rounded; x // 0 is x / 0.
    "floor_divide": _FLOORED
    + """
  %plain = fdiv {t} %x, %y
  %exact = fsub {t} %x, %rest
  %first = fdiv {t} %exact, %y
  %less = fsub {t} %first, 1.0
  %q = select i1 %moves, {t} %less, {t} %first
  %floor = call {t} @llvm.floor.{s}({t} %q)
  %gap = fsub {t} %q, %floor
  %far = fcmp ogt {t} %gap, 0.5
  %next = fadd {t} %floor, 1.0
  %near = select i1 %far, {t} %next, {t} %floor
  %is_zero = fcmp oeq {t} %q, 0.0
  %zero = call {t} @llvm.copysign.{s}({t} 0.0, {t} %plain)
  %whole = select i1 %is_zero, {t} %zero, {t} %near
  %result = select i1 %by_zero, {t} %plain, {t} %whole
  ret {t} %result
""",
}
