"""Growth of arenas, the buffers of lists.

    {ptr, i64} wend.grow(ptr data, i64 room, i64 needed, i64 bytes)

Moves `data` to a buffer with room for more records of so many bytes, at least twice as many as
before, and returns it with its room; null where there is no memory. A redzone follows the buffer.
"""

from __future__ import annotations

from wend.backends.native.rt import redzones

NAMES = ("wend.grow",)

DECLARATION = """declare { ptr, i64 } @wend.grow(ptr, i64, i64, i64) cold nounwind willreturn
    memory(argmem: readwrite, inaccessiblemem: readwrite)"""

LIBRARY = f"""
declare ptr @realloc(ptr, i64)

define {{ ptr, i64 }} @wend.grow(ptr %data, i64 %room, i64 %needed, i64 %bytes) {{
  %twice = shl i64 %room, 1
  %most = call i64 @llvm.umax.i64(i64 %twice, i64 %needed)
  %new = call i64 @llvm.umax.i64(i64 %most, i64 64)
  %size = call {{ i64, i1 }} @llvm.umul.with.overflow.i64(i64 %new, i64 %bytes)
  %total = extractvalue {{ i64, i1 }} %size, 0
  %over = extractvalue {{ i64, i1 }} %size, 1
  br i1 %over, label %fail, label %go
go:
  %guarded = add i64 %total, {redzones.BYTES}
  %moved = call ptr @realloc(ptr %data, i64 %guarded)
  %none = icmp eq ptr %moved, null
  br i1 %none, label %fail, label %mark
mark:
  %end = getelementptr i8, ptr %moved, i64 %total
  store i64 {redzones.WORD}, ptr %end
  %pair = insertvalue {{ ptr, i64 }} poison, ptr %moved, 0
  %both = insertvalue {{ ptr, i64 }} %pair, i64 %new, 1
  ret {{ ptr, i64 }} %both
fail:
  ret {{ ptr, i64 }} {{ ptr null, i64 0 }}
}}
"""
