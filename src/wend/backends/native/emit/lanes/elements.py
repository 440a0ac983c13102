"""The elements of a map in lanes: which are in range, and their numbers in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.emit.lanes.records import as_register, memory_text
from wend.backends.native.emit.lanes.regions import VectorRegions
from wend.backends.native.emit.lanes.vectors import splat
from wend.backends.native.target.kinds import WORD, Kind
from wend.backends.native.target.lane_map import ElementProgram
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node, Value


@dataclass(eq=False, slots=True)
class LaneElements:
    """The elements of a map, as a loop over them is being emitted.

    Attributes:
        low: the lowering of the function.
        program: the program of an element.
        arrays: the arrays with the numbers of the elements, for each mapped param.
        outs: those of the results.
        count: the number of elements.
        regions: emits the program on vectors.
    """

    low: Lowering
    program: ElementProgram
    arrays: Sequence[Array]
    outs: Sequence[Array]
    count: str
    regions: VectorRegions = field(init=False)

    def __post_init__(self) -> None:
        self.regions = VectorRegions(self.low, self.lanes)

    @property
    def body(self) -> Graph:
        """The program of an element."""
        return self.program.graph

    @property
    def lanes(self) -> int:
        """The number of elements that are computed at a time."""
        return self.program.lanes

    @property
    def word(self) -> Kind:
        """The kind of the numbers of the elements in the lanes."""
        return Kind(WORD.dtype, self.lanes)

    @property
    def columns(self) -> tuple[Value, ...]:
        """The params that differ from element to element."""
        return self.body.params[: len(self.arrays)]

    def set_columns(self, vectors: Sequence[str]) -> None:
        """Give the program these numbers of elements to read."""
        self.regions.values.update(zip(self.columns, vectors, strict=True))

    def emit_nodes(self, nodes: Sequence[Node], columns: Sequence[str], mask: str) -> None:
        """Emit nodes of the program on these numbers of elements."""
        self.set_columns(columns)
        self.regions.emit_nodes(nodes, mask)

    def in_range(self, index: str) -> str:
        """Emit which lanes have an element, by its number."""
        count = splat(self.low, self.word, self.count)
        return self.low.w.define(f"icmp slt {self.word.text} {index}, {count}")

    def number_of(self, mask: str) -> str:
        """Emit how many lanes a mask has."""
        w, bits = self.low.w, f"i{self.lanes}"
        number = w.define(f"bitcast {self.regions.flags.text} {mask} to {bits}")
        return w.define(
            f"zext {bits} {w.define(f'call {bits} @llvm.ctpop.{bits}({bits} {number})')} to i64"
        )

    def taken(self, following: str, mask: str) -> str:
        """Emit consecutive numbers of elements, from one on, for the lanes of a mask."""
        numbers = self.low.constant(np.arange(self.lanes)).pointer
        rank = self._expanded(numbers, self.word, mask, self.word.literal(0))
        first = splat(self.low, self.word, following)
        return self.low.w.define(f"add {self.word.text} {rank}, {first}")

    def loaded(self, first: str, mask: str, old: Sequence[str] | None) -> list[str]:
        """Emit the elements from one on for the lanes of a mask, in the order of these."""
        vectors = []
        for k, (array, x) in enumerate(zip(self.arrays, self.columns, strict=True)):
            kind = self.regions.kind(x)
            address = self.low.arrays.address(array, first)
            before = "zeroinitializer" if old is None else self._in_memory(kind, old[k])
            vectors.append(as_register(self.low, kind, self._expanded(address, kind, mask, before)))
        return vectors

    def gathered(self, index: str, mask: str) -> list[str]:
        """Emit the elements of these numbers for the lanes of a mask."""
        vectors = []
        for array, x in zip(self.arrays, self.columns, strict=True):
            kind = self.regions.kind(x)
            text, places = memory_text(kind), self._places(array, kind, index)
            name = f"@llvm.masked.gather.{_memory_suffix(kind)}.v{self.lanes}p0"
            operands = (
                f"<{self.lanes} x ptr> {places}, i32 {kind.dtype.itemsize}, "
                f"{self.regions.flags.text} {mask}, {text} zeroinitializer"
            )
            vector = self.low.w.define(f"call {text} {name}({operands})")
            vectors.append(as_register(self.low, kind, vector))
        return vectors

    def store(self, first: str, mask: str) -> None:
        """Store the results of the lanes of a mask, from an element on."""
        for out, x in zip(self.outs, self.body.results, strict=True):
            kind = self.regions.kind(x)
            vector = self._in_memory(kind, self.regions.values[x])
            address = self.low.arrays.address(out, first)
            align, flags = kind.dtype.itemsize, f"{self.regions.flags.text} {mask}"
            name = f"@llvm.masked.store.{_memory_suffix(kind)}.p0"
            operands = f"{memory_text(kind)} {vector}, ptr {address}, i32 {align}, {flags}"
            self.low.w.do(f"call void {name}({operands})")

    def scatter(self, index: str, mask: str) -> None:
        """Store the results of the lanes of a mask, by the numbers of their elements."""
        for out, x in zip(self.outs, self.body.results, strict=True):
            kind = self.regions.kind(x)
            vector = self._in_memory(kind, self.regions.values[x])
            places = self._places(out, kind, index)
            name = f"@llvm.masked.scatter.{_memory_suffix(kind)}.v{self.lanes}p0"
            flags = f"{self.regions.flags.text} {mask}"
            operands = (
                f"{memory_text(kind)} {vector}, <{self.lanes} x ptr> {places}, "
                f"i32 {kind.dtype.itemsize}, {flags}"
            )
            self.low.w.do(f"call void {name}({operands})")

    def _places(self, array: Array, kind: Kind, index: str) -> str:
        element = "i8" if kind.is_bool else kind.element
        return self.low.w.define(
            f"getelementptr {element}, ptr {array.pointer}, {self.word.text} {index}"
        )

    def _expanded(self, address: str, kind: Kind, mask: str, before: str) -> str:
        """Emit a load of consecutive elements into the lanes of a mask."""
        text, flags = memory_text(kind), f"{self.regions.flags.text} {mask}"
        name = f"@llvm.masked.expandload.{_memory_suffix(kind)}"
        return self.low.w.define(f"call {text} {name}(ptr {address}, {flags}, {text} {before})")

    def _in_memory(self, kind: Kind, vector: str) -> str:
        if not kind.is_bool:
            return vector
        return self.low.w.define(f"zext {kind.text} {vector} to {memory_text(kind)}")


def _memory_suffix(kind: Kind) -> str:
    return f"v{kind.lanes}i8" if kind.is_bool else kind.suffix
