"""Redzones around the arrays of native code: `config(verify_memory=True)`.

Modules are then linked to the functions of this module instead of those of `pool.py`. Each array is
a block of the C allocator, with a redzone before its header and one behind its elements, which show
writes past its end or before its start. It is inspected when it is freed and when the call is over.
The pool keeps the first fault until Python asks for it.

    ptr  wend.checked.take(pool, bytes)   allocate an array with one reference, as `wend.take` does
    void wend.checked.free(pool, ptr)     inspect and free an array
    void wend.checked.reset(pool)         inspect all arrays, and free them at the next `take`

They are machine code, not Python: a signal handler may raise wherever Python code begins, and
machine code would take the undefined result of such a call for an address.

The block of a workspace and the buffers of lists always have redzones, which cost nothing there
(`run/workspace.py`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from wend.backends.native.rt import pool
from wend.backends.native.rt.blocks import BYTES as SIZE
from wend.backends.native.rt.blocks import CLASS, COUNT, HEAD, NEXT, load, put
from wend.backends.native.rt.pool import CHECKED, FAULT, FAULT_BYTES, IS_OVER

WORD = 0x5AFE_C0DE_5AFE_C0DE  # the pattern of a redzone
BYTES = 8
BEFORE, BEHIND = 1, 2  # the redzones of an array
_WORD_STRUCT = struct.Struct("Q")
_ZONE = COUNT - BYTES  # offset of the redzone before an array

# By the name of the function of `pool.py` that each replaces
FUNCTIONS = {name: name.replace("wend.", "wend.checked.", 1) for name in pool.INLINED}
NAMES = tuple(FUNCTIONS.values())

# A block has the header of `blocks.py`, and class 0: no array of the pool itself has that one.
LIBRARY = f"""
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare void @wend.free(ptr, ptr)
declare void @wend.reset(ptr)

define ptr @wend.checked.take(ptr %pool, i64 %bytes) {{
{load("over", "pool", IS_OVER)}
  %is.over = icmp ne i64 %over, 0
  br i1 %is.over, label %clear, label %measure
clear:
  call void @wend.checked.clear(ptr %pool)
  br label %measure
measure:
  %huge = icmp ugt i64 %bytes, {1 << 56}
  br i1 %huge, label %fail, label %ask
fail:
  ret ptr null
ask:
  %more = add i64 %bytes, {HEAD + BYTES + 63}
  %whole = and i64 %more, -64
  %start = call ptr @aligned_alloc(i64 64, i64 %whole)
  %none = icmp eq ptr %start, null
  br i1 %none, label %fail, label %fill
fill:
  %data = getelementptr i8, ptr %start, i64 {HEAD}
{put("%bytes", "data", SIZE)}{put("1", "data", COUNT)}{put("0", "data", CLASS)}
  call void @wend.checked.mark(ptr %data, i64 %bytes)
{pool.link(CHECKED)}
  ret ptr %data
}}

define internal void @wend.checked.mark(ptr %data, i64 %bytes) {{
{put(str(WORD), "data", _ZONE)}
  %end = getelementptr i8, ptr %data, i64 %bytes
  store i64 {WORD}, ptr %end, align 1
  ret void
}}

; An overwritten redzone is noted once.
define internal void @wend.checked.inspect(ptr %pool, ptr %data) {{
{load("bytes", "data", SIZE)}{load("before", "data", _ZONE)}
  %end = getelementptr i8, ptr %data, i64 %bytes
  %behind = load i64, ptr %end, align 1
  %fault0 = icmp ne i64 %before, {WORD}
  %fault1 = icmp ne i64 %behind, {WORD}
  %fault = or i1 %fault0, %fault1
  br i1 %fault, label %note, label %done
note:
  call void @wend.checked.mark(ptr %data, i64 %bytes)
{load("known", "pool", FAULT)}
  %is.known = icmp ne i64 %known, 0
  br i1 %is.known, label %done, label %new
new:
  %which = select i1 %fault0, i64 {BEFORE}, i64 {BEHIND}
{put("%which", "pool", FAULT)}{put("%bytes", "pool", FAULT_BYTES)}
  br label %done
done:
  ret void
}}

define void @wend.checked.free(ptr %pool, ptr %data) {{
{load("class", "data", CLASS)}
  %is.pool = icmp ne i64 %class, 0
  br i1 %is.pool, label %other, label %own
other:
  call void @wend.free(ptr %pool, ptr %data)
  ret void
own:
  call void @wend.checked.inspect(ptr %pool, ptr %data)
{pool.unlink(CHECKED)}
  %start = getelementptr i8, ptr %data, i64 {-HEAD}
  call void @free(ptr %start)
  ret void
}}

define void @wend.checked.reset(ptr %pool) {{
  call void @wend.reset(ptr %pool)
{load("first", "pool", CHECKED, "ptr")}{put("1", "pool", IS_OVER)}
  br label %head
head:
  %data = phi ptr [ %first, %0 ], [ %next, %each ]
  %none = icmp eq ptr %data, null
  br i1 %none, label %done, label %each
each:
  call void @wend.checked.inspect(ptr %pool, ptr %data)
{load("next", "data", NEXT, "ptr")}
  br label %head
done:
  ret void
}}

; Free the arrays of the last call, whose results have been read.
define internal void @wend.checked.clear(ptr %pool) {{
{load("first", "pool", CHECKED, "ptr")}{put("0", "pool", IS_OVER)}
  store ptr null, ptr %first.at
  br label %head
head:
  %data = phi ptr [ %first, %0 ], [ %next, %each ]
  %none = icmp eq ptr %data, null
  br i1 %none, label %done, label %each
each:
{load("next", "data", NEXT, "ptr")}
  %start = getelementptr i8, ptr %data, i64 {-HEAD}
  call void @free(ptr %start)
  br label %head
done:
  ret void
}}
"""


def write(buffer: Any, offset: int) -> None:
    """Write a redzone at an offset."""
    _WORD_STRUCT.pack_into(buffer, offset, WORD)


def is_intact(buffer: Any, offset: int) -> bool:
    """Return whether the redzone at an offset is unchanged."""
    return bool(_WORD_STRUCT.unpack_from(buffer, offset) == (WORD,))


def faults(arrays: pool.Pool) -> Iterator[str]:
    """Describe the array of a pool whose redzone was overwritten, once."""
    which, size = arrays.pop_fault()
    if which:
        yield f"the memory {'before' if which == BEFORE else 'behind'} an array of {size} bytes"
