"""LLVM IR by which machine code of other systems runs a compiled graph on their buffers.

    i64 wend.buffers.call(ptr words, ptr *inputs, ptr *outputs, ptr *failed)

Inputs and outputs are the addresses of elements in C order. The function returns 0, -1 where
there is no workspace, or the status of the run; then `failed` has the workspace. It runs without
the GIL, in any number of threads: the stack of idle workspaces has a lock.

    PyObject *wend.buffers.enter(PyObject *self, PyObject **addresses, ssize_t count)

This is the same for Python: it takes the addresses of inputs and outputs as ints, and returns an
int, 0. `self` is a tuple whose first item is the array of words, in which `arguments` is the number
of inputs and `fail` a callable that raises.

The words are those of `descriptor.py`; `run/buffer_call.py` fills them in. `more` and `trim` are
functions of C here, and the word after `idle`'s is the lock.
"""

from __future__ import annotations

from wend.backends.native.fastcall.descriptor import DATA_AT, ITEM_AT, WORDS, word
from wend.backends.native.rt.blocks import load

NAME, ENTER = NAMES = "wend.buffers.call", "wend.buffers.enter"

# Each operand: kind, offset in the block, item size, the address of an array that is the same at
# each call or 0, index of the buffer, offset in the workspace's node of a header like that of an
# ndarray object
OPERAND_WORDS = 6
# Each result: kind, offset in the block, bytes
RESULT_WORDS = 3
BY_VALUE, BY_ADDRESS = range(2)  # kinds
HEADER_BYTES = 40  # up to the pointer to the sizes, which are known when the graph is compiled
DATA_IN_HEADER = object.__basicsize__
NO_WORKSPACE = -1

BUFFERS = f"""
declare i32 @sched_yield()

define internal void @wend.buffers.lock(ptr %lock) alwaysinline {{
  br label %try
try:
  %was = atomicrmw xchg ptr %lock, i32 1 acquire
  %mine = icmp eq i32 %was, 0
  br i1 %mine, label %done, label %wait
wait:
  %yielded = call i32 @sched_yield()
  br label %try
done:
  ret void
}}

define i64 @{NAME}(ptr %words, ptr %inputs, ptr %outputs, ptr %failed) {{
{word("idle", "ptr")}
  %lock = getelementptr i8, ptr %idle, i64 8
  call void @wend.buffers.lock(ptr %lock)
  %top = load ptr, ptr %idle
  %empty = icmp eq ptr %top, null
  br i1 %empty, label %ask, label %pop
pop:
  %below = load ptr, ptr %top
  store ptr %below, ptr %idle
  store atomic i32 0, ptr %lock release, align 4
  br label %taken
ask:
  store atomic i32 0, ptr %lock release, align 4
{word("more", "ptr")}
  %asked = call ptr %more()
  %none = icmp eq ptr %asked, null
  br i1 %none, label %without, label %taken
without:
  ret i64 {NO_WORKSPACE}

taken:
  %own = phi ptr [ %top, %pop ], [ %asked, %ask ]
{load("block", "own", 8, "ptr")}{word("params", "ptr")}{word("param_count")}
  br label %operand
operand:
  %k = phi i64 [ 0, %taken ], [ %k1, %put ]
  %k.left = icmp ult i64 %k, %param_count
  br i1 %k.left, label %find, label %run.it
find:
  %k1 = add i64 %k, 1
  %at = getelementptr [{OPERAND_WORDS} x i64], ptr %params, i64 %k
  %kind = load i64, ptr %at
{load("offset", "at", 8)}{load("size", "at", 16)}{load("constant", "at", 24, "ptr")}
{load("index", "at", 32)}{load("header.offset", "at", 40)}
  %slot = getelementptr i8, ptr %block, i64 %offset
  %buffer.at = getelementptr ptr, ptr %inputs, i64 %index
  %is.buffer = icmp eq ptr %constant, null
  br i1 %is.buffer, label %buffer, label %found
buffer:
  %given = load ptr, ptr %buffer.at
  br label %found
found:
  %data = phi ptr [ %constant, %find ], [ %given, %buffer ]
  %is.value = icmp eq i64 %kind, {BY_VALUE}
  br i1 %is.value, label %value, label %address
value:
  store i64 0, ptr %slot
  %copied = call ptr @memcpy(ptr %slot, ptr %data, i64 %size)
  br label %put
address:
  %header = getelementptr i8, ptr %own, i64 %header.offset
  %data.at = getelementptr i8, ptr %header, i64 {DATA_IN_HEADER}
  store ptr %data, ptr %data.at
  store ptr %header, ptr %slot
  br label %put
put:
  br label %operand

run.it:
{word("run", "ptr")}
  %status = call i32 %run(ptr %block)
  %good = icmp eq i32 %status, 0
  br i1 %good, label %results.too, label %report
report:
  store ptr %own, ptr %failed
  %status.number = sext i32 %status to i64
  ret i64 %status.number

results.too:
{word("results", "ptr")}{word("result_count")}
  br label %result
result:
  %r = phi i64 [ 0, %results.too ], [ %r1, %copy ]
  %r.left = icmp ult i64 %r, %result_count
  br i1 %r.left, label %get, label %weigh
get:
  %r1 = add i64 %r, 1
  %r.at = getelementptr [{RESULT_WORDS} x i64], ptr %results, i64 %r
  %r.kind = load i64, ptr %r.at
{load("r.offset", "r.at", 8)}{load("r.size", "r.at", 16)}
  %r.slot = getelementptr i8, ptr %block, i64 %r.offset
  %in.slot = icmp eq i64 %r.kind, {BY_VALUE}
  br i1 %in.slot, label %copy, label %follow
follow:
  %elements = load ptr, ptr %r.slot
  br label %copy
copy:
  %from = phi ptr [ %r.slot, %get ], [ %elements, %follow ]
  %to.at = getelementptr ptr, ptr %outputs, i64 %r
  %to = load ptr, ptr %to.at
  %moved = call ptr @memcpy(ptr %to, ptr %from, i64 %r.size)
  br label %result

weigh:
  %large = call i1 @wend.is_large(ptr %words, ptr %own, ptr %block)
  br i1 %large, label %give, label %push
give:
{word("trim", "ptr")}
  call void %trim(ptr %own)
  ret i64 0
push:
  call void @wend.buffers.lock(ptr %lock)
  call void @wend.push(ptr %idle, ptr %own)
  store atomic i32 0, ptr %lock release, align 4
  ret i64 0
}}

define ptr @{ENTER}(ptr %self, ptr %arguments, i64 %count) {{
  %failed = alloca ptr
  %addresses = alloca ptr, i64 %count
  store ptr null, ptr %failed
{load("array", "self", ITEM_AT, "ptr")}{load("words", "array", DATA_AT, "ptr")}
  br label %next
next:
  %k = phi i64 [ 0, %0 ], [ %k1, %each ]
  %left = icmp ult i64 %k, %count
  br i1 %left, label %each, label %run
each:
  %k1 = add i64 %k, 1
  %argument.at = getelementptr ptr, ptr %arguments, i64 %k
  %argument = load ptr, ptr %argument.at
  %address = call ptr @PyLong_AsVoidPtr(ptr %argument)
  %address.at = getelementptr ptr, ptr %addresses, i64 %k
  store ptr %address, ptr %address.at
  br label %next
run:
{load("inputs", "words", 8 * WORDS.index("arguments"))}
  %outputs = getelementptr ptr, ptr %addresses, i64 %inputs
  %thread = call ptr @PyEval_SaveThread()
  %status = call i64 @{NAME}(ptr %words, ptr %addresses, ptr %outputs, ptr %failed)
  call void @PyEval_RestoreThread(ptr %thread)
  %good = icmp eq i64 %status, 0
  br i1 %good, label %done, label %raise
done:
  %zero = call ptr @PyLong_FromLongLong(i64 0)
  ret ptr %zero
raise:
{word("fail", "ptr")}
  %where = load i64, ptr %failed
  %nothing = call ptr (ptr, ptr, ...) @PyObject_CallFunction(ptr %fail, ptr @wend.both,
      i64 %where, i64 %status)
  ret ptr null
}}
"""
