"""The array allocator of a call: reference-counted blocks in size classes, with free lists.

A block is a header of 16 bytes (reference count and size class) and the elements, which are aligned
to 64 bytes. The blocks of a class have one size; a free block goes to the free list of its class,
so that the trips of a loop reuse the same memory. New blocks are cut from chunks, but large ones
are allocated separately (`blocks.py`), so that the block of a result can leave the pool. A call
starts with all chunks unused and all large blocks free: a failed call needs no cleanup.

    ptr  wend.take(pool, bytes)   allocate a block with one reference; null if out of memory
    void wend.free(pool, ptr)     free a block without references
    void wend.reset(pool)         free all blocks
    void wend.leave(pool, ptr)    remove a large block from the pool, at the end of a call
    ptr  wend.receive(pool, new, from, result, bytes)
                                  return a result that a call has left in the pool `from`: that
                                  itself, in exchange for `new`, or `new` with a copy
"""

from __future__ import annotations

import ctypes

from wend.backends.native.rt.blocks import (
    BYTES,
    CLASS,
    COUNT,
    FREE,
    HEAD,
    NEXT,
    PREVIOUS,
    load,
    put,
)

# Size classes: in steps of 64 bytes up to 4 KiB, then four for each doubling
CLASSES = 64 + 4 * 58 + 5
FIRST_LARGE_CLASS = 65  # large blocks have 4 KiB and more
# A bit above every reference count: lists may refer to the array after the call
SHARED_BIT = 1 << 40
_FREE = 104  # offset of the free lists in a pool
POOL_BYTES = _FREE + 8 * CLASSES
# Offsets in a pool: next free byte, end of the chunk, first chunk, current chunk, bytes of all
# chunks, bytes of everything, whether it is in use, first large block, whether the free large
# blocks are in their free lists
_CURSOR, _LIMIT, FIRST, _CHUNK, _CUT, TOTAL, _USED, LARGE, _SORTED = range(0, 72, 8)
# For `redzones.py`: first block that has redzones, whether the call that took them is over, which
# redzone of a block was found overwritten, bytes of that block
CHECKED, IS_OVER, FAULT, FAULT_BYTES = range(72, _FREE, 8)

INLINED = ("wend.take", "wend.free", "wend.reset")  # what modules call: see `INLINE`
RECEIVE, RECEIVE_TYPES = "wend.receive", "ptr, ptr, ptr, ptr, i64"
NAMES = (*INLINED, "wend.leave", RECEIVE)


def _field(name: str, offset: int) -> str:
    return f"  %{name} = getelementptr i8, ptr %pool, i64 {offset}\n"


def link(first: int) -> str:
    """Return the lines that put the block `%data` in front of the list at an offset of `%pool`."""
    return f"""
{load("first", "pool", first, "ptr")}
{put("null", "data", PREVIOUS, "ptr")}{put("%first", "data", NEXT, "ptr")}
  store ptr %data, ptr %first.at
  %alone = icmp eq ptr %first, null
  br i1 %alone, label %linked, label %tie
tie:
{put("%data", "first", PREVIOUS, "ptr")}
  br label %linked
linked:
"""


def unlink(first: int) -> str:
    """Return the lines that take the block `%data` out of the list at an offset of `%pool`."""
    return f"""
{load("previous", "data", PREVIOUS, "ptr")}{load("next", "data", NEXT, "ptr")}
  %first.at = getelementptr i8, ptr %pool, i64 {first}
  %is.first = icmp eq ptr %previous, null
  %its.next = getelementptr i8, ptr %previous, i64 {NEXT}
  %before = select i1 %is.first, ptr %first.at, ptr %its.next
  store ptr %next, ptr %before
  %is.last = icmp eq ptr %next, null
  br i1 %is.last, label %unlinked, label %tie
tie:
{put("%previous", "next", PREVIOUS, "ptr")}
  br label %unlinked
unlinked:
"""


# A chunk starts with a pointer to the next chunk and its size. Its blocks start 16 bytes before a
# multiple of 64.
LIBRARY = f"""
declare ptr @malloc(i64)
declare ptr @wend.block.new(i64, i64)
declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.umax.i64(i64, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define {{ i64, i64 }} @wend.class(i64 %bytes) alwaysinline {{
  %more = add i64 %bytes, 79
  %units = lshr i64 %more, 6
  %small = icmp ule i64 %units, 64
  br i1 %small, label %exact, label %coarse
exact:
  %a0 = insertvalue {{ i64, i64 }} poison, i64 %units, 0
  %a1 = insertvalue {{ i64, i64 }} %a0, i64 %units, 1
  ret {{ i64, i64 }} %a1
coarse:
  %less = sub i64 %units, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %less, i1 false)
  %e = sub i64 63, %zeros
  %shift = sub i64 %e, 2
  %step = shl i64 1, %shift
  %step1 = sub i64 %step, 1
  %up = add i64 %units, %step1
  %quarters = lshr i64 %up, %shift
  %size = shl i64 %quarters, %shift
  %octave = sub i64 %e, 6
  %first = shl i64 %octave, 2
  %c0 = add i64 %first, %quarters
  %c1 = add i64 %c0, 60
  %b0 = insertvalue {{ i64, i64 }} poison, i64 %c1, 0
  %b1 = insertvalue {{ i64, i64 }} %b0, i64 %size, 1
  ret {{ i64, i64 }} %b1
}}

define ptr @wend.take(ptr %pool, i64 %bytes) {{
  %huge = icmp ugt i64 %bytes, {1 << 56}
  br i1 %huge, label %fail, label %go
fail:
  ret ptr null
go:
  %pair = call {{ i64, i64 }} @wend.class(i64 %bytes)
  %class = extractvalue {{ i64, i64 }} %pair, 0
  %units = extractvalue {{ i64, i64 }} %pair, 1
  %place = shl i64 %class, 3
  %at = add i64 %place, {_FREE}
  %list = getelementptr i8, ptr %pool, i64 %at
  %is.large = icmp uge i64 %class, {FIRST_LARGE_CLASS}
  br label %again
again:
  %head = load ptr, ptr %list
  %none = icmp eq ptr %head, null
  br i1 %none, label %more, label %reuse
reuse:
  %link = call ptr @wend.link(ptr %head, i1 %is.large)
  %rest = load ptr, ptr %link
  store ptr %rest, ptr %list
  %count0 = getelementptr i8, ptr %head, i64 -16
  store i64 1, ptr %count0
  ret ptr %head
more:
  br i1 %is.large, label %large, label %cut
large:
{_field("sorted.at", _SORTED)}
  %sorted = load i64, ptr %sorted.at
  %are = icmp ne i64 %sorted, 0
  br i1 %are, label %fresh, label %sort
sort:
  call void @wend.sort(ptr %pool)
  br label %again
fresh:
  %new = call ptr @wend.block.new(i64 %class, i64 %units)
  %nothing = icmp eq ptr %new, null
  br i1 %nothing, label %fail, label %enter
enter:
  call void @wend.enter(ptr %pool, ptr %new)
  ret ptr %new
cut:
  %size = shl i64 %units, 6
{_field("cursor.at", _CURSOR)}{_field("limit.at", _LIMIT)}{_field("used.at", _USED)}
  %cursor = load ptr, ptr %cursor.at
  %limit = load ptr, ptr %limit.at
  %end = getelementptr i8, ptr %cursor, i64 %size
  %fits0 = icmp ule ptr %end, %limit
  %some = icmp ne ptr %cursor, null
  %fits = and i1 %fits0, %some
  br i1 %fits, label %cuts, label %chunk
chunk:
  %got = call i1 @wend.chunk(ptr %pool, i64 %size)
  br i1 %got, label %got.it, label %fail
got.it:
  %cursor2 = load ptr, ptr %cursor.at
  br label %cuts
cuts:
  %block = phi ptr [ %cursor, %cut ], [ %cursor2, %got.it ]
  %next = getelementptr i8, ptr %block, i64 %size
  store ptr %next, ptr %cursor.at
  store i64 1, ptr %used.at
  store i64 1, ptr %block
  %class.at = getelementptr i8, ptr %block, i64 8
  store i64 %class, ptr %class.at
  %data = getelementptr i8, ptr %block, i64 16
  ret ptr %data
}}

; Where a free block says which one is the next
define internal ptr @wend.link(ptr %data, i1 %is.large) alwaysinline {{
  %place = select i1 %is.large, i64 {FREE}, i64 0
  %link = getelementptr i8, ptr %data, i64 %place
  ret ptr %link
}}

; A large block is the pool's, with one reference.
define internal void @wend.enter(ptr %pool, ptr %data) noinline {{
{_field("total.at", TOTAL)}{_field("used.at", _USED)}
  store i64 1, ptr %used.at
{put("1", "data", COUNT)}{load("size", "data", BYTES)}
  %total = load i64, ptr %total.at
  %more = add i64 %total, %size
  store i64 %more, ptr %total.at
{link(LARGE)}
  ret void
}}

define void @wend.leave(ptr %pool, ptr %data) {{
{_field("total.at", TOTAL)}{load("size", "data", BYTES)}
  %total = load i64, ptr %total.at
  %less = sub i64 %total, %size
  store i64 %less, ptr %total.at
{unlink(LARGE)}
  ret void
}}

; Both are large blocks of one class, and the other call holds its result once: they change places.
; A pool whose call is over has no free lists, so a block that comes is one of those to be sorted.
define ptr @wend.receive(ptr %pool, ptr %new, ptr %from, ptr %result, i64 %bytes) {{
{load("class", "new", CLASS)}
  %is.large = icmp uge i64 %class, {FIRST_LARGE_CLASS}
  br i1 %is.large, label %look, label %copy
look:
{load("its.class", "result", CLASS)}{load("count", "result", COUNT)}
  %same = icmp eq i64 %class, %its.class
  %one = icmp eq i64 %count, 1
  %both = and i1 %same, %one
  br i1 %both, label %exchange, label %copy
exchange:
  call void @wend.leave(ptr %from, ptr %result)
  call void @wend.leave(ptr %pool, ptr %new)
  call void @wend.enter(ptr %from, ptr %new)
  call void @wend.enter(ptr %pool, ptr %result)
  ret ptr %result
copy:
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %result, i64 %bytes, i1 false)
  ret ptr %new
}}

; The large blocks, all of which are free, into their lists
define internal void @wend.sort(ptr %pool) noinline {{
{_field("large.at", LARGE)}{_field("used.at", _USED)}{_field("sorted.at", _SORTED)}
  store i64 1, ptr %used.at
  store i64 1, ptr %sorted.at
  %first = load ptr, ptr %large.at
  br label %head
head:
  %data = phi ptr [ %first, %0 ], [ %next, %each ]
  %over = icmp eq ptr %data, null
  br i1 %over, label %done, label %each
each:
{load("next", "data", NEXT, "ptr")}
  call void @wend.free(ptr %pool, ptr %data)
  br label %head
done:
  ret void
}}

; Go on to a chunk with so much room, the next one or a new one after this.
define internal i1 @wend.chunk(ptr %pool, i64 %size) noinline cold {{
{_field("first.at", FIRST)}{_field("chunk.at", _CHUNK)}{_field("total.at", TOTAL)}
{_field("cut.at", _CUT)}
  %here = load ptr, ptr %chunk.at
  %some = icmp ne ptr %here, null
  %link = select i1 %some, ptr %here, ptr %first.at
  %next = load ptr, ptr %link
  %needed = add i64 %size, 256
  %is = icmp ne ptr %next, null
  br i1 %is, label %look, label %make
look:
  %next.size.at = getelementptr i8, ptr %next, i64 8
  %next.size = load i64, ptr %next.size.at
  %enough = icmp uge i64 %next.size, %needed
  br i1 %enough, label %take, label %make
make:
  %total = load i64, ptr %total.at
  %cut = load i64, ptr %cut.at
  %at.least = call i64 @llvm.umax.i64(i64 %cut, i64 4096)
  %small = icmp ult i64 %at.least, {1 << 26}
  %bounded = select i1 %small, i64 %at.least, i64 {1 << 26}
  %new.size = call i64 @llvm.umax.i64(i64 %bounded, i64 %needed)
  %new = call ptr @malloc(i64 %new.size)
  %null = icmp eq ptr %new, null
  br i1 %null, label %fail, label %made
fail:
  ret i1 false
made:
  store ptr %next, ptr %new
  %new.size.at = getelementptr i8, ptr %new, i64 8
  store i64 %new.size, ptr %new.size.at
  store ptr %new, ptr %link
  %more = add i64 %total, %new.size
  store i64 %more, ptr %total.at
  %more.cut = add i64 %cut, %new.size
  store i64 %more.cut, ptr %cut.at
  br label %take
take:
  %chunk = phi ptr [ %next, %look ], [ %new, %made ]
  store ptr %chunk, ptr %chunk.at
  call void @wend.open(ptr %pool, ptr %chunk)
  ret i1 true
}}

define internal void @wend.open(ptr %pool, ptr %chunk) {{
{_field("cursor.at", _CURSOR)}{_field("limit.at", _LIMIT)}
  %size.at = getelementptr i8, ptr %chunk, i64 8
  %size = load i64, ptr %size.at
  %limit = getelementptr i8, ptr %chunk, i64 %size
  %past = getelementptr i8, ptr %chunk, i64 95
  %aligned = call ptr @llvm.ptrmask.p0.i64(ptr %past, i64 -64)
  %cursor = getelementptr i8, ptr %aligned, i64 -16
  store ptr %cursor, ptr %cursor.at
  store ptr %limit, ptr %limit.at
  ret void
}}

define void @wend.free(ptr %pool, ptr %data) {{
  %class.at = getelementptr i8, ptr %data, i64 -8
  %class = load i64, ptr %class.at
  %place = shl i64 %class, 3
  %at = add i64 %place, {_FREE}
  %list = getelementptr i8, ptr %pool, i64 %at
  %head = load ptr, ptr %list
  %is.large = icmp uge i64 %class, {FIRST_LARGE_CLASS}
  %link = call ptr @wend.link(ptr %data, i1 %is.large)
  store ptr %head, ptr %link
  store ptr %data, ptr %list
  ret void
}}

define void @wend.reset(ptr %pool) {{
{_field("used.at", _USED)}{_field("free.at", _FREE)}{_field("cursor.at", _CURSOR)}
{_field("first.at", FIRST)}{_field("chunk.at", _CHUNK)}{_field("sorted.at", _SORTED)}
  %used = load i64, ptr %used.at
  %clean = icmp eq i64 %used, 0
  br i1 %clean, label %done, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %free.at, i8 0, i64 {8 * CLASSES}, i1 false)
  store i64 0, ptr %used.at
  store i64 0, ptr %sorted.at
  %first = load ptr, ptr %first.at
  %no.chunk = icmp eq ptr %first, null
  br i1 %no.chunk, label %done, label %reopen
reopen:
  store ptr %first, ptr %chunk.at
  call void @wend.open(ptr %pool, ptr %first)
  br label %done
done:
  ret void
}}
"""

# Pasted in front of a module that uses the pool
INLINE = """
declare double @wend.sum.f64(ptr readonly, i64) nounwind willreturn memory(argmem: read)
declare float @wend.sum.f32(ptr readonly, i64) nounwind willreturn memory(argmem: read)
declare noalias ptr @wend.take(ptr, i64)
declare void @wend.free(ptr, ptr)
declare void @wend.reset(ptr)

define internal void @wend.retain(ptr %data) alwaysinline {
  %none = icmp eq ptr %data, null
  br i1 %none, label %done, label %add
add:
  %at = getelementptr i8, ptr %data, i64 -16
  %count = load i64, ptr %at
  %more = add i64 %count, 1
  store i64 %more, ptr %at
  br label %done
done:
  ret void
}

define internal void @wend.mark(ptr %data, i64 %bit) alwaysinline {
  %none = icmp eq ptr %data, null
  br i1 %none, label %done, label %set
set:
  %at = getelementptr i8, ptr %data, i64 -16
  %count = load i64, ptr %at
  %marked = or i64 %count, %bit
  store i64 %marked, ptr %at
  br label %done
done:
  ret void
}

define internal void @wend.release(ptr %pool, ptr %data) alwaysinline {
  %none = icmp eq ptr %data, null
  br i1 %none, label %done, label %sub
sub:
  %at = getelementptr i8, ptr %data, i64 -16
  %count = load i64, ptr %at
  %less = sub i64 %count, 1
  store i64 %less, ptr %at
  %last = icmp eq i64 %less, 0
  br i1 %last, label %free, label %done
free:
  call void @wend.free(ptr %pool, ptr %data)
  br label %done
done:
  ret void
}
"""


class Pool:
    """The memory of a pool: its header and free lists, and the chunks and blocks they lead to."""

    def __init__(self) -> None:
        process = ctypes.CDLL(None)
        # `release` may run when the interpreter has cleared module globals.
        self._word, self._clear = ctypes.c_int64, ctypes.memset
        self._bytes = POOL_BYTES
        self._free = process.free
        self._free.argtypes = [ctypes.c_void_p]
        self._memory = (ctypes.c_int64 * (POOL_BYTES // 8))()
        self.address = ctypes.addressof(self._memory)

    def __len__(self) -> int:
        """Return the bytes that it holds."""
        return self._memory[TOTAL // 8]

    def pop_fault(self) -> tuple[int, int]:
        """Return which redzone was overwritten and the bytes of its array, and forget it.

        The first is `redzones.BEFORE`, `redzones.BEHIND`, or 0 where all are intact.
        """
        fault = self._memory[FAULT // 8], self._memory[FAULT_BYTES // 8]
        self._memory[FAULT // 8] = 0
        return fault

    def shrink(self, most: int) -> None:
        """Free large blocks until the pool of a call that is over holds at most so many bytes."""
        block = self._memory[LARGE // 8]
        while block and len(self) > most:
            following = self._word.from_address(block + NEXT).value
            self._memory[TOTAL // 8] -= self._word.from_address(block + BYTES).value
            self._free(block - HEAD)
            block = following
        self._memory[LARGE // 8] = block
        if block:
            self._word.from_address(block + PREVIOUS).value = 0
        self._memory[_USED // 8] = 1  # the free lists are built anew

    def release(self) -> None:
        """Free all memory of the pool."""
        for first, link, start in ((FIRST, 0, 0), (LARGE, NEXT, -HEAD), (CHECKED, NEXT, -HEAD)):
            block = self._memory[first // 8]
            while block:
                following = self._word.from_address(block + link).value
                self._free(block + start)
                block = following
        self._clear(self.address, 0, self._bytes)
