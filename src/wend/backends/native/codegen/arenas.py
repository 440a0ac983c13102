"""Writes the code that keeps lists in arenas: one growing array of records for many lists.

A list is where it starts in its arena and its length, both in records. A push appends in place if
the list ends where the arena's fill ends; else it copies the list to the end first, so that older
versions stay what they were. Data, room and fill of an arena live in stack slots that LLVM turns
into registers; at the end of a call data and room go back to the caller, who keeps them warm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wend.backends.native.analysis.list_classes import Arena, ListClass
from wend.backends.native.codegen.arrays import Arrays
from wend.backends.native.codegen.traps import NO_MEMORY, Traps
from wend.backends.native.rt import redzones
from wend.backends.native.target.kinds import stored
from wend.backends.native.target.value_layout import (
    ARENA_BYTES,
    ARENA_FIELDS,
    SLOT_BYTES,
    Registers,
    registers,
)
from wend.backends.native.target.writer import Writer
from wend.ir.types import Type

GROW = f"""
declare ptr @realloc(ptr, i64)

; A buffer with room for more records, at least twice as many; null where there is no memory.
define internal {{ ptr, i64 }} @wend.grow(ptr %data, i64 %room, i64 %needed, i64 %bytes)
    noinline cold {{
  %twice = shl i64 %room, 1
  %most = call i64 @llvm.umax.i64(i64 %twice, i64 %needed)
  %new = call i64 @llvm.umax.i64(i64 %most, i64 64)
  %size = call {{ i64, i1 }} @llvm.umul.with.overflow.i64(i64 %new, i64 %bytes)
  %total = extractvalue {{ i64, i1 }} %size, 0
  %over = extractvalue {{ i64, i1 }} %size, 1
  br i1 %over, label %fail, label %go
go:
  %guarded = add i64 %total, {redzones.BYTES}
  %moved = call ptr @realloc(ptr %data, i64 %guarded)
  %none = icmp eq ptr %moved, null
  br i1 %none, label %fail, label %mark
mark:
  %end = getelementptr i8, ptr %moved, i64 %total
  store i64 {redzones.WORD}, ptr %end
  %pair = insertvalue {{ ptr, i64 }} poison, ptr %moved, 0
  %both = insertvalue {{ ptr, i64 }} %pair, i64 %new, 1
  ret {{ ptr, i64 }} %both
fail:
  ret {{ ptr, i64 }} {{ ptr null, i64 0 }}
}}
"""


# Of one that is given; in the caller's memory in place of the first two
_GIVEN_FIELDS = (("ptr", "data"), ("i64", "step"))


def _fields(arena: Arena) -> Sequence[tuple[str, str]]:
    return _GIVEN_FIELDS if arena.is_given else ARENA_FIELDS


def record_at(w: Writer, data: str, step: str, record: str) -> str:
    """The address of a record where the step from one to the next is in a register."""
    offset = w.define(f"mul i64 {record}, {step}")
    return w.define(f"getelementptr i8, ptr {data}, i64 {offset}")


@dataclass(eq=False, repr=False, slots=True)
class Arenas:
    """Writes into `w` what is done with arenas."""

    w: Writer
    traps: Traps
    arrays: Arrays
    all: Sequence[Arena]

    def enter(self, pointer: str) -> None:
        """Take over the buffers: data, room and fill of each, in memory at a pointer."""
        for arena in self.all:
            for type, what in _fields(arena):
                self.w.do(f"%arena{arena.number}.{what} = alloca {type}")
        self.reload(pointer)

    def reload(self, pointer: str) -> None:
        """Take the buffers over again, after somebody else has used them."""
        for arena in self.all:
            if arena.is_given:
                continue
            for k, (type, what) in enumerate(ARENA_FIELDS):
                value = self.w.define(f"load {type}, ptr {self._field(pointer, arena, k)}")
                self.w.do(f"store {type} {value}, ptr %arena{arena.number}.{what}")

    def give(self, arena: Arena, data: str, step: str) -> None:
        """Say where the records of an argument lie, and how many bytes from one to the next."""
        self.w.do(f"store ptr {data}, ptr %arena{arena.number}.data")
        self.w.do(f"store i64 {step}, ptr %arena{arena.number}.step")

    def leave(self, pointer: str, *, for_good: bool) -> None:
        """Give the buffers back; for good: with nothing in them."""
        for arena in self.all:
            for k, (type, what) in enumerate(_fields(arena)):
                empty = for_good and what == "fill"
                value = "0" if empty else self._load(arena, what, type)
                self.w.do(f"store {type} {value}, ptr {self._field(pointer, arena, k)}")

    def fill(self, arena: Arena) -> str:
        """How many records are in use."""
        return self._load(arena, "fill", "i64")

    def set_fill(self, arena: Arena, records: str) -> None:
        self.w.do(f"store i64 {records}, ptr %arena{arena.number}.fill")

    def reserve(self, arena: Arena, end: str) -> None:
        """Make room for records up to a number; leaves the function where there is no memory."""
        room = self._load(arena, "room", "i64")
        grow, go = self.w.new_label("grow"), self.w.new_label("fits")
        fits = self.w.define(f"icmp ule i64 {end}, {room}")
        self.w.do(f"br i1 {fits}, label %{go}, label %{grow}, !prof !0")
        self.w.start(grow)
        data = self._load(arena, "data", "ptr")
        operands = f"ptr {data}, i64 {room}, i64 {end}, i64 {arena.stride * SLOT_BYTES}"
        pair = self.w.define(f"call {{ ptr, i64 }} @wend.grow({operands})")
        new_data = self.w.define(f"extractvalue {{ ptr, i64 }} {pair}, 0")
        new_room = self.w.define(f"extractvalue {{ ptr, i64 }} {pair}, 1")
        self.traps.check(self.w.define(f"icmp ne ptr {new_data}, null"), NO_MEMORY)
        self.w.do(f"store ptr {new_data}, ptr %arena{arena.number}.data")
        self.w.do(f"store i64 {new_room}, ptr %arena{arena.number}.room")
        self.w.jump(go)
        self.w.start(go)

    def truncate(self, arena: Arena, records: str) -> None:
        """Drop the records from a number on, with the references that they hold."""
        if arena.references:
            self._each_reference(arena, records, self.fill(arena), self.arrays.release)
        self.set_fill(arena, records)

    def new_list(self, place: ListClass) -> Registers:
        """An empty list: it starts where the next record goes."""
        return (self.fill(place.arena), "0")

    def end(self, list: Registers) -> str:
        """The record after the last of a list."""
        return self.w.define(f"add i64 {list[0]}, {list[1]}")

    def load(self, place: ListClass, record: str) -> Registers:
        """An element, by the number of its record in the arena."""
        return self.load_at(self._address(place, record), place.element)

    def load_at(self, address: str, element: Type) -> Registers:
        """An element, by its address."""
        return tuple(self._load_slot(type, address, k) for k, type in enumerate(registers(element)))

    def load_reals(self, place: ListClass, record: str, count: int) -> str:
        """The f64 elements of some records that follow each other, as a vector."""
        vector = f"<{count} x double>"
        if place.arena.stride == 1:
            return self.w.define(f"load {vector}, ptr {self._address(place, record)}, align 8")
        found = "poison"
        for k in range(count):
            address = self._address(place, self.w.define(f"add i64 {record}, {k}"))
            one = self.w.define(f"load double, ptr {address}, align 8")
            found = self.w.define(f"insertelement {vector} {found}, double {one}, i64 {k}")
        return found

    def store(self, place: ListClass, record: str, slots: Registers) -> None:
        """Put an element into a record of the arena."""
        address = self._address(place, record)
        for k, type in enumerate(registers(place.element)):
            value = slots[k]
            if type == "i1":
                value = self.w.define(f"zext i1 {value} to i8")
            self.w.do(f"store {stored(type)} {value}, ptr {self._slot(address, k)}, align 8")

    def copy(self, place: ListClass, list: Registers) -> Registers:
        """The list with records of its own, at the end of the arena."""
        arena = place.arena
        base = self.fill(arena)
        end = self.w.define(f"add i64 {base}, {list[1]}")
        self.reserve(arena, end)
        start, target = self._record(arena, list[0]), self._record(arena, base)
        size = self.w.define(f"mul i64 {list[1]}, {arena.stride * SLOT_BYTES}")
        self.w.do(f"call void @llvm.memmove.p0.p0.i64(ptr {target}, ptr {start}, i64 {size}, i1 0)")
        self.set_fill(arena, end)
        if arena.references:
            self._each_reference(arena, base, end, self.arrays.retain)
        return (base, list[1])

    def at_end(self, place: ListClass, list: Registers) -> Registers:
        """The list, or a copy of it, such that the arena's fill ends with it."""
        w = self.w
        is_last = w.define(f"icmp eq i64 {self.end(list)}, {self.fill(place.arena)}")
        copies, go, here = w.new_label("copies"), w.new_label("last"), w.block
        w.do(f"br i1 {is_last}, label %{go}, label %{copies}, !prof !0")
        w.start(copies)
        copied = self.copy(place, list)
        source = w.block
        w.jump(go)
        w.start(go)
        return (w.phi("i64", (list[0], here), (copied[0], source)), list[1])

    def allocate(self, place: ListClass, length: str) -> Registers:
        """A list of this length, its elements not yet written."""
        base = self.fill(place.arena)
        end = self.w.define(f"add i64 {base}, {length}")
        self.reserve(place.arena, end)
        self.set_fill(place.arena, end)
        return (base, length)

    def clear(self, place: ListClass, list: Registers) -> None:
        """Fill the records of a list with zero bits, which are 0, 0.0, False and absent."""
        start = self._record(place.arena, list[0])
        size = self.w.define(f"mul i64 {list[1]}, {place.arena.stride * SLOT_BYTES}")
        self.w.do(f"call void @llvm.memset.p0.i64(ptr {start}, i8 0, i64 {size}, i1 0)")

    def _each_reference(
        self, arena: Arena, start: str, end: str, use: Callable[[str], None]
    ) -> None:
        """Use every reference in some records."""

        def inside(index: str) -> None:
            address = self._record(arena, self.w.define(f"add i64 {start}, {index}"))
            for offset in arena.references:
                use(self.w.define(f"load ptr, ptr {self._slot(address, offset)}, align 8"))

        self.w.loop(self.w.define(f"sub i64 {end}, {start}"), inside)

    def _load(self, arena: Arena, what: str, type: str) -> str:
        return self.w.define(f"load {type}, ptr %arena{arena.number}.{what}")

    def _field(self, pointer: str, arena: Arena, index: int) -> str:
        offset = ARENA_BYTES * arena.number + SLOT_BYTES * index
        return self.w.define(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def _record(self, arena: Arena, record: str) -> str:
        data = self._load(arena, "data", "ptr")
        if arena.is_given:
            return record_at(self.w, data, self._load(arena, "step", "i64"), record)
        whole = f"[{arena.stride} x i64]"
        return self.w.define(f"getelementptr {whole}, ptr {data}, i64 {record}")

    def _address(self, place: ListClass, record: str) -> str:
        return self._slot(self._record(place.arena, record), place.offset)

    def _slot(self, address: str, index: int) -> str:
        return self.w.define(f"getelementptr i64, ptr {address}, i64 {index}") if index else address

    def _load_slot(self, type: str, address: str, index: int) -> str:
        place = self._slot(address, index)
        if type != "i1":
            return self.w.define(f"load {type}, ptr {place}, align 8")
        byte = self.w.define(f"load i8, ptr {place}, align 8")
        return self.w.define(f"icmp ne i8 {byte}, 0")
