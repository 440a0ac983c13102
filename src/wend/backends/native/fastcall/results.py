"""LLVM IR that makes Python objects of results."""

from __future__ import annotations

from wend.backends.native.fastcall.descriptor import (
    DATA_AT,
    FLAGS_AT,
    HANDLER_AT,
    MAX_AXES,
    NUMBER,
    OBJECT,
    POINTED,
)
from wend.backends.native.rt.blocks import CLASS, COUNT, load
from wend.backends.native.rt.pool import FIRST_LARGE_CLASS, SHARED_BIT

_MIN_OWNED_BYTES = 4096  # smaller results are copied into memory that NumPy allocates
# NPY_ARRAY_OWNDATA; NPY_ARRAY_CARRAY: C-contiguous, aligned and writeable
_OWNDATA, _NEW_ARRAY = 0x4, 0x501

RESULT = (
    """
; Makes an object of a result, null where that raises. A large array takes its block of the pool
; along, unless another result has, or a list that is handed out refers to it.
define ptr @wend.get(ptr %result, ptr %block, ptr %handler, ptr %pool) {
  %kind = load i64, ptr %result
"""
    + (
        load("offset", "result", 16)
        + load("dtype", "result", 24, "ptr")
        + load("size", "result", 32)
        + load("axes", "result", 40)
    )
    + f"""
  %slot = getelementptr i8, ptr %block, i64 %offset
  %dims = alloca [{MAX_AXES} x i64]
  switch i64 %kind, label %new [
    i64 {OBJECT}, label %object
    i64 {NUMBER}, label %number
    i64 {POINTED}, label %pointed
  ]
object:
  call void @Py_IncRef(ptr %dtype)
  ret ptr %dtype
number:
  %scalar = call ptr @PyArray_Scalar(ptr %slot, ptr %dtype, ptr null)
  ret ptr %scalar
pointed:
  %there = load ptr, ptr %slot
  %element = call ptr @PyArray_Scalar(ptr %there, ptr %dtype, ptr null)
  ret ptr %element
new:
  %codes = getelementptr i8, ptr %result, i64 48
  %from = load ptr, ptr %slot
  br label %head
head:
  %k = phi i64 [ 0, %new ], [ %next, %goes.on ]
  %at = phi i64 [ 1, %new ], [ %at1, %goes.on ]
  %total = phi i64 [ %size, %new ], [ %more, %goes.on ]
  %rest = icmp ult i64 %k, %axes
  br i1 %rest, label %each, label %make
each:
  %code.at = getelementptr i64, ptr %codes, i64 %k
  %code = load i64, ptr %code.at
  %known = icmp sge i64 %code, 0
  br i1 %known, label %goes.on, label %find
find:
  %extent.at = getelementptr i64, ptr %slot, i64 %at
  %found = load i64, ptr %extent.at
  %after = add i64 %at, 1
  br label %goes.on
goes.on:
  %dim = phi i64 [ %code, %each ], [ %found, %find ]
  %at1 = phi i64 [ %at, %each ], [ %after, %find ]
  %dim.at = getelementptr i64, ptr %dims, i64 %k
  store i64 %dim, ptr %dim.at
  %more = mul i64 %total, %dim
  %next = add i64 %k, 1
  br label %head
make:
  %axes32 = trunc i64 %axes to i32
  call void @Py_IncRef(ptr %dtype)
  %large = icmp uge i64 %total, {_MIN_OWNED_BYTES}
  br i1 %large, label %own, label %theirs
theirs:
  %array = call ptr @PyArray_NewFromDescr(ptr @ndarray, ptr %dtype, i32 %axes32, ptr %dims,
      ptr null, ptr null, i32 0, ptr null)
  %none = icmp eq ptr %array, null
  br i1 %none, label %fail, label %fill
fail:
  ret ptr null
own:
{load("class", "from", CLASS)}{load("count", "from", COUNT)}
  %of.its.own = icmp uge i64 %class, {FIRST_LARGE_CLASS}
  %others = sub i64 %count, 1
  %unshared = icmp ult i64 %others, {SHARED_BIT - 1}
  %hands.over = and i1 %of.its.own, %unshared
  br i1 %hands.over, label %hand, label %ask
hand:
  store i64 0, ptr %count.at
  call void @wend.leave(ptr %pool, ptr %from)
  br label %wrap
ask:
  %asked = call ptr @wend.malloc(ptr null, i64 %total)
  %no.memory = icmp eq ptr %asked, null
  br i1 %no.memory, label %empty, label %wrap
empty:
  call void @Py_DecRef(ptr %dtype)
  %raised = call ptr @PyErr_NoMemory()
  ret ptr null
wrap:
  %memory = phi ptr [ %from, %hand ], [ %asked, %ask ]
  %wrapped = call ptr @PyArray_NewFromDescr(ptr @ndarray, ptr %dtype, i32 %axes32, ptr %dims,
      ptr null, ptr %memory, i32 {_NEW_ARRAY}, ptr null)
  %not = icmp eq ptr %wrapped, null
  br i1 %not, label %free, label %owned
free:
  call void @wend.give_back(ptr null, ptr %memory, i64 %total)
  ret ptr null
owned:
{load("flags", "wrapped", FLAGS_AT, "i32")}
  %owns = or i32 %flags, {_OWNDATA}
  store i32 %owns, ptr %flags.at
  call void @Py_IncRef(ptr %handler)
  %handler.at = getelementptr i8, ptr %wrapped, i64 {HANDLER_AT}
  store ptr %handler, ptr %handler.at
  br i1 %hands.over, label %done, label %fill
fill:
  %made = phi ptr [ %array, %theirs ], [ %wrapped, %owned ]
{load("to", "made", DATA_AT, "ptr")}
  %copied = call ptr @memcpy(ptr %to, ptr %from, i64 %total)
  ret ptr %made
done:
  ret ptr %wrapped
}}
"""
)
