"""Lists as arguments and results, which may lie in the memory of other runs.

A list argument is a start and a length. For it, and for each level of lists in it, the caller also
passes the address of the records and the stride between them. The records may belong to another
run of any program, so they are read-only, and the arrays they refer to stay referenced by them. A
list that the program changes, or unifies with others, is copied on entry.

Reference counts are not atomic. Arrays in lists that are returned therefore get a bit in their
counts that counting never reaches: they are neither freed nor updated in place until the run that
made them releases its memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from wend.backends.native.analysis.list_classes import ListClass, root
from wend.backends.native.codegen.arenas import record_at
from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.rt.pool import SHARED_BIT
from wend.backends.native.target.value_layout import (
    SLOT_BYTES,
    Registers,
    is_list,
    list_location_bytes,
    references,
)
from wend.ir.graph import Value
from wend.ir.types import ListType, Type, without_maybe

RecordLocation: TypeAlias = tuple[str, str]  # the address of the records and their stride in bytes


def load_list(low: Lowering, param: Value, slots: Registers, offset: int) -> Registers:
    """Return the registers of a list argument whose record locations are at `offset`."""
    starts = range(offset, offset + list_location_bytes(param.type), 2 * SLOT_BYTES)
    locations = [_load_location(low, start) for start in starts]
    list_classes = list(low.list_classes.nested(param))
    if list_classes[0].arena.is_argument:
        for list_class, (data, step) in zip(list_classes, locations, strict=True):
            low.arenas.bind_argument(list_class.arena, data, step)
        return slots
    return _copy(low, param.type, slots, list_classes[0], locations)


def _load_location(low: Lowering, offset: int) -> RecordLocation:
    data = low.w.define(f"getelementptr i8, ptr %block, i64 {offset}")
    step = low.w.define(f"getelementptr i8, ptr %block, i64 {offset + SLOT_BYTES}")
    return low.w.define(f"load ptr, ptr {data}"), low.w.define(f"load i64, ptr {step}")


def _copy(
    low: Lowering,
    type: Type,
    slots: Registers,
    list_class: ListClass,
    locations: Sequence[RecordLocation],
) -> Registers:
    """Return a list copied to records of its own; an absent one has length 0."""
    list = without_maybe(type)
    assert isinstance(list, ListType)
    new_list = low.arenas.allocate(list_class, slots[-1])

    def copy_record(index: str) -> None:
        record = low.w.define(f"add i64 {slots[-2]}, {index}")
        element = low.arenas.load_at(record_at(low.w, *locations[0], record), list.element)
        if is_list(list.element):
            assert list_class.inner is not None
            element = _copy(low, list.element, element, root(list_class.inner), locations[1:])
        low.arrays.retain_all(list.element, element)
        element = low.conversions.coerce(element, list.element, list_class.element)
        low.arenas.store(list_class, low.w.define(f"add i64 {new_list[0]}, {index}"), element)

    low.w.loop(slots[-1], copy_record)
    return (*slots[:-2], *new_list)


def mark_shared(low: Lowering, list_class: ListClass, slots: Registers) -> None:
    """Mark the arrays in a list that is returned, and in the lists in it, as shared."""
    if list_class.arena.is_argument or not _has_references(list_class):
        return

    def mark_record(index: str) -> None:
        element = low.arenas.load(list_class, low.w.define(f"add i64 {slots[-2]}, {index}"))
        for k in references(list_class.element):
            low.arrays.mark(element[k], SHARED_BIT)
        if is_list(list_class.element):
            assert list_class.inner is not None
            mark_shared(low, root(list_class.inner), element)

    low.w.loop(slots[-1], mark_record)


def _has_references(list_class: ListClass) -> bool:
    while not references(list_class.element):
        if list_class.inner is None:
            return False
        list_class = root(list_class.inner)
    return True
