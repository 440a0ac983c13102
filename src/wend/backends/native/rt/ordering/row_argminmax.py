"""Vectorized minimum, maximum, argmin and argmax of contiguous elements.

    T   wend.max.f64(ptr, n)      the maximum of n > 0 elements; NaN if there is one
    i64 wend.argmax.f64(ptr, n)   the position of the first maximum, or of the first NaN

and `min` likewise, for each dtype. LLVM does not vectorize such loops of floats, because of NaN,
nor loops that search for a position.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wend.backends.native.target.kinds import REGISTERS, Kind

_VECTOR_BYTES = 64
_UNROLL = 4  # vectors per step: independent chains hide the latency
# The elements after which the position of a new extreme is searched: they fit into the L1 cache
_BLOCK_ELEMENTS = 2048
REDUCTIONS = ("max", "min")
# Booleans are excluded: their bytes have no order of their own.
DTYPES: Sequence[np.dtype] = [dtype for dtype in REGISTERS if dtype.kind != "b"]


def value_name(how: str, dtype: np.dtype) -> str:
    """Return the name of the function for the extreme element of a dtype."""
    return f"wend.{how}.{_suffix(dtype)}"


def position_name(how: str, dtype: np.dtype) -> str:
    """Return the name of the function for the position of the extreme element."""
    return f"wend.arg{how}.{_suffix(dtype)}"


def _suffix(dtype: np.dtype) -> str:
    return f"{dtype.kind}{8 * dtype.itemsize}"


def library(how: str, dtype: np.dtype) -> str:
    """Return the module with both functions."""
    return _value(how, dtype) + _position(how, dtype)


def _template_fields(how: str, dtype: np.dtype) -> dict[str, object]:
    """Return the fields of the templates."""
    lanes = _VECTOR_BYTES // dtype.itemsize
    kind = Kind(dtype)
    letter = "o" if kind.is_real else "u" if kind.is_unsigned else "s"
    order = {"max": "gt", "min": "lt"}[how]
    compare = "fcmp" if kind.is_real else "icmp"
    reduce = ("f" if kind.is_real else letter) + how
    vector = Kind(dtype, lanes)
    return {
        "name": value_name(how, dtype),
        "arg": position_name(how, dtype),
        "t": kind.text,
        "v": vector.text,
        "lanes": lanes,
        "step": lanes * _UNROLL,
        "better": f"{compare} {letter}{order}",
        "equal": f"{compare} {'oeq' if kind.is_real else 'eq'}",
        # Always false for integers: LLVM removes it
        "nan": f"{compare} {'uno' if kind.is_real else 'ne'}",
        "reduce": f"@llvm.vector.reduce.{reduce}.{vector.suffix}",
    }


def _value(how: str, dtype: np.dtype) -> str:
    fields = _template_fields(how, dtype)
    v, lanes, unrolled = fields["v"], fields["lanes"], range(_UNROLL)
    flags = f"<{lanes} x i1>"

    def loads(name: str, pointer: str) -> str:
        lines = []
        for k in unrolled:
            lines.append(f"  %{name}.at{k} = getelementptr {v}, ptr {pointer}, i64 {k}")
            lines.append(f"  %{name}{k} = load {v}, ptr %{name}.at{k}, align {dtype.itemsize}")
        return "\n".join(lines)

    is_real = dtype.kind == "f"
    nans = []
    for k in range(0, _UNROLL, 2):  # one comparison tests two vectors for NaN
        other = f"%x{k + 1}" if is_real else f"%x{k}"
        nans.append(f"  %nan{k} = {fields['nan']} {v} %x{k}, {other}")
    phis = [f"  %m{k} = phi {v} [ %first{k}, %start ], [ %n{k}, %next ]" for k in unrolled]
    steps = [
        f"  %b{k} = {fields['better']} {v} %x{k}, %m{k}\n"
        f"  %n{k} = select {flags} %b{k}, {v} %x{k}, {v} %m{k}"
        for k in unrolled
    ]
    combines, result = [], "%n0"
    for k in unrolled[1:]:
        combines.append(
            f"  %j{k} = {fields['better']} {v} %n{k}, {result}\n"
            f"  %r{k} = select {flags} %j{k}, {v} %n{k}, {v} {result}"
        )
        result = f"%r{k}"
    lines = "\n"
    return f"""
define {fields["t"]} @{fields["name"]}(ptr %x, i64 %n) "prefer-vector-width"="512" {{
  %few = icmp slt i64 %n, {fields["step"]}
  br i1 %few, label %in.order, label %start
start:
{loads("first", "%x")}
  %last = sub i64 %n, {fields["step"]}
  br label %head
head:
  ; The last vectors may have been looked at before, which does no harm
  %i = phi i64 [ 0, %start ], [ %i2, %next ]
{lines.join(phis)}
  %nans = phi {flags} [ zeroinitializer, %start ], [ %nans2, %next ]
  %at = getelementptr {fields["t"]}, ptr %x, i64 %i
{loads("x", "%at")}
{lines.join(steps)}
{lines.join(nans)}
  %nans1 = or {flags} %nans, %nan0
  %nans2 = or {flags} %nans1, %nan2
  %is.last = icmp eq i64 %i, %last
  br i1 %is.last, label %done, label %next
next:
  %i1 = add i64 %i, {fields["step"]}
  %i2 = call i64 @llvm.smin.i64(i64 %i1, i64 %last)
  br label %head
done:
{lines.join(combines)}
  %any = call i1 @llvm.vector.reduce.or.v{lanes}i1({flags} %nans2)
  br i1 %any, label %in.order, label %reduce
reduce:
  %found = call {fields["t"]} {fields["reduce"]}({v} {result})
  ret {fields["t"]} %found
in.order:
  %z0 = load {fields["t"]}, ptr %x
  br label %each
each:
  %k = phi i64 [ 1, %in.order ], [ %k1, %one ]
  %best = phi {fields["t"]} [ %z0, %in.order ], [ %kept, %one ]
  %rest = icmp slt i64 %k, %n
  br i1 %rest, label %one, label %over
one:
  %z.at = getelementptr {fields["t"]}, ptr %x, i64 %k
  %z = load {fields["t"]}, ptr %z.at
  %above = {fields["better"]} {fields["t"]} %best, %z
  %none = {fields["nan"]} {fields["t"]} %best, %best
  %stays = or i1 %above, %none
  %kept = select i1 %stays, {fields["t"]} %best, {fields["t"]} %z
  %k1 = add i64 %k, 1
  br label %each
over:
  ret {fields["t"]} %best
}}
"""


def _position(how: str, dtype: np.dtype) -> str:
    fields = _template_fields(how, dtype)
    t, v, lanes = fields["t"], fields["v"], fields["lanes"]
    return f"""
define i64 @{fields["arg"]}(ptr %x, i64 %n) "prefer-vector-width"="512" {{
  %x0 = load {t}, ptr %x
  br label %head
head:
  %base = phi i64 [ 0, %0 ], [ %next, %goes.on ]
  %best = phi {t} [ %x0, %0 ], [ %best2, %goes.on ]
  %where = phi i64 [ 0, %0 ], [ %where2, %goes.on ]
  %rest = sub i64 %n, %base
  %some = icmp sgt i64 %rest, 0
  br i1 %some, label %block, label %over
over:
  ret i64 %where
block:
  %size = call i64 @llvm.smin.i64(i64 %rest, i64 {_BLOCK_ELEMENTS})
  %from = getelementptr {t}, ptr %x, i64 %base
  %found = call {t} @{fields["name"]}(ptr %from, i64 %size)
  %none = {fields["nan"]} {t} %found, %found
  %better = {fields["better"]} {t} %found, %best
  %first = icmp eq i64 %base, 0
  %look0 = or i1 %none, %better
  %look = or i1 %look0, %first
  br i1 %look, label %search, label %goes.on
search:
  %one = insertelement {v} poison, {t} %found, i64 0
  %all = shufflevector {v} %one, {v} poison, <{lanes} x i32> zeroinitializer
  br label %vectors
vectors:
  %j = phi i64 [ 0, %search ], [ %j1, %not.here ]
  %j1 = add i64 %j, {lanes}
  %whole = icmp sle i64 %j1, %size
  br i1 %whole, label %vector, label %singles
vector:
  %v.at = getelementptr {t}, ptr %from, i64 %j
  %y = load {v}, ptr %v.at, align {dtype.itemsize}
  %are = {fields["equal"]} {v} %y, %all
  %are.none = {fields["nan"]} {v} %y, %y
  %hits = select i1 %none, <{lanes} x i1> %are.none, <{lanes} x i1> %are
  %bits = bitcast <{lanes} x i1> %hits to i{lanes}
  %here = icmp ne i{lanes} %bits, 0
  br i1 %here, label %in.vector, label %not.here
not.here:
  br label %vectors
in.vector:
  %lane0 = call i{lanes} @llvm.cttz.i{lanes}(i{lanes} %bits, i1 true)
  %lane = {"or" if lanes == 64 else "zext"} i{lanes} %lane0{", 0" if lanes == 64 else " to i64"}
  %at0 = add i64 %j, %lane
  br label %got
singles:
  %k = phi i64 [ %j, %vectors ], [ %k1, %single ]
  %k1 = add i64 %k, 1
  br label %single
single:
  %s.at = getelementptr {t}, ptr %from, i64 %k
  %s = load {t}, ptr %s.at
  %is = {fields["equal"]} {t} %s, %found
  %is.none = {fields["nan"]} {t} %s, %s
  %hit = or i1 %is, %is.none
  br i1 %hit, label %got, label %singles
got:
  %at = phi i64 [ %at0, %in.vector ], [ %k, %single ]
  %at.all = add i64 %base, %at
  br i1 %none, label %ends, label %goes.on
ends:
  ret i64 %at.all
goes.on:
  %best2 = phi {t} [ %best, %block ], [ %found, %got ]
  %where2 = phi i64 [ %where, %block ], [ %at.all, %got ]
  %next = add i64 %base, {_BLOCK_ELEMENTS}
  br label %head
}}
"""
