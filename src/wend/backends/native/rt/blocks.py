"""Large blocks: pool memory that NumPy arrays take over and return to a cache.

A large result is not copied: its block leaves the pool and becomes the array's memory
(`fastcall/results.py`). When NumPy frees the array through its memory handler
(`target/numpy_capi.py`), the block is cached for the next pool that needs one, evicting the oldest
blocks. So blocks circulate, and the system does not have to clear new memory.

    ptr  wend.block.new(class, units)   allocate a block of a size class; null if out of memory
    void wend.block.drop(ptr)           put a block into the cache, or free it
    void wend.block.forget()            empty the cache in a fork, without freeing its blocks
    ptr  wend.malloc(context, bytes)    the allocator that NumPy calls; also calloc, realloc, …

The elements start 64 bytes after the block, aligned to 64 bytes. The header before them holds the
previous and next block of the pool, the next free block and the size in bytes; its last 16 bytes,
as in every block of a pool, the reference count and the size class, which is 0 outside of pools.

Arrays are freed under the GIL while other threads run without it. A thread that finds the cache
locked does not wait but goes to the system allocator.
"""

from __future__ import annotations

import sys

HEAD = 64
PREVIOUS, NEXT, FREE, BYTES, COUNT, CLASS = -64, -56, -48, -40, -16, -8
MAX_CACHED_BLOCKS = 64  # a power of 2
MAX_CACHED_BYTES = 1 << 26
_MIN_HUGE_PAGE_BYTES = 1 << 22  # blocks from here on ask for huge pages, as NumPy does
_MADV_HUGEPAGE = 14

NAMES = (
    *("wend.block.new", "wend.block.drop", "wend.block.kept", "wend.block.forget"),
    *("wend.malloc", "wend.calloc", "wend.realloc", "wend.give_back"),
)


def load(name: str, base: str, offset: int, type: str = "i64") -> str:
    """Return the lines that load the field at an offset into `%name`."""
    return (
        f"  %{name}.at = getelementptr i8, ptr %{base}, i64 {offset}\n"
        f"  %{name} = load {type}, ptr %{name}.at\n"
    )


def put(value: str, base: str, offset: int, type: str = "i64") -> str:
    """Return the lines that store into the field at an offset."""
    name = f"%{base}.{abs(offset)}.to"
    return (
        f"  {name} = getelementptr i8, ptr %{base}, i64 {offset}\n"
        f"  store {type} {value}, ptr {name}\n"
    )


# A slot of the cache is a size class and a block's elements, or 0. The next block goes to the slot
# that was filled first.
LIBRARY = f"""
declare ptr @aligned_alloc(i64, i64)
declare ptr @calloc(i64, i64)
declare ptr @realloc(ptr, i64)
declare void @free(ptr)

@lock = internal global i32 0
@kept = internal global [{MAX_CACHED_BLOCKS} x {{ i64, ptr }}] zeroinitializer
@oldest = internal global i64 0
@total = internal global i64 0

define ptr @wend.block.new(i64 %class, i64 %units) {{
  br label %go
go:
  %size0 = shl i64 %units, 6
  %size = add i64 %size0, {HEAD}
  %was = atomicrmw xchg ptr @lock, i32 1 acquire
  %mine = icmp eq i32 %was, 0
  br i1 %mine, label %look, label %make
look:
  %k = phi i64 [ 0, %go ], [ %k1, %each ]
  %rest = icmp ult i64 %k, {MAX_CACHED_BLOCKS}
  br i1 %rest, label %each, label %none
none:
  store atomic i32 0, ptr @lock release, align 4
  br label %make
each:
  %slot = getelementptr {{ i64, ptr }}, ptr @kept, i64 %k
  %its = load i64, ptr %slot
  %k1 = add i64 %k, 1
  %same = icmp eq i64 %its, %class
  br i1 %same, label %take, label %look
take:
  store i64 0, ptr %slot
{load("found", "slot", 8, "ptr")}
  %total = load i64, ptr @total
  %less = sub i64 %total, %size
  store i64 %less, ptr @total
  store atomic i32 0, ptr @lock release, align 4
  ret ptr %found
make:
  %start = call ptr @aligned_alloc(i64 64, i64 %size)
  %null = icmp eq ptr %start, null
  br i1 %null, label %fail, label %made
fail:
  ret ptr null
made:
  %data = getelementptr i8, ptr %start, i64 {HEAD}
{put("%class", "data", CLASS)}{put("%size", "data", BYTES)}
  call void @wend.large.pages(ptr %start, i64 %size)
  ret ptr %data
}}

define void @wend.block.drop(ptr %data) {{
{load("size", "data", BYTES)}
  %small = icmp ule i64 %size, {MAX_CACHED_BYTES}
  br i1 %small, label %try, label %system
try:
  %was = atomicrmw xchg ptr @lock, i32 1 acquire
  %mine = icmp eq i32 %was, 0
  br i1 %mine, label %room, label %system
system:
  call void @wend.block.free(ptr %data)
  ret void
room:
  %oldest0 = load i64, ptr @oldest
  %total0 = load i64, ptr @total
  %after0 = add i64 %total0, %size
  br label %forget
forget:
  ; Always the one in the way; then others until there is room
  %j = phi i64 [ %oldest0, %room ], [ %j1, %forgot ]
  %after = phi i64 [ %after0, %room ], [ %after2, %forgot ]
  %slot = getelementptr {{ i64, ptr }}, ptr @kept, i64 %j
  %class = load i64, ptr %slot
  store i64 0, ptr %slot
  %empty = icmp eq i64 %class, 0
  br i1 %empty, label %forgot, label %lose
lose:
{load("there", "slot", 8, "ptr")}{load("its", "there", BYTES)}
  %after1 = sub i64 %after, %its
  call void @wend.block.free(ptr %there)
  br label %forgot
forgot:
  %after2 = phi i64 [ %after, %forget ], [ %after1, %lose ]
  %j0 = add i64 %j, 1
  %j1 = and i64 %j0, {MAX_CACHED_BLOCKS - 1}
  %over = icmp ugt i64 %after2, {MAX_CACHED_BYTES}
  br i1 %over, label %forget, label %keep
keep:
  %here = getelementptr {{ i64, ptr }}, ptr @kept, i64 %oldest0
{load("mine.too", "data", CLASS)}{put("%mine.too", "here", 0)}{put("%data", "here", 8, "ptr")}
  %next0 = add i64 %oldest0, 1
  %next = and i64 %next0, {MAX_CACHED_BLOCKS - 1}
  store i64 %next, ptr @oldest
  store i64 %after2, ptr @total
  store atomic i32 0, ptr @lock release, align 4
  ret void
}}

; Another thread of the parent may have left the cache locked and half changed
define void @wend.block.forget() {{
  store [{MAX_CACHED_BLOCKS} x {{ i64, ptr }}] zeroinitializer, ptr @kept
  store i64 0, ptr @oldest
  store i64 0, ptr @total
  store atomic i32 0, ptr @lock release, align 4
  ret void
}}

; How many bytes are kept
define i64 @wend.block.kept() {{
  %total = load i64, ptr @total
  ret i64 %total
}}

define internal void @wend.block.free(ptr %data) alwaysinline {{
  %start = getelementptr i8, ptr %data, i64 {-HEAD}
  call void @free(ptr %start)
  ret void
}}

; Memory of arrays, as NumPy asks for it
define ptr @wend.malloc(ptr %context, i64 %size) {{
  %up = add i64 %size, {HEAD + 63}
  %whole = and i64 %up, -64
  %start = call ptr @aligned_alloc(i64 64, i64 %whole)
  %data = call ptr @wend.named(ptr %start)
  ret ptr %data
}}
define ptr @wend.calloc(ptr %context, i64 %count, i64 %each) {{
  %size = mul i64 %count, %each
  %more = add i64 %size, {HEAD}
  %start = call ptr @calloc(i64 1, i64 %more)
  %data = call ptr @wend.named(ptr %start)
  ret ptr %data
}}
define ptr @wend.realloc(ptr %context, ptr %old, i64 %size) {{
  %before = getelementptr i8, ptr %old, i64 {-HEAD}
  %more = add i64 %size, {HEAD}
  %start = call ptr @realloc(ptr %before, i64 %more)
  %data = call ptr @wend.named(ptr %start)
  ret ptr %data
}}
define void @wend.give_back(ptr %context, ptr %data, i64 %size) {{
{load("class", "data", CLASS)}
  %alone = icmp eq i64 %class, 0
  br i1 %alone, label %free, label %drop
free:
  call void @wend.block.free(ptr %data)
  ret void
drop:
  call void @wend.block.drop(ptr %data)
  ret void
}}

; Memory that is of no class
define internal ptr @wend.named(ptr %start) {{
  %none = icmp eq ptr %start, null
  br i1 %none, label %fail, label %go
fail:
  ret ptr null
go:
  %data = getelementptr i8, ptr %start, i64 {HEAD}
{put("0", "data", CLASS)}
  ret ptr %data
}}
"""

_NO_HUGE_PAGES = """
define internal void @wend.large.pages(ptr %start, i64 %size) alwaysinline {
  ret void
}
"""
_HUGE_PAGES = f"""
declare i32 @madvise(ptr, i64, i32)

define internal void @wend.large.pages(ptr %start, i64 %size) alwaysinline {{
  %large = icmp uge i64 %size, {_MIN_HUGE_PAGE_BYTES}
  br i1 %large, label %ask, label %done
ask:
  %past = getelementptr i8, ptr %start, i64 4095
  %page = call ptr @llvm.ptrmask.p0.i64(ptr %past, i64 -4096)
  %rest = sub i64 %size, 4096
  %asked = call i32 @madvise(ptr %page, i64 %rest, i32 {_MADV_HUGEPAGE})
  br label %done
done:
  ret void
}}
"""
LIBRARY += _HUGE_PAGES if sys.platform.startswith("linux") else _NO_HUGE_PAGES


# The allocator of large blocks for programs without Python, which keeps none and shares nothing
OWN_LIBRARY = f"""
declare ptr @aligned_alloc(i64, i64)

define ptr @wend.block.new(i64 %class, i64 %units) {{
  %size0 = shl i64 %units, 6
  %size = add i64 %size0, {HEAD}
  %start = call ptr @aligned_alloc(i64 64, i64 %size)
  %null = icmp eq ptr %start, null
  br i1 %null, label %fail, label %made
fail:
  ret ptr null
made:
  %data = getelementptr i8, ptr %start, i64 {HEAD}
{put("%class", "data", CLASS)}{put("%size", "data", BYTES)}
  ret ptr %data
}}
"""
