"""Sums of floats in NumPy's order of additions, bit-identical to NumPy's.

Pairwise summation: blocks of up to 128 terms have eight partial sums, longer ranges are halved, so
the error grows with the logarithm of the number of terms.
"""

from __future__ import annotations

NAMES = ("wend.sum.f64", "wend.sum.f32")


def _text(type: str, suffix: str) -> str:
    phis, first_loads, loop_body, reduction = [], [], [], []
    for k in range(8):
        first_loads.append(f"  %p{k} = getelementptr {type}, ptr %x, i64 {k}\n")
        first_loads.append(f"  %s{k} = load {type}, ptr %p{k}\n")
        phis.append(f"  %r{k} = phi {type} [ %s{k}, %eight ], [ %n{k}, %more ]\n")
        loop_body.append(f"  %q{k} = getelementptr {type}, ptr %at, i64 {k}\n")
        loop_body.append(f"  %v{k} = load {type}, ptr %q{k}\n")
        loop_body.append(f"  %n{k} = fadd {type} %r{k}, %v{k}\n")
    for name, x, y in (
        *(("a0", "r0", "r1"), ("a1", "r2", "r3"), ("a2", "r4", "r5"), ("a3", "r6", "r7")),
        *(("b0", "a0", "a1"), ("b1", "a2", "a3"), ("total", "b0", "b1")),
    ):
        reduction.append(f"  %{name} = fadd {type} %{x}, %{y}\n")
    return f"""
define {type} @wend.sum.{suffix}(ptr %x, i64 %n) {{
  %few = icmp slt i64 %n, 8
  br i1 %few, label %rest, label %some
some:
  %many = icmp sgt i64 %n, 128
  br i1 %many, label %halves, label %eight
halves:
  %half = lshr i64 %n, 1
  %h = and i64 %half, -8
  %left = call {type} @wend.sum.{suffix}(ptr %x, i64 %h)
  %y = getelementptr {type}, ptr %x, i64 %h
  %m = sub i64 %n, %h
  %right = call {type} @wend.sum.{suffix}(ptr %y, i64 %m)
  %both = fadd {type} %left, %right
  ret {type} %both
eight:
{"".join(first_loads)}  %whole = and i64 %n, -8
  br label %head
head:
  %i = phi i64 [ 8, %eight ], [ %next, %more ]
{"".join(phis)}  %goes = icmp slt i64 %i, %whole
  br i1 %goes, label %more, label %joined
more:
  %at = getelementptr {type}, ptr %x, i64 %i
{"".join(loop_body)}  %next = add i64 %i, 8
  br label %head
joined:
{"".join(reduction)}  br label %rest
rest:
  %k0 = phi i64 [ 0, %0 ], [ %whole, %joined ]
  %t0 = phi {type} [ 0.0, %0 ], [ %total, %joined ]
  br label %last
last:
  %k = phi i64 [ %k0, %rest ], [ %k1, %one ]
  %t = phi {type} [ %t0, %rest ], [ %t1, %one ]
  %left.over = icmp slt i64 %k, %n
  br i1 %left.over, label %one, label %done
one:
  %z.at = getelementptr {type}, ptr %x, i64 %k
  %z = load {type}, ptr %z.at
  %t1 = fadd {type} %t, %z
  %k1 = add i64 %k, 1
  br label %last
done:
  ret {type} %t
}}
"""


LIBRARY = _text("double", "f64") + _text("float", "f32")
