"""Records of lanes: vectors in memory that grows, one record after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.target.kinds import Kind
from wend.base.lazy.dataclass import dataclass

_FIRST_RECORDS = 64
ALIGNMENT = 64


@dataclass(eq=False, slots=True)
class Tape:
    """Records of one layout.

    Attributes:
        low: the lowering of the function.
        kinds: the kinds of the vectors of a record.
        places: where a record has each of them.
        size: the bytes of a record.
        address: the stack slot that holds where the records are.
        capacity: the one that holds how many there is room for.
        last: the one that holds the number after that of the last record, where runs of a loop add
            theirs to those of earlier ones; empty if they do not.
    """

    low: Lowering
    kinds: Sequence[Kind]
    places: Sequence[int] = field(init=False)
    size: int = field(init=False)
    address: str = field(init=False)
    capacity: str = field(init=False)
    last: str = ""

    def __post_init__(self) -> None:
        w = self.low.w
        self.places, self.size = _layout(self.kinds)
        self.address, self.capacity = w.allocate("ptr"), w.allocate("i64")
        w.at_entry(f"store ptr null, ptr {self.address}")
        w.at_entry(f"store i64 0, ptr {self.capacity}")

    def reserve(self, number: str) -> None:
        """Make room for a record, in twice the memory where it is full."""
        w, arrays = self.low.w, self.low.arrays
        capacity = w.define(f"load i64, ptr {self.capacity}")

        def grow() -> None:
            wider = w.define(f"shl i64 {capacity}, 1")
            wider = w.define(f"call i64 @llvm.smax.i64(i64 {wider}, i64 {_FIRST_RECORDS})")
            old = w.define(f"load ptr, ptr {self.address}")
            # One more, as lanes that take no part in a trip load the next record, too
            count = w.define(f"add i64 {wider}, 1")
            new = arrays.allocate(w.define(f"mul i64 {count}, {self.size}"))
            arrays.memcpy(new, old, w.define(f"mul i64 {capacity}, {self.size}"))
            arrays.release(old)
            w.do(f"store ptr {new}, ptr {self.address}")
            w.do(f"store i64 {wider}, ptr {self.capacity}")

        w.when(("grow", "room"), lambda: w.define(f"icmp sge i64 {number}, {capacity}"), grow)

    def end(self) -> str:
        """Emit the number of the record after the last."""
        if not self.last:
            self.last = self.low.w.allocate("i64")
            self.low.w.at_entry(f"store i64 0, ptr {self.last}")
        return self.low.w.define(f"load i64, ptr {self.last}")

    def set_end(self, number: str) -> None:
        """Set the number of the record after the last."""
        self.low.w.do(f"store i64 {number}, ptr {self.last}")

    def record(self, number: str) -> str:
        """Emit the address of a record."""
        w = self.low.w
        base = w.define(f"load ptr, ptr {self.address}")
        offset = w.define(f"mul i64 {number}, {self.size}")
        return w.define(f"getelementptr i8, ptr {base}, i64 {offset}")

    def next(self, record: str) -> str:
        """Emit the address of the record after one."""
        return self.low.w.define(f"getelementptr i8, ptr {record}, i64 {self.size}")

    def store(self, record: str, k: int, vector: str) -> None:
        """Store a vector of a record."""
        kind, w = self.kinds[k], self.low.w
        if kind.is_bool:
            vector = w.define(f"zext {kind.text} {vector} to {memory_text(kind)}")
        address = self._address(record, k)
        w.do(f"store {memory_text(kind)} {vector}, ptr {address}, align {_alignment(kind)}")

    def load(self, record: str, k: int) -> str:
        """Load a vector of a record."""
        kind, address = self.kinds[k], self._address(record, k)
        vector = self.low.w.define(
            f"load {memory_text(kind)}, ptr {address}, align {_alignment(kind)}"
        )
        return as_register(self.low, kind, vector)

    def release(self) -> None:
        """Release the memory."""
        w = self.low.w
        self.low.arrays.release(w.define(f"load ptr, ptr {self.address}"))
        w.do(f"store ptr null, ptr {self.address}")
        w.do(f"store i64 0, ptr {self.capacity}")

    def _address(self, record: str, k: int) -> str:
        return self.low.w.define(f"getelementptr i8, ptr {record}, i64 {self.places[k]}")


def memory_text(kind: Kind) -> str:
    """Return the LLVM type of a vector in memory, where bools are bytes."""
    if not kind.is_bool:
        return kind.text
    return "i8" if kind.lanes == 1 else f"<{kind.lanes} x i8>"


def as_register(low: Lowering, kind: Kind, vector: str) -> str:
    """Emit a vector in registers from one in memory."""
    if not kind.is_bool:
        return vector
    return low.w.define(f"icmp ne {memory_text(kind)} {vector}, zeroinitializer")


def _layout(kinds: Sequence[Kind]) -> tuple[Sequence[int], int]:
    """Return where a record has its vectors, the largest first, and its size."""
    size, places = 0, dict.fromkeys(range(len(kinds)), 0)
    for k in sorted(places, key=lambda k: -_bytes(kinds[k])):
        places[k] = size
        size += _bytes(kinds[k])
    return tuple(places.values()), size + -size % ALIGNMENT


def _bytes(kind: Kind) -> int:
    return kind.lanes * kind.dtype.itemsize


def _alignment(kind: Kind) -> int:
    return min(ALIGNMENT, _bytes(kind))
