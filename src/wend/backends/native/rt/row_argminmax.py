"""Extreme elements of many that lie side by side, and where the first one is: by vectors.

    T   wend.max.f64(ptr, n)      the largest of n > 0 elements, NaN if there is one
    i64 wend.argmax.f64(ptr, n)   where it is first, or the first NaN

and `min` likewise, of each dtype. LLVM makes no vectors of such loops of floats, for NaN; nor of
those that look for a position.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wend.backends.native.target.kinds import REGISTERS, Kind

_BYTES = 64  # of a vector
_TOGETHER = 4  # vectors: that many do not wait for each other
# How many elements are looked at before the position of the best is looked for: what a
# first-level cache holds
_BLOCK = 2048
WAYS = ("max", "min")
# What booleans are in memory has no order of its own; LLVM does integers well but for positions
DTYPES: Sequence[np.dtype] = [dtype for dtype in REGISTERS if dtype.kind != "b"]


def value_name(how: str, dtype: np.dtype) -> str:
    """The function for the extreme element of a dtype."""
    return f"wend.{how}.{_suffix(dtype)}"


def position_name(how: str, dtype: np.dtype) -> str:
    """The function for where it is."""
    return f"wend.arg{how}.{_suffix(dtype)}"


def _suffix(dtype: np.dtype) -> str:
    return f"{dtype.kind}{8 * dtype.itemsize}"


def library(how: str, dtype: np.dtype) -> str:
    """Both functions."""
    return _value(how, dtype) + _position(how, dtype)


def _words(how: str, dtype: np.dtype) -> dict[str, object]:
    """What the texts are made of."""
    lanes = _BYTES // dtype.itemsize
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
        "step": lanes * _TOGETHER,
        "better": f"{compare} {letter}{order}",
        "equal": f"{compare} {'oeq' if kind.is_real else 'eq'}",
        # Integers are equal to themselves: no code is left of this
        "nan": f"{compare} {'uno' if kind.is_real else 'ne'}",
        "reduce": f"@llvm.vector.reduce.{reduce}.{vector.suffix}",
    }


def _value(how: str, dtype: np.dtype) -> str:
    words = _words(how, dtype)
    v, lanes, together = words["v"], words["lanes"], range(_TOGETHER)
    flags = f"<{lanes} x i1>"

    def loads(name: str, at: str) -> str:
        lines = []
        for k in together:
            lines.append(f"  %{name}.at{k} = getelementptr {v}, ptr {at}, i64 {k}")
            lines.append(f"  %{name}{k} = load {v}, ptr %{name}.at{k}, align {dtype.itemsize}")
        return "\n".join(lines)

    is_real = dtype.kind == "f"
    nans = []
    for k in range(0, _TOGETHER, 2):  # one comparison tells of two vectors
        other = f"%x{k + 1}" if is_real else f"%x{k}"
        nans.append(f"  %nan{k} = {words['nan']} {v} %x{k}, {other}")
    phis = [f"  %m{k} = phi {v} [ %first{k}, %start ], [ %n{k}, %next ]" for k in together]
    steps = [
        f"  %b{k} = {words['better']} {v} %x{k}, %m{k}\n"
        f"  %n{k} = select {flags} %b{k}, {v} %x{k}, {v} %m{k}"
        for k in together
    ]
    joins, last = [], "%n0"
    for k in together[1:]:
        joins.append(
            f"  %j{k} = {words['better']} {v} %n{k}, {last}\n"
            f"  %r{k} = select {flags} %j{k}, {v} %n{k}, {v} {last}"
        )
        last = f"%r{k}"
    lines = "\n"
    return f"""
define {words["t"]} @{words["name"]}(ptr %x, i64 %n) "prefer-vector-width"="512" {{
  %few = icmp slt i64 %n, {words["step"]}
  br i1 %few, label %in.order, label %start
start:
{loads("first", "%x")}
  %last = sub i64 %n, {words["step"]}
  br label %head
head:
  ; The last vectors may have been looked at before, which does no harm
  %i = phi i64 [ 0, %start ], [ %i2, %next ]
{lines.join(phis)}
  %nans = phi {flags} [ zeroinitializer, %start ], [ %nans2, %next ]
  %at = getelementptr {words["t"]}, ptr %x, i64 %i
{loads("x", "%at")}
{lines.join(steps)}
{lines.join(nans)}
  %nans1 = or {flags} %nans, %nan0
  %nans2 = or {flags} %nans1, %nan2
  %is.last = icmp eq i64 %i, %last
  br i1 %is.last, label %done, label %next
next:
  %i1 = add i64 %i, {words["step"]}
  %i2 = call i64 @llvm.smin.i64(i64 %i1, i64 %last)
  br label %head
done:
{lines.join(joins)}
  %any = call i1 @llvm.vector.reduce.or.v{lanes}i1({flags} %nans2)
  br i1 %any, label %in.order, label %reduce
reduce:
  %found = call {words["t"]} {words["reduce"]}({v} {last})
  ret {words["t"]} %found
in.order:
  %z0 = load {words["t"]}, ptr %x
  br label %each
each:
  %k = phi i64 [ 1, %in.order ], [ %k1, %one ]
  %best = phi {words["t"]} [ %z0, %in.order ], [ %kept, %one ]
  %rest = icmp slt i64 %k, %n
  br i1 %rest, label %one, label %over
one:
  %z.at = getelementptr {words["t"]}, ptr %x, i64 %k
  %z = load {words["t"]}, ptr %z.at
  %above = {words["better"]} {words["t"]} %best, %z
  %none = {words["nan"]} {words["t"]} %best, %best
  %stays = or i1 %above, %none
  %kept = select i1 %stays, {words["t"]} %best, {words["t"]} %z
  %k1 = add i64 %k, 1
  br label %each
over:
  ret {words["t"]} %best
}}
"""


def _position(how: str, dtype: np.dtype) -> str:
    words = _words(how, dtype)
    t, v, lanes = words["t"], words["v"], words["lanes"]
    return f"""
define i64 @{words["arg"]}(ptr %x, i64 %n) "prefer-vector-width"="512" {{
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
  %size = call i64 @llvm.smin.i64(i64 %rest, i64 {_BLOCK})
  %from = getelementptr {t}, ptr %x, i64 %base
  %found = call {t} @{words["name"]}(ptr %from, i64 %size)
  %none = {words["nan"]} {t} %found, %found
  %better = {words["better"]} {t} %found, %best
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
  %are = {words["equal"]} {v} %y, %all
  %are.none = {words["nan"]} {v} %y, %y
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
  %is = {words["equal"]} {t} %s, %found
  %is.none = {words["nan"]} {t} %s, %s
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
  %next = add i64 %base, {_BLOCK}
  br label %head
}}
"""
