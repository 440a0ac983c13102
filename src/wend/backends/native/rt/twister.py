"""Draws of Python's `random.Random`, from its own state: the Mersenne Twister.

    double wend.twister.random(ptr state, ptr words)         `random()`
    i64 wend.twister.below(ptr state, ptr words, i64 count)  an integer below a positive count

The state is the position, an i32, and 624 words of 32 bits; Matsumoto and Nishimura, "Mersenne
Twister" (1998). Whoever else draws from it has the GIL, so a draw takes it, by the words of
`python_callbacks.py`.
"""

from __future__ import annotations

from wend.backends.native.rt import python_callbacks

NAMES = RANDOM, BELOW = "wend.twister.random", "wend.twister.below"
COUNT = 624
_MIDDLE, _MATRIX, _UPPER, _LOWER = 397, 0x9908B0DF, 0x80000000, 0x7FFFFFFF
_MASKS = 0x9D2C5680, 0xEFC60000

LIBRARY = f"""
{python_callbacks.TAKE}
declare i64 @llvm.ctlz.i64(i64, i1)

define internal void @renew(ptr %state) noinline nounwind {{
entry:
  %words = getelementptr i8, ptr %state, i64 4
  br label %each
each:
  %k = phi i64 [0, %entry], [%k.next, %each]
  %k.next = add i64 %k, 1
  %wraps = icmp eq i64 %k.next, {COUNT}
  %next = select i1 %wraps, i64 0, i64 %k.next
  %far = add i64 %k, {_MIDDLE}
  %far.wraps = icmp uge i64 %far, {COUNT}
  %far.less = sub i64 %far, {COUNT}
  %middle = select i1 %far.wraps, i64 %far.less, i64 %far
  %at = getelementptr i32, ptr %words, i64 %k
  %next.at = getelementptr i32, ptr %words, i64 %next
  %middle.at = getelementptr i32, ptr %words, i64 %middle
  %x = load i32, ptr %at
  %y = load i32, ptr %next.at
  %m = load i32, ptr %middle.at
  %high = and i32 %x, {_UPPER}
  %low = and i32 %y, {_LOWER}
  %both = or i32 %high, %low
  %half = lshr i32 %both, 1
  %odd = and i32 %both, 1
  %minus = sub i32 0, %odd
  %matrix = and i32 %minus, {_MATRIX}
  %mixed = xor i32 %m, %half
  %new = xor i32 %mixed, %matrix
  store i32 %new, ptr %at
  br i1 %wraps, label %done, label %each
done:
  store i32 0, ptr %state
  ret void
}}

define internal i32 @word(ptr %state) nounwind {{
  %position = load i32, ptr %state
  %is.over = icmp sge i32 %position, {COUNT}
  br i1 %is.over, label %renew, label %take
renew:
  call void @renew(ptr %state)
  br label %take
take:
  %k = load i32, ptr %state
  %next = add i32 %k, 1
  store i32 %next, ptr %state
  %index = sext i32 %next to i64
  %at = getelementptr i32, ptr %state, i64 %index
  %y = load i32, ptr %at
  %y11 = lshr i32 %y, 11
  %a = xor i32 %y, %y11
  %a7 = shl i32 %a, 7
  %a.masked = and i32 %a7, {_MASKS[0]}
  %b = xor i32 %a, %a.masked
  %b15 = shl i32 %b, 15
  %b.masked = and i32 %b15, {_MASKS[1]}
  %c = xor i32 %b, %b.masked
  %c18 = lshr i32 %c, 18
  %d = xor i32 %c, %c18
  ret i32 %d
}}

define double @{RANDOM}(ptr %state, ptr %words) nounwind {{
  %lock = call i32 @wend.take(ptr %words)
  %x = call i32 @word(ptr %state)
  %y = call i32 @word(ptr %state)
  call void @PyGILState_Release(i32 %lock)
  %a = lshr i32 %x, 5
  %b = lshr i32 %y, 6
  %a.double = uitofp i32 %a to double
  %b.double = uitofp i32 %b to double
  %scaled = fmul double %a.double, 67108864.0
  %sum = fadd double %scaled, %b.double
  %result = fmul double %sum, {1 / 2**53!r}
  ret double %result
}}

define i64 @{BELOW}(ptr %state, ptr %words, i64 %count) nounwind {{
  %lock = call i32 @wend.take(ptr %words)
  %zeros = call i64 @llvm.ctlz.i64(i64 %count, i1 false)
  %is.wide = icmp ult i64 %zeros, 32
  %drop = and i64 %zeros, 31
  %drop.32 = trunc i64 %drop to i32
  br label %draw
draw:
  %first = call i32 @word(ptr %state)
  br i1 %is.wide, label %wide, label %narrow
narrow:
  %small = lshr i32 %first, %drop.32
  %small.64 = zext i32 %small to i64
  br label %compare
wide:
  %second = call i32 @word(ptr %state)
  %upper = lshr i32 %second, %drop.32
  %upper.64 = zext i32 %upper to i64
  %shifted = shl i64 %upper.64, 32
  %first.64 = zext i32 %first to i64
  %large = or i64 %shifted, %first.64
  br label %compare
compare:
  %r = phi i64 [%small.64, %narrow], [%large, %wide]
  %again = icmp uge i64 %r, %count
  br i1 %again, label %draw, label %done
done:
  call void @PyGILState_Release(i32 %lock)
  ret i64 %r
}}
"""
