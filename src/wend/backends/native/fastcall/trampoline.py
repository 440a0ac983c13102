"""The trampoline: machine code that Python calls to run a compiled graph.

    PyObject *wend.call(PyObject *self, PyObject **arguments, ssize_t count)
    PyObject *wend.call.or(PyObject *self, PyObject **arguments, ssize_t count, PyObject *names)

`self` is a tuple whose first item is an array of words that describes the call
(`descriptor.py`, `run/entry.py`). One function serves all graphs: interpreting the words takes
some nanoseconds per argument, and nothing has to be compiled. It holds the GIL except while the
graph runs, which protects the words and the stack of idle workspaces.
"""

from __future__ import annotations

import numpy as np

from wend.backends.native.fastcall import buffers
from wend.backends.native.fastcall.arguments import GUARDS, PARAM, STATIC
from wend.backends.native.fastcall.descriptor import (
    ARRAY,
    BOXED,
    C_CONTIGUOUS_ALIGNED,
    COPIES,
    DATA_AT,
    DTYPE_AT,
    FLAGS_AT,
    HEADER_BYTES,
    ITEM_AT,
    MAX_AXES,
    NOTHING,
    RELEASES,
    SINGLE,
    TYPE_AT,
    WORDS,
    word,
)
from wend.backends.native.fastcall.guard_checks import GUARD_CHECKS
from wend.backends.native.fastcall.results import RESULT
from wend.backends.native.rt.blocks import load, put
from wend.backends.native.rt.pool import TOTAL
from wend.backends.native.target.value_layout import ARENA_BYTES

NAMES = ("wend.call", "wend.call.or", "wend.get", "wend.guards.check", *buffers.NAMES)
NUMPY_IMPORTS = {  # indices in the table of NumPy's C-API
    "PyArray_Scalar": 60,
    "PyArray_NewCopy": 85,
    "PyArray_NewFromDescr": 94,
}
OBJECTS = {"ndarray": np.ndarray, "float": float, "int": int, "true": True, "false": False}

_C_ORDER = 0  # NPY_CORDER

_TRIM = f"""
; Whether a workspace holds so much memory that Python is to look at it.
define internal i1 @wend.is_large(ptr %words, ptr %space, ptr %block) {{
{word("kept")}{load("pool", "space", 16, "ptr")}
  %no.pool = icmp eq ptr %pool, null
  br i1 %no.pool, label %look, label %weigh
weigh:
{load("total", "pool", TOTAL)}
  %much = icmp ugt i64 %total, %kept
  br i1 %much, label %yes, label %look
yes:
  ret i1 true
look:
{word("arenas")}{word("arena_count")}{word("strides", "ptr")}
  %first = getelementptr i8, ptr %block, i64 %arenas
  br label %head
head:
  %k = phi i64 [ 0, %look ], [ %next, %each ]
  %sum = phi i64 [ 0, %look ], [ %more, %each ]
  %rest = icmp ult i64 %k, %arena_count
  br i1 %rest, label %each, label %done
each:
  %arena = getelementptr [{ARENA_BYTES} x i8], ptr %first, i64 %k
{load("room", "arena", 8)}
  %stride.at = getelementptr i64, ptr %strides, i64 %k
  %stride = load i64, ptr %stride.at
  %size = mul i64 %room, %stride
  %more = add i64 %sum, %size
  %next = add i64 %k, 1
  br label %head
done:
  %is = icmp ugt i64 %sum, %kept
  ret i1 %is
}}
"""

_CALL = f"""
@wend.address = private constant [2 x i8] c"L\\00"
@wend.both = private constant [3 x i8] c"LL\\00"

define ptr @wend.call(ptr %self, ptr %arguments, i64 %count) {{
  %sizes = alloca [{MAX_AXES} x i64]
  %sum = alloca i64
  %copies = alloca ptr
  store ptr null, ptr %copies
{load("array", "self", ITEM_AT, "ptr")}{load("words", "array", DATA_AT, "ptr")}
{word("miss", "ptr")}
  call void @Py_IncRef(ptr %miss)
{load("wanted", "words", 8 * WORDS.index("arguments"))}
  %as.many = icmp eq i64 %count, %wanted
  br i1 %as.many, label %guarded, label %no
no:
  ret ptr %miss
guarded:
{word("guards", "ptr")}{word("guard_count")}
  br label %guard
guard:
  %g = phi i64 [ 0, %guarded ], [ %g1, %held ]
  %g.rest = icmp ult i64 %g, %guard_count
  br i1 %g.rest, label %hold, label %checked
hold:
  %g.at = getelementptr [3 x ptr], ptr %guards, i64 %g
  %holds = call i1 @wend.holds(ptr %g.at)
  br i1 %holds, label %held, label %no
held:
  %g1 = add i64 %g, 1
  br label %guard
checked:
{word("checks", "ptr")}
  %unchecked = icmp eq ptr %checks, null
  br i1 %unchecked, label %space, label %check
check:
  %all.hold = call i1 @wend.guards.hold(ptr %checks)
  br i1 %all.hold, label %space, label %stale
stale:
{put("1", "words", 8 * WORDS.index("stale"))}
  br label %no

space:
{word("idle", "ptr")}
  %top = load ptr, ptr %idle
  %empty = icmp eq ptr %top, null
  br i1 %empty, label %ask, label %pop
pop:
  %below = load ptr, ptr %top
  store ptr %below, ptr %idle
  br label %taken
ask:
{word("more", "ptr")}
  %number = call ptr (ptr, ptr, ...) @PyObject_CallFunction(ptr %more, ptr null)
  %no.space = icmp eq ptr %number, null
  br i1 %no.space, label %raise, label %asked
raise:
  call void @Py_DecRef(ptr %miss)
  ret ptr null
asked:
  %made = call ptr @PyLong_AsVoidPtr(ptr %number)
  call void @Py_DecRef(ptr %number)
  br label %taken

taken:
  %own = phi ptr [ %top, %pop ], [ %made, %asked ]
{load("block", "own", 8, "ptr")}{word("bytes")}
  store i64 %bytes, ptr %sum
{word("params", "ptr")}{word("param_count")}
  br label %param
param:
  %p = phi i64 [ 0, %taken ], [ %p1, %goes.on ]
  %at = phi ptr [ %params, %taken ], [ %at1, %goes.on ]
  %p.rest = icmp ult i64 %p, %param_count
  br i1 %p.rest, label %take, label %run.it
take:
  %kind = load i64, ptr %at
{load("length", "at", 8)}
  %at1 = getelementptr i8, ptr %at, i64 %length
  %p1 = add i64 %p, 1
  %is.nothing = icmp eq i64 %kind, {NOTHING}
  br i1 %is.nothing, label %goes.on, label %which
which:
{load("bound", "at", 16, "ptr")}
  %is.given = icmp eq ptr %bound, null
  br i1 %is.given, label %given, label %put
given:
{load("index", "at", 24)}
  %argument.at = getelementptr ptr, ptr %arguments, i64 %index
  %argument = load ptr, ptr %argument.at
  br label %put
put:
  %object = phi ptr [ %bound, %which ], [ %argument, %given ]
  switch i64 %kind, label %place [
    i64 {BOXED}, label %box
    i64 {ARRAY}, label %look
  ]
box:
  %room = alloca [{HEADER_BYTES} x i8], align 8
  br label %place
look:
  %is.strided = call i1 @wend.is.strided(ptr %at, ptr %object)
  br i1 %is.strided, label %may.copy, label %place
may.copy:
{word("flags", "i64", "layout.flags")}
  %copy.flag = and i64 %layout.flags, {COPIES}
  %is.copied = icmp ne i64 %copy.flag, 0
  br i1 %is.copied, label %copy, label %place
copy:
  %other = call ptr @PyArray_NewCopy(ptr %object, i32 {_C_ORDER})
  %no.copy = icmp eq ptr %other, null
  br i1 %no.copy, label %fail.copy, label %note.copy
note.copy:
  %entry = alloca [2 x ptr], align 8
  %last = load ptr, ptr %copies
  store ptr %last, ptr %entry
{put("%other", "entry", 8, "ptr")}
  store ptr %entry, ptr %copies
  br label %place
fail.copy:
  call void @wend.drop(ptr %copies)
  call void @wend.push(ptr %idle, ptr %own)
  br label %raise
place:
  %header = phi ptr [ null, %put ], [ %room, %box ], [ null, %look ], [ null, %may.copy ],
      [ null, %note.copy ]
  %in.order = phi ptr [ %object, %put ], [ %object, %box ], [ %object, %look ],
      [ %object, %may.copy ], [ %other, %note.copy ]
  %fits = call i1 @wend.put(ptr %at, ptr %in.order, ptr %block, ptr %sizes, ptr %sum, ptr %header)
  br i1 %fits, label %goes.on, label %misfit
goes.on:
  br label %param
misfit:
  call void @wend.drop(ptr %copies)
  call void @wend.push(ptr %idle, ptr %own)
  ret ptr %miss

run.it:
  call void @Py_DecRef(ptr %miss)
{word("calls", "ptr")}
  %calls.before = load i64, ptr %calls
  %calls.after = add i64 %calls.before, 1
  store i64 %calls.after, ptr %calls
{word("run", "ptr")}{word("flags")}{word("limit")}
  %weight = load i64, ptr %sum
  %heavy = icmp ugt i64 %weight, %limit
  %release = and i64 %flags, {RELEASES}
  %releases = icmp ne i64 %release, 0
  %lets.go = or i1 %heavy, %releases
  br i1 %lets.go, label %apart, label %here
here:
  %status0 = call i32 %run(ptr %block)
  br label %ran
apart:
  %thread = call ptr @PyEval_SaveThread()
  %status1 = call i32 %run(ptr %block)
  call void @PyEval_RestoreThread(ptr %thread)
  br label %ran
ran:
  %status = phi i32 [ %status0, %here ], [ %status1, %apart ]
  %good = icmp eq i32 %status, 0
  br i1 %good, label %results.too, label %failed
failed:
{word("fail", "ptr")}
  %own.number = ptrtoint ptr %own to i64
  %status.number = sext i32 %status to i64
  %nothing = call ptr (ptr, ptr, ...) @PyObject_CallFunction(ptr %fail, ptr @wend.both,
      i64 %own.number, i64 %status.number)
  call void @wend.drop(ptr %copies)
  ret ptr null

results.too:
{word("results", "ptr")}{word("result_count")}{word("handler", "ptr")}
{load("pool", "own", 16, "ptr")}
  %one = and i64 %flags, {SINGLE}
  %is.one = icmp ne i64 %one, 0
  br i1 %is.one, label %single, label %tuple
single:
  %only = call ptr @wend.get(ptr %results, ptr %block, ptr %handler, ptr %pool)
  br label %leave
tuple:
  %all = call ptr @PyTuple_New(i64 %result_count)
  %no.tuple = icmp eq ptr %all, null
  br i1 %no.tuple, label %leave, label %result
result:
  %r = phi i64 [ 0, %tuple ], [ %r1, %got ]
  %r.at = phi ptr [ %results, %tuple ], [ %r.at1, %got ]
  %r.rest = icmp ult i64 %r, %result_count
  br i1 %r.rest, label %get, label %leave
get:
  %item = call ptr @wend.get(ptr %r.at, ptr %block, ptr %handler, ptr %pool)
  %no.item = icmp eq ptr %item, null
  br i1 %no.item, label %drop, label %got
got:
  %stored = call i32 @PyTuple_SetItem(ptr %all, i64 %r, ptr %item)
  %r1 = add i64 %r, 1
{load("r.length", "r.at", 8)}
  %r.at1 = getelementptr i8, ptr %r.at, i64 %r.length
  br label %result
drop:
  call void @Py_DecRef(ptr %all)
  br label %leave
leave:
  %found = phi ptr [ %only, %single ], [ null, %tuple ], [ %all, %result ], [ null, %drop ]
  call void @wend.drop(ptr %copies)
  %large = call i1 @wend.is_large(ptr %words, ptr %own, ptr %block)
  %present = icmp ne ptr %found, null
  %trims = and i1 %large, %present
  br i1 %trims, label %ask.trim, label %push
push:
  call void @wend.push(ptr %idle, ptr %own)
  ret ptr %found
ask.trim:
{word("trim", "ptr")}
  %its.number = ptrtoint ptr %own to i64
  %trimmed = call ptr (ptr, ptr, ...) @PyObject_CallFunction(ptr %trim, ptr @wend.address,
      i64 %its.number)
  %untrimmed = icmp eq ptr %trimmed, null
  br i1 %untrimmed, label %lose, label %kept.it
lose:
  call void @Py_DecRef(ptr %found)
  ret ptr null
kept.it:
  call void @Py_DecRef(ptr %trimmed)
  ret ptr %found
}}

; The same for calls by keyword too: where it misses, Python's callable does the call.
define ptr @wend.call.or(ptr %self, ptr %arguments, i64 %count, ptr %names) {{
{load("array", "self", ITEM_AT, "ptr")}{load("words", "array", DATA_AT, "ptr")}
{word("miss", "ptr")}{word("otherwise", "ptr")}
  %by.position = icmp eq ptr %names, null
  br i1 %by.position, label %directly, label %by.python
directly:
  %found = call ptr @wend.call(ptr %self, ptr %arguments, i64 %count)
  %missed = icmp eq ptr %found, %miss
  br i1 %missed, label %drop, label %done
done:
  ret ptr %found
drop:
  call void @Py_DecRef(ptr %found)
  br label %by.python
by.python:
  %other = call ptr @PyObject_Vectorcall(ptr %otherwise, ptr %arguments, i64 %count, ptr %names)
  ret ptr %other
}}

; Whether an argument is an array of the param's dtype whose elements are not in C order.
define internal i1 @wend.is.strided(ptr %param, ptr %object) alwaysinline {{
{load("type", "object", TYPE_AT, "ptr")}
  %is.array = icmp eq ptr %type, @ndarray
  br i1 %is.array, label %look, label %no
no:
  ret i1 false
look:
{load("wanted", "param", 48, "ptr")}{load("dtype", "object", DTYPE_AT, "ptr")}
{load("flags", "object", FLAGS_AT, "i32")}
  %same = icmp eq ptr %dtype, %wanted
  %order = and i32 %flags, {C_CONTIGUOUS_ALIGNED}
  %other.order = icmp ne i32 %order, {C_CONTIGUOUS_ALIGNED}
  %is = and i1 %same, %other.order
  ret i1 %is
}}

; Lets go of the copies of arguments.
define internal void @wend.drop(ptr %copies) alwaysinline {{
  %first = load ptr, ptr %copies
  br label %head
head:
  %entry = phi ptr [ %first, %0 ], [ %below, %each ]
  %end = icmp eq ptr %entry, null
  br i1 %end, label %done, label %each
each:
{load("copy", "entry", 8, "ptr")}
  call void @Py_DecRef(ptr %copy)
  %below = load ptr, ptr %entry
  br label %head
done:
  ret void
}}

define internal void @wend.push(ptr %idle, ptr %space) alwaysinline {{
  %top = load ptr, ptr %idle
  store ptr %top, ptr %space
  store ptr %space, ptr %idle
  ret void
}}
"""

_DECLARATIONS = """
@ndarray = external global i8
@float = external global i8
@int = external global i8
@true = external global i8
@false = external global i8
declare i32 @PyContextVar_Get(ptr, ptr, ptr)
declare void @PyErr_Clear()
declare ptr @PyErr_NoMemory()
declare ptr @PyErr_Occurred()
declare ptr @PyList_GetItem(ptr, i64)
declare ptr @PyDict_GetItemWithError(ptr, ptr)
declare i32 @PyDict_Next(ptr, ptr, ptr, ptr)
declare i32 @PyObject_GetOptionalAttr(ptr, ptr, ptr)
declare i32 @_PyObject_GetMethod(ptr, ptr, ptr)
declare ptr @PyObject_CallObject(ptr, ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare double @PyFloat_AsDouble(ptr)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyObject_CallFunction(ptr, ptr, ...)
declare i32 @PyObject_RichCompareBool(ptr, ptr, i32)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyArray_Scalar(ptr, ptr, ptr)
declare ptr @PyArray_NewCopy(ptr, i32)
declare ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare ptr @wend.malloc(ptr, i64)
declare void @wend.give_back(ptr, ptr, i64)
declare void @wend.leave(ptr, ptr)
declare ptr @memcpy(ptr, ptr, i64)
declare i32 @memcmp(ptr, ptr, i64)
"""

LIBRARY = (
    f"{_DECLARATIONS}{GUARDS}{GUARD_CHECKS}{PARAM}{RESULT}{_TRIM}{_CALL}{STATIC}{buffers.BUFFERS}"
)
