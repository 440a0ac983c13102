"""LLVM IR that checks guards and unpacks arguments into the block."""

from __future__ import annotations

from wend.backends.native.fastcall.descriptor import (
    ARRAY,
    AXES_AT,
    BOOLEAN,
    BOXED,
    C_CONTIGUOUS_ALIGNED,
    DATA_AT,
    DTYPE_AT,
    EQUAL,
    FLAGS_AT,
    FLOAT,
    IDENTICAL,
    INTEGER,
    PLURAL,
    SAME,
    SAME_BITS,
    SAME_METHOD,
    SCALAR,
    SIZES_AT,
    TYPE_AT,
    VALUE_AT,
    ZERO_DIM,
)
from wend.backends.native.rt.blocks import load

_EQ = 2  # Py_EQ

GUARDS = (
    """
; Whether a context variable holds what is expected.
define internal i1 @wend.holds(ptr %guard) {
  %found.at = alloca ptr
  %variable = load ptr, ptr %guard
"""
    + load("list", "guard", 8, "ptr")
    + load("expected", "guard", 16, "ptr")
    + """
  %status = call i32 @PyContextVar_Get(ptr %variable, ptr null, ptr %found.at)
  %failed = icmp slt i32 %status, 0
  br i1 %failed, label %clear, label %look
clear:
  call void @PyErr_Clear()
  ret i1 false
look:
  %found = load ptr, ptr %found.at
  %unset = icmp eq ptr %found, null
  br i1 %unset, label %other, label %compare
compare:
  call void @Py_DecRef(ptr %found)
  %same = icmp eq ptr %found, %expected
  ret i1 %same
other:
  %no.list = icmp eq ptr %list, null
  br i1 %no.list, label %no, label %first
no:
  ret i1 false
first:
  %item = call ptr @PyList_GetItem(ptr %list, i64 0)
  %is = icmp eq ptr %item, %expected
  ret i1 %is
}
"""
)

STATIC = (
    """
; Whether an argument that is no param is the one expected. Apart from `wend.put`, which keeps no
; registers for it.
define internal i1 @wend.is.expected(ptr %param, ptr %object) noinline {
  %kind = load i64, ptr %param
"""
    + (
        load("expected", "param", 40, "ptr")
        + load("dtype", "param", 48, "ptr")
        + load("size", "param", 56)
        + load("type", "object", TYPE_AT, "ptr")
    )
    + f"""
  switch i64 %kind, label %no [
    i64 {IDENTICAL}, label %identical
    i64 {EQUAL}, label %equal.to
    i64 {SAME_BITS}, label %same.bits
    i64 {SAME_METHOD}, label %same.method
  ]
no:
  ret i1 false
yes:
  ret i1 true

identical:
  %is.identical = icmp eq ptr %object, %expected
  br i1 %is.identical, label %yes, label %no

; Of classes of Python's, so that the comparison runs no Python code.
equal.to:
  %is.it = icmp eq ptr %object, %expected
  br i1 %is.it, label %yes, label %compare.type
compare.type:
  %is.of.type = icmp eq ptr %type, %dtype
  br i1 %is.of.type, label %compare, label %no
compare:
  %answer = call i32 @PyObject_RichCompareBool(ptr %object, ptr %expected, i32 {_EQ})
  %is.equal = icmp eq i32 %answer, 1
  br i1 %is.equal, label %yes, label %no

same.bits:
  %may.have.bits = icmp eq ptr %type, %dtype
  br i1 %may.have.bits, label %compare.bits, label %no
compare.bits:
{load("bits", "object", VALUE_AT, "ptr")}
  %are.bits = icmp eq ptr %bits, %expected
  br i1 %are.bits, label %yes, label %no

same.method:
  %is.method = icmp eq ptr %type, %dtype
  br i1 %is.method, label %compare.method, label %no
compare.method:
{load("function", "object", VALUE_AT, "ptr")}{load("its.self", "object", VALUE_AT + 8, "ptr")}
  %self.number = ptrtoint ptr %its.self to i64
  %same.function = icmp eq ptr %function, %expected
  %same.self = icmp eq i64 %self.number, %size
  %same.both = and i1 %same.function, %same.self
  br i1 %same.both, label %yes, label %no
}}
"""
)

PARAM = (
    """
; Puts an argument into the block: 1, or 0 where it is not what the param says. `header` is room for
; the head of an array until the graph has run, for an argument of the kind BOXED.
define internal i1 @wend.put(ptr %param, ptr %object, ptr %block, ptr %sizes, ptr %bytes,
    ptr %header) {
  %over.at = alloca i32
  %kind = load i64, ptr %param
"""
    + (
        load("offset", "param", 32)
        + load("expected", "param", 40, "ptr")
        + load("dtype", "param", 48, "ptr")
        + load("size", "param", 56)
        + load("axes", "param", 64)
        + load("type", "object", TYPE_AT, "ptr")
    )
    + f"""
  %slot = getelementptr i8, ptr %block, i64 %offset
  switch i64 %kind, label %other [
    i64 {ARRAY}, label %array
    i64 {SCALAR}, label %scalar
    i64 {FLOAT}, label %float
    i64 {INTEGER}, label %integer
    i64 {BOOLEAN}, label %boolean
    i64 {ZERO_DIM}, label %zero.dim
    i64 {BOXED}, label %boxed
  ]
other:
  %is.expected = tail call i1 @wend.is.expected(ptr %param, ptr %object)
  ret i1 %is.expected
no:
  ret i1 false
yes:
  ret i1 true

scalar:
  %is.scalar = icmp eq ptr %type, %expected
  br i1 %is.scalar, label %plain, label %no
plain:
{load("value", "object", VALUE_AT)}
  store i64 %value, ptr %slot
  br label %yes

; A number that takes no register, such as a complex one: the graph reads it as an array.
boxed:
  %is.boxed = icmp eq ptr %type, %expected
  br i1 %is.boxed, label %box, label %no
box:
  %elements = getelementptr i8, ptr %object, i64 {VALUE_AT}
  %data.at = getelementptr i8, ptr %header, i64 {DATA_AT}
  store ptr %elements, ptr %data.at
  store ptr %header, ptr %slot
  br label %yes

zero.dim:
  %may.be = icmp eq ptr %type, @ndarray
  br i1 %may.be, label %pointed, label %no
pointed:
{load("p.dtype", "object", DTYPE_AT, "ptr")}{load("p.axes", "object", AXES_AT, "i32")}
  %p.same = icmp eq ptr %p.dtype, %dtype
  %p.none = icmp eq i32 %p.axes, 0
  %p.is = and i1 %p.same, %p.none
  br i1 %p.is, label %read, label %no
read:
{load("p.data", "object", DATA_AT, "ptr")}
  %p.done = call ptr @memcpy(ptr %slot, ptr %p.data, i64 %size)
  br label %yes

float:
  %is.float = icmp eq ptr %type, @float
  br i1 %is.float, label %take.float, label %no
take.float:
  %real = call double @PyFloat_AsDouble(ptr %object)
  store double %real, ptr %slot
  br label %yes

integer:
  %is.integer = icmp eq ptr %type, @int
  br i1 %is.integer, label %take.integer, label %no
take.integer:
  %whole = call i64 @PyLong_AsLongLongAndOverflow(ptr %object, ptr %over.at)
  %over = load i32, ptr %over.at
  %fits = icmp eq i32 %over, 0
  store i64 %whole, ptr %slot
  br i1 %fits, label %yes, label %no

boolean:
  %is.true = icmp eq ptr %object, %expected
  %is.false = icmp eq ptr %object, %dtype
  %bit = zext i1 %is.true to i64
  store i64 %bit, ptr %slot
  %either = or i1 %is.true, %is.false
  br i1 %either, label %yes, label %no

array:
  %is.array = icmp eq ptr %type, @ndarray
  br i1 %is.array, label %look, label %no
look:
{load("a.dtype", "object", DTYPE_AT, "ptr")}{load("a.axes", "object", AXES_AT, "i32")}
{load("flags", "object", FLAGS_AT, "i32")}
  %same = icmp eq ptr %a.dtype, %dtype
  %axes32 = trunc i64 %axes to i32
  %as.many = icmp eq i32 %a.axes, %axes32
  %order = and i32 %flags, {C_CONTIGUOUS_ALIGNED}
  %in.order = icmp eq i32 %order, {C_CONTIGUOUS_ALIGNED}
  %both = and i1 %same, %as.many
  %all = and i1 %both, %in.order
  br i1 %all, label %measure, label %no
measure:
{load("dims", "object", SIZES_AT, "ptr")}
  %codes = getelementptr i8, ptr %param, i64 72
  br label %head
head:
  %k = phi i64 [ 0, %measure ], [ %next, %goes.on ]
  %total = phi i64 [ %size, %measure ], [ %more, %goes.on ]
  %rest = icmp ult i64 %k, %axes
  br i1 %rest, label %each, label %done
each:
  %dim.at = getelementptr i64, ptr %dims, i64 %k
  %dim = load i64, ptr %dim.at
  %pair = getelementptr [2 x i64], ptr %codes, i64 %k
  %code = load i64, ptr %pair
  %known = icmp sge i64 %code, 0
  br i1 %known, label %exact, label %symbol
exact:
  %equal = icmp eq i64 %dim, %code
  br i1 %equal, label %goes.on, label %no
symbol:
  %number.at = getelementptr i64, ptr %pair, i64 1
  %number = load i64, ptr %number.at
  %known.at = getelementptr i64, ptr %sizes, i64 %number
  switch i64 %code, label %bind [
    i64 {PLURAL}, label %plural
    i64 {SAME}, label %again
  ]
plural:
  %is.plural = icmp sge i64 %dim, 2
  br i1 %is.plural, label %bind, label %no
bind:
  store i64 %dim, ptr %known.at
  br label %goes.on
again:
  %before = load i64, ptr %known.at
  %agrees = icmp eq i64 %dim, %before
  br i1 %agrees, label %goes.on, label %no
goes.on:
  %more = mul i64 %total, %dim
  %next = add i64 %k, 1
  br label %head
done:
  store ptr %object, ptr %slot
  %sum = load i64, ptr %bytes
  %sum1 = add i64 %sum, %total
  store i64 %sum1, ptr %bytes
  br label %yes
}}
"""
)
