"""Normal numbers of NumPy's `RandomState`, by the polar method of Marsaglia and Bray (1964).

    double wend.gauss(ptr state)

The state is what `RandomState` keeps beside its bit generator: the address of that one, whether the
second number of a pair is left, and this number. NumPy's own function is not exported.
"""

from __future__ import annotations

NAME = "wend.gauss"
# Of a bit generator: the state, and functions of it that draw 64 bits, 32 bits and a double
_NEXT_DOUBLE = 24

LIBRARY = f"""
declare double @log(double)
declare double @llvm.sqrt.f64(double)

define double @{NAME}(ptr %state) nounwind {{
  %has.at = getelementptr i8, ptr %state, i64 8
  %left.at = getelementptr i8, ptr %state, i64 16
  %has = load i32, ptr %has.at
  %is.left = icmp ne i32 %has, 0
  br i1 %is.left, label %left, label %start
left:
  %second = load double, ptr %left.at
  store i32 0, ptr %has.at
  store double 0.0, ptr %left.at
  ret double %second
start:
  %bits = load ptr, ptr %state
  %inner = load ptr, ptr %bits
  %next.at = getelementptr i8, ptr %bits, i64 {_NEXT_DOUBLE}
  %next = load ptr, ptr %next.at
  br label %draw
draw:
  %u = call double %next(ptr %inner)
  %v = call double %next(ptr %inner)
  %u.twice = fmul double 2.0, %u
  %v.twice = fmul double 2.0, %v
  %x = fsub double %u.twice, 1.0
  %y = fsub double %v.twice, 1.0
  %x.square = fmul double %x, %x
  %y.square = fmul double %y, %y
  %r = fadd double %x.square, %y.square
  %is.outside = fcmp oge double %r, 1.0
  %is.zero = fcmp oeq double %r, 0.0
  %again = or i1 %is.outside, %is.zero
  br i1 %again, label %draw, label %found
found:
  %log = call double @log(double %r)
  %scaled = fmul double -2.0, %log
  %quotient = fdiv double %scaled, %r
  %factor = call double @llvm.sqrt.f64(double %quotient)
  %first = fmul double %factor, %y
  %rest = fmul double %factor, %x
  store double %rest, ptr %left.at
  store i32 1, ptr %has.at
  ret double %first
}}
"""
