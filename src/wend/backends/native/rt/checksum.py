"""A 64-bit checksum of bytes, as fast as memory.

    i64 wend.checksum(ptr data, i64 bytes)

Each step of a lane, `x = rotate(x ^ word, 31) * odd`, is a bijection of the word, so a change of
one word always changes the sum; other changes go unseen with a probability of about 2⁻⁶⁴. It is no
protection against those who choose the bytes. The sum is for this process only: its words are read
in the order of the processor.
"""

from __future__ import annotations

NAMES = ("wend.checksum",)

_ODD = 0x9E3779B97F4A7C15 - (1 << 64)  # 2⁶⁴ divided by the golden ratio, as a signed number
_STREAMS, _LANES = 4, 8  # enough independent products to hide their latency
_BLOCK = 8 * _STREAMS * _LANES


def _splat(value: int) -> str:
    return f"<{', '.join([f'i64 {value}'] * _LANES)}>"


def _step(name: str, x: str, word: str, *, is_vector: bool) -> str:
    type, suffix = (f"<{_LANES} x i64>", f"v{_LANES}i64") if is_vector else ("i64", "i64")
    bits, odd = (_splat(31), _splat(_ODD)) if is_vector else ("31", str(_ODD))
    return f"""
  %{name}.x = xor {type} {x}, {word}
  %{name}.r = call {type} @llvm.fshl.{suffix}({type} %{name}.x, {type} %{name}.x, {type} {bits})
  %{name} = mul {type} %{name}.r, {odd}"""


def _block_steps() -> str:
    lines = []
    for k in range(_STREAMS):
        lines.append(
            f"\n  %at{k} = getelementptr i8, ptr %at, i64 {8 * _LANES * k}"
            f"\n  %w{k} = load <8 x i64>, ptr %at{k}, align 1"
        )
        lines.append(_step(f"n{k}", f"%s{k}", f"%w{k}", is_vector=True))
    return "".join(lines)


def _merge() -> str:
    lines = [
        _step(f"m{k}", "%s0" if k == 1 else f"%m{k - 1}", f"%s{k}", is_vector=True)
        for k in range(1, _STREAMS)
    ]
    for k in range(_LANES):
        lines.append(f"\n  %e{k} = extractelement <8 x i64> %m{_STREAMS - 1}, i32 {k}")
        lines.append(
            _step(f"h{k}", "%bytes" if k == 0 else f"%h{k - 1}", f"%e{k}", is_vector=False)
        )
    return "".join(lines)


_PHIS = "".join(
    f"  %s{k} = phi <8 x i64> [ {_splat(k + 1)}, %0 ], [ %n{k}, %sum ]\n" for k in range(_STREAMS)
)

# The last block is filled up with zeros; its length is part of the sum.
LIBRARY = f"""
declare <8 x i64> @llvm.fshl.v8i64(<8 x i64>, <8 x i64>, <8 x i64>)
declare i64 @llvm.fshl.i64(i64, i64, i64)
declare ptr @memcpy(ptr, ptr, i64)
declare ptr @memset(ptr, i32, i64)

define i64 @wend.checksum(ptr %data, i64 %bytes) {{
  %last = alloca [{_BLOCK} x i8], align 64
  br label %head
head:
  %from = phi i64 [ 0, %0 ], [ %to, %sum ]
{_PHIS}
  %left = sub i64 %bytes, %from
  %ends = icmp eq i64 %left, 0
  br i1 %ends, label %merge, label %block
block:
  %here = getelementptr i8, ptr %data, i64 %from
  %whole = icmp uge i64 %left, {_BLOCK}
  br i1 %whole, label %sum, label %fill
fill:
  %cleared = call ptr @memset(ptr %last, i32 0, i64 {_BLOCK})
  %copied = call ptr @memcpy(ptr %last, ptr %here, i64 %left)
  br label %sum
sum:
  %at = phi ptr [ %here, %block ], [ %last, %fill ]
  %taken = phi i64 [ {_BLOCK}, %block ], [ %left, %fill ]
  %to = add i64 %from, %taken{_block_steps()}
  br label %head
merge:{_merge()}
  ret i64 %h{_LANES - 1}
}}
"""
