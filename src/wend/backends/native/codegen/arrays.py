"""Writes what is done with arrays in memory: room, references, elements, loops over them.

An array is `Array`: where its elements are, its dtype, and its sizes. Elements lie in C order
without gaps; bools are bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from wend.backends.native.codegen.traps import NO_MEMORY, Traps
from wend.backends.native.target.kinds import REGISTERS, Kind, stored
from wend.backends.native.target.sizes import SizeArithmetic, known
from wend.backends.native.target.value_layout import Registers
from wend.backends.native.target.writer import Writer
from wend.ir.types import Symbol, TensorType


@dataclass(frozen=True, slots=True)
class Array:
    """Elements in memory."""

    pointer: str
    dtype: np.dtype
    dims: tuple[str, ...]

    @property
    def kind(self) -> Kind:
        return Kind(self.dtype)


@dataclass(eq=False, repr=False, slots=True)
class Arrays:
    """Writes into `w` what is done with arrays; `used` says whether the pool is needed."""

    w: Writer
    traps: Traps
    sizes: SizeArithmetic
    used: bool = False

    def of(self, type: TensorType, slots: Registers) -> Array:
        """A value of known rank as an array."""
        rest = iter(slots[1:])
        dims = (next(rest) if isinstance(dim, Symbol) else str(dim) for dim in type.dims)
        return Array(slots[0], type.dtype, tuple(dims))

    def slots(self, type: TensorType, array: Array) -> Registers:
        """An array as a value of a type."""
        sizes = zip(type.dims, array.dims, strict=True)
        return (array.pointer, *(size for dim, size in sizes if isinstance(dim, Symbol)))

    def count(self, array: Array) -> str:
        """How many elements there are."""
        return self.sizes.product(array.dims)

    # Memory
    def take(self, size: str) -> str:
        """Memory from the pool, so many bytes, with one reference."""
        self.used = True
        pointer = self.w.define(f"call noalias ptr @wend.take(ptr %pool, i64 {size})")
        self.traps.check(self.w.define(f"icmp ne ptr {pointer}, null"), NO_MEMORY)
        return pointer

    def new(self, dtype: np.dtype, dims: Sequence[str]) -> Array:
        """An array whose elements are not yet written; one that is too large has no memory."""
        size = self.sizes.bounded((*dims, str(dtype.itemsize)))
        return Array(self.take(size), dtype, tuple(dims))

    def retain(self, pointer: str) -> None:
        """One more reference; none of a null pointer."""
        self.used = True
        self.w.do(f"call void @wend.retain(ptr {pointer})")

    def release(self, pointer: str) -> None:
        """One reference less; none of a null pointer."""
        self.used = True
        self.w.do(f"call void @wend.release(ptr %pool, ptr {pointer})")

    def mark(self, pointer: str, bit: int) -> None:
        """Set a bit in the count of references; none of a null pointer."""
        self.used = True
        self.w.do(f"call void @wend.mark(ptr {pointer}, i64 {bit})")

    def copied(self, array: Array) -> Array:
        """The same elements in memory from the pool."""
        made = self.new(array.dtype, array.dims)
        self.move(made.pointer, array.pointer, self.bytes(array))
        return made

    def move(self, target: str, source: str, size: str) -> None:
        """Copy bytes between places that do not overlap."""
        self.w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 0)")

    def bytes(self, array: Array) -> str:
        return self.sizes.mul(self.count(array), str(array.dtype.itemsize))

    def clear(self, array: Array) -> None:
        """Fill with zero bits, which are 0, 0.0 and False."""
        size = self.bytes(array)
        self.w.do(f"call void @llvm.memset.p0.i64(ptr {array.pointer}, i8 0, i64 {size}, i1 0)")

    def is_unique(self, pointer: str) -> str:
        """Whether there is one reference only: an i1."""
        at = self.w.define(f"getelementptr i8, ptr {pointer}, i64 -16")
        return self.w.define(f"icmp eq i64 {self.w.define(f'load i64, ptr {at}')}, 1")

    # Elements
    def address(self, array: Array, index: str) -> str:
        if index == "0":
            return array.pointer
        type = stored(REGISTERS[array.dtype]) if array.dtype in REGISTERS else ""
        if not type:
            index = self.sizes.mul(index, str(array.dtype.itemsize))
            type = "i8"
        return self.w.define(f"getelementptr {type}, ptr {array.pointer}, i64 {index}")

    def load(self, array: Array, index: str) -> str:
        """One element, in a register."""
        return self.load_at(array.kind, self.address(array, index))

    def load_at(self, kind: Kind, address: str) -> str:
        if kind.is_bool:
            byte = self.w.define(f"load i8, ptr {address}")
            return self.w.define(f"icmp ne i8 {byte}, 0")
        return self.w.define(f"load {kind.element}, ptr {address}")

    def store(self, array: Array, index: str, value: str) -> None:
        """Put one element."""
        self.store_at(array.kind, self.address(array, index), value)

    def store_at(self, kind: Kind, address: str, value: str) -> None:
        type = kind.element
        if kind.is_bool:
            value, type = self.w.define(f"zext i1 {value} to i8"), "i8"
        self.w.do(f"store {type} {value}, ptr {address}")

    def copy_element(self, target: Array, to: str, source: Array, at: str) -> None:
        """Copy one element of any dtype."""
        if source.dtype in REGISTERS:
            type = stored(REGISTERS[source.dtype])
            value = self.w.define(f"load {type}, ptr {self.address(source, at)}")
            self.w.do(f"store {type} {value}, ptr {self.address(target, to)}")
            return
        size = str(source.dtype.itemsize)
        self.move(self.address(target, to), self.address(source, at), size)

    # Loops
    def nest(self, dims: Sequence[str], body: Callable[[tuple[str, ...]], None]) -> None:
        """Run a body at every position of an array of these sizes, the last axis fastest."""

        def inside(axis: int, position: tuple[str, ...]) -> None:
            if axis == len(dims):
                body(position)
            elif dims[axis] == "1":
                inside(axis + 1, (*position, "0"))
            else:
                self.w.loop(dims[axis], lambda k: inside(axis + 1, (*position, k)))

        if "0" not in dims:
            inside(0, ())

    def offset(self, position: Sequence[str], strides: Sequence[str], start: str = "0") -> str:
        """Where an element lies."""
        for k, stride in zip(position, strides, strict=True):
            start = self.sizes.add(start, self.sizes.mul(k, stride))
        return start

    def copy_strided(
        self, dims: Sequence[str], target: Array, to: Steps, source: Array, at: Steps
    ) -> None:
        """Copy elements from places of one array to places of another."""
        axes = [
            (size, a, b)
            for size, a, b in zip(dims, to.strides, at.strides, strict=True)
            if size != "1"
        ]
        # What lies without gaps in both moves as a whole.
        run = "1"
        while axes and axes[-1][1] == axes[-1][2] == run:
            run = self.sizes.mul(run, axes.pop()[0])
        if "0" in dims or "0" in (run, *(size for size, _, _ in axes)):
            return

        def body(position: tuple[str, ...]) -> None:
            put = self.offset(position, [a for _, a, _ in axes], to.start)
            get = self.offset(position, [b for _, _, b in axes], at.start)
            if run == "1":
                self.copy_element(target, put, source, get)
            else:
                size = self.sizes.mul(run, str(source.dtype.itemsize))
                self.move(self.address(target, put), self.address(source, get), size)

        self.nest([size for size, _, _ in axes], body)

    def whole(self, array: Array) -> Steps:
        """All of an array, in order."""
        return Steps("0", tuple(self.sizes.strides(array.dims)))


@dataclass(frozen=True, slots=True)
class Steps:
    """Places in an array: the first, and how far to the next along each axis, in elements."""

    start: str
    strides: tuple[str, ...]


def is_empty(array: Array) -> bool:
    """Whether it is known to have no element."""
    return any(known(size) and int(size) == 0 for size in array.dims)
