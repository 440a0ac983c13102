"""Writes how lists come into the program and leave it: lists lie in memory of other runs too.

A list argument is where it starts and its length, and for it and for the lists in it where the
records lie and how far it is from one to the next. They may be records of another run, of any
program: so they are only read, and the arrays that they refer to keep the reference that those
records hold. A list that the program changes, or joins with others, is copied at the start.

References are not counted safely by two threads at once. So arrays in lists that are handed out
get a bit in their counts that no counting reaches: they are never freed or changed in place, until
the run that made them gives its memory back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from wend.backends.native.analysis.list_classes import ListClass, root
from wend.backends.native.codegen.arenas import record_at
from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.rt.pool import SHARED
from wend.backends.native.target.value_layout import (
    SLOT_BYTES,
    Registers,
    is_list,
    references,
    where_size,
)
from wend.ir.graph import Value
from wend.ir.types import ListType, Type, without_maybe

Where: TypeAlias = tuple[str, str]  # where records lie, and how far it is from one to the next


def load_list(low: Lowering, param: Value, slots: Registers, offset: int) -> Registers:
    """The slots of a list argument; what is at the offset says where its records lie."""
    starts = range(offset, offset + where_size(param.type), 2 * SLOT_BYTES)
    where = [_load_where(low, start) for start in starts]
    places = list(low.places.reach(param))
    if places[0].arena.is_given:
        for place, (data, step) in zip(places, where, strict=True):
            low.arenas.give(place.arena, data, step)
        return slots
    return _copied(low, param.type, slots, places[0], where)


def _load_where(low: Lowering, offset: int) -> Where:
    data = low.w.define(f"getelementptr i8, ptr %block, i64 {offset}")
    step = low.w.define(f"getelementptr i8, ptr %block, i64 {offset + SLOT_BYTES}")
    return low.w.define(f"load ptr, ptr {data}"), low.w.define(f"load i64, ptr {step}")


def _copied(
    low: Lowering, type: Type, slots: Registers, place: ListClass, where: Sequence[Where]
) -> Registers:
    """A list with records of its own; an absent one has no length."""
    list = without_maybe(type)
    assert isinstance(list, ListType)
    made = low.arenas.allocate(place, slots[-1])

    def each(index: str) -> None:
        record = low.w.define(f"add i64 {slots[-2]}, {index}")
        element = low.arenas.load_at(record_at(low.w, *where[0], record), list.element)
        if is_list(list.element):
            assert place.inner is not None
            element = _copied(low, list.element, element, root(place.inner), where[1:])
        for k in references(list.element):
            low.arrays.retain(element[k])
        element = low.conversions.coerce(element, list.element, place.element)
        low.arenas.store(place, low.w.define(f"add i64 {made[0]}, {index}"), element)

    low.w.loop(slots[-1], each)
    return (*slots[:-2], *made)


def share(low: Lowering, place: ListClass, slots: Registers) -> None:
    """Mark the arrays in a list that is handed out, and in the lists in it."""
    if place.arena.is_given or not _has_references(place):
        return

    def each(index: str) -> None:
        element = low.arenas.load(place, low.w.define(f"add i64 {slots[-2]}, {index}"))
        for k in references(place.element):
            low.arrays.mark(element[k], SHARED)
        if is_list(place.element):
            assert place.inner is not None
            share(low, root(place.inner), element)

    low.w.loop(slots[-1], each)


def _has_references(place: ListClass) -> bool:
    while not references(place.element):
        if place.inner is None:
            return False
        place = root(place.inner)
    return True
