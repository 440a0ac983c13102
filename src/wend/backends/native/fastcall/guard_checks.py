"""LLVM IR that checks guards on Python objects, as a table of records says (`GuardCheck`)."""

from __future__ import annotations

from wend.backends.native.fastcall.descriptor import (
    AXES_AT,
    CHECK_WORDS,
    DATA_AT,
    DTYPE_AT,
    ITEM_AT,
    ITEMS_AT,
    SIZES_AT,
    STRIDES_AT,
    TYPE_AT,
    VALUE_AT,
    RecordKind,
)
from wend.backends.native.rt.blocks import load

# `wend.guards.check` is what Python calls, a method whose `self` is the table.
# A record that fails jumps to `no`, one that holds to `next`. The reference to the table keeps it,
# should a check run Python code that sets another one.
GUARD_CHECKS = f"""
define ptr @wend.guards.check(ptr %table, ptr %nothing) {{
  %holds = call i1 @wend.guards.hold(ptr %table)
  %answer = select i1 %holds, ptr @true, ptr @false
  call void @Py_IncRef(ptr %answer)
  ret ptr %answer
}}

; Whether the checks of a table hold: a tuple whose first item is the array of the records. No
; exception is left.
define internal i1 @wend.guards.hold(ptr %table) {{
  %position = alloca i64
  %next.key = alloca ptr
  %next.value = alloca ptr
  call void @Py_IncRef(ptr %table)
{load("array", "table", ITEM_AT, "ptr")}{load("records", "array", DATA_AT, "ptr")}
{load("sizes", "array", SIZES_AT, "ptr")}
  %count = load i64, ptr %sizes
  br label %head
head:
  %k = phi i64 [ 0, %0 ], [ %k1, %next ]
  %goes.on = icmp ult i64 %k, %count
  br i1 %goes.on, label %each, label %yes
yes:
  call void @Py_DecRef(ptr %table)
  ret i1 true
no:
  call void @PyErr_Clear()
  call void @Py_DecRef(ptr %table)
  ret i1 false
next:
  %k1 = add i64 %k, 1
  br label %head
each:
  %record = getelementptr [{CHECK_WORDS} x i64], ptr %records, i64 %k
  %kind = load i64, ptr %record
{load("owner", "record", 8, "ptr")}{load("key", "record", 16)}
{load("expected", "record", 24, "ptr")}{load("extent", "record", 32)}
  %key.pointer = inttoptr i64 %key to ptr
  switch i64 %kind, label %no [
    i64 {RecordKind.DICT}, label %dict
    i64 {RecordKind.ATTRIBUTE}, label %attribute
    i64 {RecordKind.METHOD}, label %method
    i64 {RecordKind.FIELD}, label %field
    i64 {RecordKind.ITEM}, label %item
    i64 {RecordKind.LENGTH}, label %length
    i64 {RecordKind.ITEMS}, label %items
    i64 {RecordKind.ENTRIES}, label %entries
    i64 {RecordKind.LAYOUT}, label %layout
    i64 {RecordKind.BYTES}, label %bytes
    i64 {RecordKind.CHECKSUM}, label %checksum
    i64 {RecordKind.CALL}, label %call
  ]

dict:
  %entry = call ptr @PyDict_GetItemWithError(ptr %owner, ptr %key.pointer)
  %entry.same = icmp eq ptr %entry, %expected
  br i1 %entry.same, label %dict.same, label %no
dict.same:
  %no.entry = icmp eq ptr %entry, null
  br i1 %no.entry, label %absent, label %next
absent:
  %error = call ptr @PyErr_Occurred()
  %no.error = icmp eq ptr %error, null
  br i1 %no.error, label %next, label %no

attribute:
  store ptr null, ptr %next.value
  %status = call i32 @PyObject_GetOptionalAttr(ptr %owner, ptr %key.pointer, ptr %next.value)
  %failed = icmp slt i32 %status, 0
  br i1 %failed, label %no, label %attribute.compare
attribute.compare:
  %attribute.of = load ptr, ptr %next.value
  call void @Py_DecRef(ptr %attribute.of)
  %attribute.same = icmp eq ptr %attribute.of, %expected
  br i1 %attribute.same, label %next, label %no

method:
  store ptr null, ptr %next.value
  %is.unbound = call i32 @_PyObject_GetMethod(ptr %owner, ptr %key.pointer, ptr %next.value)
  %method.of = load ptr, ptr %next.value
  %is.none = icmp eq ptr %method.of, null
  br i1 %is.none, label %no, label %method.kind
method.kind:
  %is.function = icmp eq i32 %is.unbound, 1
  br i1 %is.function, label %method.compare, label %method.class
method.class:
  %method.type = inttoptr i64 %extent to ptr
{load("method.class.of", "method.of", TYPE_AT, "ptr")}
  %is.method = icmp eq ptr %method.class.of, %method.type
  br i1 %is.method, label %method.function, label %method.compare
method.function:
{load("function", "method.of", VALUE_AT, "ptr")}
  br label %method.compare
method.compare:
  %function.of = phi ptr
    [ %method.of, %method.kind ], [ null, %method.class ], [ %function, %method.function ]
  call void @Py_DecRef(ptr %method.of)
  %function.same = icmp eq ptr %function.of, %expected
  br i1 %function.same, label %next, label %no

field:
  %field.at = getelementptr i8, ptr %owner, i64 %key
  %field.now = load ptr, ptr %field.at
  %field.same = icmp eq ptr %field.now, %expected
  br i1 %field.same, label %next, label %no

item:
{load("size", "owner", VALUE_AT)}
  %from.end = icmp slt i64 %key, 0
  %wrapped = add i64 %key, %size
  %index = select i1 %from.end, i64 %wrapped, i64 %key
  %within = icmp ult i64 %index, %size
  br i1 %within, label %item.read, label %no
item.read:
{load("list", "owner", ITEMS_AT, "ptr")}
  %item.at = getelementptr ptr, ptr %list, i64 %index
  %item.of = load ptr, ptr %item.at
  %item.same = icmp eq ptr %item.of, %expected
  br i1 %item.same, label %next, label %no

length:
  %length.at = getelementptr i8, ptr %owner, i64 %key
  %items.count = load i64, ptr %length.at
  %length.same = icmp eq i64 %items.count, %extent
  br i1 %length.same, label %next, label %no

items:
{load("old.size", "expected", VALUE_AT)}{load("new.size", "owner", VALUE_AT)}
  %size.same = icmp eq i64 %old.size, %new.size
  br i1 %size.same, label %items.read, label %no
items.read:
{load("new.items", "owner", ITEMS_AT, "ptr")}
  %old.items = getelementptr i8, ptr %expected, i64 {ITEM_AT}
  %items.bytes = shl i64 %old.size, 3
  %items.order = call i32 @memcmp(ptr %new.items, ptr %old.items, i64 %items.bytes)
  %items.same = icmp eq i32 %items.order, 0
  br i1 %items.same, label %next, label %no

entries:
{load("flat.size", "expected", VALUE_AT)}{load("used", "owner", VALUE_AT)}
  %flat.used = shl i64 %used, 1
  %used.same = icmp eq i64 %flat.used, %flat.size
  store i64 0, ptr %position
  br i1 %used.same, label %entries.head, label %no
entries.head:
  %e = phi i64 [ 0, %entries ], [ %e2, %value.check ]
  %has.entry = call i32 @PyDict_Next(ptr %owner, ptr %position, ptr %next.key, ptr %next.value)
  %at.end = icmp eq i32 %has.entry, 0
  br i1 %at.end, label %next, label %key.check
key.check:
  %flat = getelementptr i8, ptr %expected, i64 {ITEM_AT}
  %old.key.at = getelementptr ptr, ptr %flat, i64 %e
  %old.key = load ptr, ptr %old.key.at
  %new.key = load ptr, ptr %next.key
  %key.same = icmp eq ptr %old.key, %new.key
  br i1 %key.same, label %value.check, label %no
value.check:
  %e1 = add i64 %e, 1
  %e2 = add i64 %e, 2
  %old.value.at = getelementptr ptr, ptr %flat, i64 %e1
  %old.value = load ptr, ptr %old.value.at
  %new.value = load ptr, ptr %next.value
  %value.same = icmp eq ptr %old.value, %new.value
  br i1 %value.same, label %entries.head, label %no

layout:
{load("dtype", "owner", DTYPE_AT, "ptr")}{load("axes32", "owner", AXES_AT, "i32")}
  %axes = sext i32 %axes32 to i64
  %dtype.same = icmp eq ptr %dtype, %key.pointer
  %axes.same = icmp eq i64 %axes, %extent
  %layout.may = and i1 %dtype.same, %axes.same
  br i1 %layout.may, label %layout.sizes, label %no
layout.sizes:
{load("dims", "owner", SIZES_AT, "ptr")}{load("strides", "owner", STRIDES_AT, "ptr")}
  %axes.bytes = shl i64 %axes, 3
  %dims.order = call i32 @memcmp(ptr %dims, ptr %expected, i64 %axes.bytes)
  %old.strides = getelementptr i64, ptr %expected, i64 %axes
  %strides.order = call i32 @memcmp(ptr %strides, ptr %old.strides, i64 %axes.bytes)
  %either.order = or i32 %dims.order, %strides.order
  %layout.same = icmp eq i32 %either.order, 0
  br i1 %layout.same, label %next, label %no

bytes:
{load("data", "owner", DATA_AT, "ptr")}
  %data.same = icmp eq ptr %data, %key.pointer
  br i1 %data.same, label %bytes.read, label %no
bytes.read:
  %bytes.order = call i32 @memcmp(ptr %data, ptr %expected, i64 %extent)
  %bytes.same = icmp eq i32 %bytes.order, 0
  br i1 %bytes.same, label %next, label %no

checksum:
{load("summed", "owner", DATA_AT, "ptr")}{load("sum.function", "record", 40, "ptr")}
  %summed.same = icmp eq ptr %summed, %key.pointer
  br i1 %summed.same, label %checksum.read, label %no
checksum.read:
  %sum = call i64 %sum.function(ptr %summed, i64 %extent)
  %old.sum = ptrtoint ptr %expected to i64
  %sum.same = icmp eq i64 %sum, %old.sum
  br i1 %sum.same, label %next, label %no

call:
  %answer = call ptr @PyObject_CallObject(ptr %owner, ptr null)
  %no.answer = icmp eq ptr %answer, null
  br i1 %no.answer, label %no, label %answered
answered:
  call void @Py_DecRef(ptr %answer)
  %answer.same = icmp eq ptr %answer, %expected
  br i1 %answer.same, label %next, label %no
}}
"""
