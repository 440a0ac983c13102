"""Division as NumPy does it, where LLVM's has no meaning or another one (D21)."""

from __future__ import annotations

from collections.abc import Iterable

_INLINE = "alwaysinline nofree nosync nounwind willreturn memory(none)"

# x // 0 and x % 0 are 0; the lowest integer // -1 is itself.
_SAFE_DIVISOR = """
  %zero = icmp eq i64 %y, 0
  %minus = icmp eq i64 %y, -1
  %odd = or i1 %zero, %minus
  %divisor = select i1 %odd, i64 1, i64 %y
"""

# The remainder with the divisor's sign, from the one with the dividend's.
_FLOORED = """
  %rest = frem double %x, %y
  %some = fcmp une double %rest, 0.0
  %below = fcmp olt double %y, 0.0
  %under = fcmp olt double %rest, 0.0
  %differ = xor i1 %below, %under
  %moves = and i1 %some, %differ
  %moved = fadd double %rest, %y
  %signed = select i1 %moves, double %moved, double %rest
  %none = call double @llvm.copysign.f64(double 0.0, double %y)
  %mod = select i1 %some, double %signed, double %none
  %by_zero = fcmp oeq double %y, 0.0
"""

_TEXTS = {
    "floor_divide.i64": f"""
define internal i64 @wend.floor_divide.i64(i64 %x, i64 %y) {_INLINE} {{
{_SAFE_DIVISOR}
  %q = sdiv i64 %x, %divisor
  %back = mul i64 %q, %divisor
  %exact = icmp eq i64 %back, %x
  %signs = xor i64 %x, %divisor
  %falls = icmp slt i64 %signs, 0
  %inexact = xor i1 %exact, true
  %down = and i1 %inexact, %falls
  %less = sext i1 %down to i64
  %floor = add i64 %q, %less
  %negated = sub i64 0, %x
  %a = select i1 %minus, i64 %negated, i64 %floor
  %b = select i1 %zero, i64 0, i64 %a
  ret i64 %b
}}
""",
    "remainder.i64": f"""
define internal i64 @wend.remainder.i64(i64 %x, i64 %y) {_INLINE} {{
{_SAFE_DIVISOR}
  %r = srem i64 %x, %divisor
  %some = icmp ne i64 %r, 0
  %signs = xor i64 %r, %divisor
  %differ = icmp slt i64 %signs, 0
  %moves = and i1 %some, %differ
  %moved = add i64 %r, %divisor
  %m = select i1 %moves, i64 %moved, i64 %r
  ret i64 %m
}}
""",
    "remainder.f64": f"""
define internal double @wend.remainder.f64(double %x, double %y) {_INLINE} {{
{_FLOORED}
  %result = select i1 %by_zero, double %rest, double %mod
  ret double %result
}}
""",
    # The quotient is made exact first, and then rounded; x // 0 is x / 0.
    "floor_divide.f64": f"""
define internal double @wend.floor_divide.f64(double %x, double %y) {_INLINE} {{
{_FLOORED}
  %plain = fdiv double %x, %y
  %exact = fsub double %x, %rest
  %first = fdiv double %exact, %y
  %less = fsub double %first, 1.0
  %q = select i1 %moves, double %less, double %first
  %floor = call double @llvm.floor.f64(double %q)
  %gap = fsub double %q, %floor
  %far = fcmp ogt double %gap, 0.5
  %next = fadd double %floor, 1.0
  %near = select i1 %far, double %next, double %floor
  %is_zero = fcmp oeq double %q, 0.0
  %zero = call double @llvm.copysign.f64(double 0.0, double %plain)
  %whole = select i1 %is_zero, double %zero, double %near
  %result = select i1 %by_zero, double %plain, double %whole
  ret double %result
}}
""",
}


def definitions(names: Iterable[str]) -> str:
    """Return the IR of these functions."""
    return "".join(_TEXTS[name] for name in sorted(names))
