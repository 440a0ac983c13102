"""Lists in arenas: growing arrays of records that many lists share.

A list is its start in its arena and its length, both in records. A push appends in place if the
list ends at the fill of the arena; otherwise it first copies the list to the end, so older versions
stay unchanged. The data pointer, capacity and fill of an arena live in stack slots that LLVM
promotes to registers. At the end of a call the data and capacity go back to the caller, which
keeps them warm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wend.backends.native.analysis.list_classes import Arena, ListClass
from wend.backends.native.codegen.arrays import Arrays
from wend.backends.native.codegen.traps import NO_MEMORY, Traps
from wend.backends.native.target.kinds import memory_type
from wend.backends.native.target.value_layout import (
    ARENA_BYTES,
    ARENA_FIELDS,
    SLOT_BYTES,
    Registers,
    registers,
)
from wend.backends.native.target.writer import Writer
from wend.base.lazy.dataclass import dataclass
from wend.ir.types import Type

# The header of an argument's arena; in the caller's memory it replaces the first two fields.
_ARGUMENT_FIELDS = (("ptr", "data"), ("i64", "step"))


def _fields(arena: Arena) -> Sequence[tuple[str, str]]:
    return _ARGUMENT_FIELDS if arena.is_argument else ARENA_FIELDS


def record_at(w: Writer, data: str, step: str, record: str) -> str:
    """Return the address of a record where the stride is in a register."""
    offset = w.define(f"mul i64 {record}, {step}")
    return w.define(f"getelementptr i8, ptr {data}, i64 {offset}")


@dataclass(eq=False, repr=False, slots=True)
class Arenas:
    """Emits operations on lists and arenas into `w`; `may_grow` says whether one may move."""

    w: Writer
    traps: Traps
    arrays: Arrays
    all: Sequence[Arena]
    may_grow: bool = False

    def enter(self, pointer: str) -> None:
        """Load the headers of all arenas (data, capacity, fill) from the caller's memory."""
        for arena in self.all:
            for type, name in _fields(arena):
                self.w.do(f"%arena{arena.number}.{name} = alloca {type}")
        self.reload(pointer)

    def reload(self, pointer: str) -> None:
        """Load the headers again after a callee may have changed them."""
        for arena in self.all:
            if arena.is_argument:
                continue
            for k, (type, name) in enumerate(ARENA_FIELDS):
                value = self.w.define(f"load {type}, ptr {self._field(pointer, arena, k)}")
                self.w.do(f"store {type} {value}, ptr %arena{arena.number}.{name}")

    def bind_argument(self, arena: Arena, data: str, step: str) -> None:
        """Set the address and the stride, in bytes, of the records of an argument."""
        self.w.do(f"store ptr {data}, ptr %arena{arena.number}.data")
        self.w.do(f"store i64 {step}, ptr %arena{arena.number}.step")

    def leave(self, pointer: str, *, reset: bool) -> None:
        """Store the headers back to the caller's memory; `reset` empties the arenas."""
        for arena in self.all:
            for k, (type, name) in enumerate(_fields(arena)):
                empty = reset and name == "fill"
                value = "0" if empty else self._load(arena, name, type)
                self.w.do(f"store {type} {value}, ptr {self._field(pointer, arena, k)}")

    def fill(self, arena: Arena) -> str:
        """Return the number of records in use."""
        return self._load(arena, "fill", "i64")

    def set_fill(self, arena: Arena, records: str) -> None:
        self.w.do(f"store i64 {records}, ptr %arena{arena.number}.fill")

    def reserve(self, arena: Arena, end: str) -> None:
        """Grow an arena to hold `end` records; traps if there is no memory."""
        self.may_grow = True
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
        """Drop the records from a position on, and the references they hold."""
        if arena.references:
            self._each_reference(arena, records, self.fill(arena), self.arrays.release)
        self.set_fill(arena, records)

    def new_list(self, list_class: ListClass) -> Registers:
        """Return an empty list, which starts at the fill of its arena."""
        return (self.fill(list_class.arena), "0")

    def end(self, list: Registers) -> str:
        """Return the position after the last record of a list."""
        return self.w.define(f"add i64 {list[0]}, {list[1]}")

    def load(self, list_class: ListClass, record: str) -> Registers:
        """Load an element by the index of its record in the arena."""
        return self.load_at(self._address(list_class, record), list_class.element)

    def load_at(self, address: str, element: Type) -> Registers:
        """Load an element by its address."""
        return tuple(
            self.w.load(type, self._slot(address, k), ", align 8")
            for k, type in enumerate(registers(element))
        )

    def load_f64_vector(self, list_class: ListClass, record: str, count: int) -> str:
        """Load the f64 elements of `count` consecutive records as a vector."""
        vector = f"<{count} x double>"
        if list_class.arena.stride == 1:
            return self.w.define(f"load {vector}, ptr {self._address(list_class, record)}, align 8")
        result = "poison"
        for k in range(count):
            address = self._address(list_class, self.w.define(f"add i64 {record}, {k}"))
            element = self.w.define(f"load double, ptr {address}, align 8")
            result = self.w.define(f"insertelement {vector} {result}, double {element}, i64 {k}")
        return result

    def store(self, list_class: ListClass, record: str, slots: Registers) -> None:
        """Store an element into a record of the arena."""
        address = self._address(list_class, record)
        for k, type in enumerate(registers(list_class.element)):
            value = slots[k]
            if type == "i1":
                value = self.w.define(f"zext i1 {value} to i8")
            self.w.do(f"store {memory_type(type)} {value}, ptr {self._slot(address, k)}, align 8")

    def copy(self, list_class: ListClass, list: Registers) -> Registers:
        """Copy a list to records of its own at the end of the arena."""
        arena = list_class.arena
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

    def ensure_at_end(self, list_class: ListClass, list: Registers) -> Registers:
        """Return the list, or a copy of it, that ends at the arena's fill."""
        w = self.w
        is_last = w.define(f"icmp eq i64 {self.end(list)}, {self.fill(list_class.arena)}")
        copies, go, entry_block = w.new_label("copies"), w.new_label("last"), w.block
        w.do(f"br i1 {is_last}, label %{go}, label %{copies}, !prof !0")
        w.start(copies)
        copy = self.copy(list_class, list)
        copy_block = w.block
        w.jump(go)
        w.start(go)
        return (w.phi("i64", (list[0], entry_block), (copy[0], copy_block)), list[1])

    def allocate(self, list_class: ListClass, length: str) -> Registers:
        """Allocate a list of this length with uninitialized elements."""
        base = self.fill(list_class.arena)
        end = self.w.define(f"add i64 {base}, {length}")
        self.reserve(list_class.arena, end)
        self.set_fill(list_class.arena, end)
        return (base, length)

    def clear(self, list_class: ListClass, list: Registers) -> None:
        """Fill the records of a list with zero bits, which are 0, 0.0, False and absent."""
        start = self._record(list_class.arena, list[0])
        size = self.w.define(f"mul i64 {list[1]}, {list_class.arena.stride * SLOT_BYTES}")
        self.w.do(f"call void @llvm.memset.p0.i64(ptr {start}, i8 0, i64 {size}, i1 0)")

    def _each_reference(
        self, arena: Arena, start: str, end: str, use: Callable[[str], None]
    ) -> None:
        """Apply a function to every reference in a range of records."""

        def visit_record(index: str) -> None:
            address = self._record(arena, self.w.define(f"add i64 {start}, {index}"))
            for offset in arena.references:
                use(self.w.define(f"load ptr, ptr {self._slot(address, offset)}, align 8"))

        self.w.loop(self.w.define(f"sub i64 {end}, {start}"), visit_record)

    def _load(self, arena: Arena, name: str, type: str) -> str:
        return self.w.define(f"load {type}, ptr %arena{arena.number}.{name}")

    def _field(self, pointer: str, arena: Arena, index: int) -> str:
        offset = ARENA_BYTES * arena.number + SLOT_BYTES * index
        return self.w.define(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def _record(self, arena: Arena, record: str) -> str:
        data = self._load(arena, "data", "ptr")
        if arena.is_argument:
            return record_at(self.w, data, self._load(arena, "step", "i64"), record)
        record_type = f"[{arena.stride} x i64]"
        return self.w.define(f"getelementptr {record_type}, ptr {data}, i64 {record}")

    def _address(self, list_class: ListClass, record: str) -> str:
        return self._slot(self._record(list_class.arena, record), list_class.offset)

    def _slot(self, address: str, index: int) -> str:
        return self.w.define(f"getelementptr i64, ptr {address}, i64 {index}") if index else address
