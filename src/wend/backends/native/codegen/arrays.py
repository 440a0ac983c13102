"""Operations on arrays in memory: allocation, references, elements, loops over elements.

An `Array` is a pointer, a dtype and sizes. Elements lie in C order without gaps; bools are bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from wend.backends.native.codegen.instrument import Instrumentation
from wend.backends.native.codegen.traps import NO_MEMORY, Traps
from wend.backends.native.target.kinds import REGISTERS, Kind, memory_type
from wend.backends.native.target.sizes import SizeArithmetic, is_literal
from wend.backends.native.target.value_layout import Registers, references
from wend.backends.native.target.writer import Writer
from wend.base.lazy.dataclass import dataclass
from wend.ir.types import Symbol, TensorType, Type


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
    """Emits operations on arrays into `w`; `uses_pool` says whether the pool is needed."""

    w: Writer
    traps: Traps
    sizes: SizeArithmetic
    uses_pool: bool = False
    instrumentation: Instrumentation | None = None

    def of(self, type: TensorType, slots: Registers) -> Array:
        """Return a value of known rank as an array."""
        dynamic_sizes = iter(slots[1:])
        dims = (next(dynamic_sizes) if isinstance(dim, Symbol) else str(dim) for dim in type.dims)
        return Array(slots[0], type.dtype, tuple(dims))

    def slots(self, type: TensorType, array: Array) -> Registers:
        """Return the registers of an array as a value of a type."""
        sizes = zip(type.dims, array.dims, strict=True)
        return (array.pointer, *(size for dim, size in sizes if isinstance(dim, Symbol)))

    def count(self, array: Array) -> str:
        """Return the number of elements."""
        return self.sizes.product(array.dims)

    # Memory
    def allocate(self, size: str) -> str:
        """Allocate this many bytes from the pool, with one reference."""
        self.uses_pool = True
        pointer = self.w.define(f"call noalias ptr @wend.take(ptr %pool, i64 {size})")
        self.traps.check(self.w.define(f"icmp ne ptr {pointer}, null"), NO_MEMORY)
        if self.instrumentation:
            self.instrumentation.count_bytes(size)
        return pointer

    def new(self, dtype: np.dtype, dims: Sequence[str]) -> Array:
        """Allocate an uninitialized array; one that is too large traps for lack of memory."""
        size = self.sizes.saturating_product((*dims, str(dtype.itemsize)))
        return Array(self.allocate(size), dtype, tuple(dims))

    def retain(self, pointer: str) -> None:
        """Increment the reference count; a null pointer is ignored."""
        self.uses_pool = True
        self.w.do(f"call void @wend.retain(ptr {pointer})")

    def release(self, pointer: str) -> None:
        """Decrement the reference count; a null pointer is ignored."""
        self.uses_pool = True
        self.w.do(f"call void @wend.release(ptr %pool, ptr {pointer})")

    def retain_all(self, type: Type, slots: Registers) -> None:
        """Retain the arrays that a value refers to."""
        for k in references(type):
            self.retain(slots[k])

    def release_all(self, type: Type, slots: Registers) -> None:
        """Release the arrays that a value refers to."""
        for k in references(type):
            self.release(slots[k])

    def mark(self, pointer: str, bit: int) -> None:
        """Set a bit in the reference count; a null pointer is ignored."""
        self.uses_pool = True
        self.w.do(f"call void @wend.mark(ptr {pointer}, i64 {bit})")

    def copy(self, array: Array) -> Array:
        """Return a copy of an array in memory from the pool."""
        duplicate = self.new(array.dtype, array.dims)
        self.memcpy(duplicate.pointer, array.pointer, self.bytes(array))
        return duplicate

    def memcpy(self, target: str, source: str, size: str) -> None:
        """Copy bytes between ranges that do not overlap."""
        self.w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 0)")

    def bytes(self, array: Array) -> str:
        return self.sizes.mul(self.count(array), str(array.dtype.itemsize))

    def clear(self, array: Array) -> None:
        """Fill an array with zero bits, which are 0, 0.0 and False."""
        size = self.bytes(array)
        self.w.do(f"call void @llvm.memset.p0.i64(ptr {array.pointer}, i8 0, i64 {size}, i1 0)")

    def is_unique(self, pointer: str) -> str:
        """Return whether there is exactly one reference, as an i1."""
        address = self.w.define(f"getelementptr i8, ptr {pointer}, i64 -16")
        return self.w.define(f"icmp eq i64 {self.w.define(f'load i64, ptr {address}')}, 1")

    # Elements
    def address(self, array: Array, index: str) -> str:
        if index == "0":
            return array.pointer
        type = memory_type(REGISTERS[array.dtype]) if array.dtype in REGISTERS else ""
        if not type:
            index = self.sizes.mul(index, str(array.dtype.itemsize))
            type = "i8"
        return self.w.define(f"getelementptr {type}, ptr {array.pointer}, i64 {index}")

    def load(self, array: Array, index: str) -> str:
        """Load one element into a register."""
        return self.load_at(array.kind, self.address(array, index))

    def load_at(self, kind: Kind, address: str) -> str:
        return self.w.load(kind.element, address)

    def store(self, array: Array, index: str, value: str) -> None:
        """Store one element."""
        self.store_at(array.kind, self.address(array, index), value)

    def store_at(self, kind: Kind, address: str, value: str) -> None:
        self.w.store(kind.element, value, address)

    def copy_element(
        self, target: Array, target_index: str, source: Array, source_index: str
    ) -> None:
        """Copy one element of any dtype."""
        if source.dtype in REGISTERS:
            type = memory_type(REGISTERS[source.dtype])
            value = self.w.define(f"load {type}, ptr {self.address(source, source_index)}")
            self.w.do(f"store {type} {value}, ptr {self.address(target, target_index)}")
            return
        size = str(source.dtype.itemsize)
        self.memcpy(self.address(target, target_index), self.address(source, source_index), size)

    def copy_run(
        self, target: Array, target_index: str, source: Array, source_index: str, count: str
    ) -> None:
        """Copy consecutive elements of any dtype."""
        if count == "1":
            self.copy_element(target, target_index, source, source_index)
        else:
            size = self.sizes.mul(count, str(source.dtype.itemsize))
            self.memcpy(
                self.address(target, target_index), self.address(source, source_index), size
            )

    # Loops
    def for_each_position(
        self, dims: Sequence[str], body: Callable[[tuple[str, ...]], None]
    ) -> None:
        """Emit loops that run a body at every position of these sizes, the last axis innermost."""

        def loop_over(axis: int, position: tuple[str, ...]) -> None:
            if axis == len(dims):
                body(position)
            elif dims[axis] == "1":
                loop_over(axis + 1, (*position, "0"))
            else:
                self.w.loop(dims[axis], lambda k: loop_over(axis + 1, (*position, k)))

        if "0" not in dims:
            loop_over(0, ())

    def offset(self, position: Sequence[str], strides: Sequence[str], start: str = "0") -> str:
        """Return the offset of an element."""
        for k, stride in zip(position, strides, strict=True):
            start = self.sizes.add(start, self.sizes.mul(k, stride))
        return start

    def copy_strided(
        self,
        dims: Sequence[str],
        target: Array,
        target_view: StridedView,
        source: Array,
        source_view: StridedView,
    ) -> None:
        """Copy the elements of one strided view to another."""
        axes = [
            (size, a, b)
            for size, a, b in zip(dims, target_view.strides, source_view.strides, strict=True)
            if size != "1"
        ]
        # Trailing axes that are contiguous in both are copied as one run.
        run = "1"
        while axes and axes[-1][1] == axes[-1][2] == run:
            run = self.sizes.mul(run, axes.pop()[0])
        if "0" in dims or "0" in (run, *(size for size, _, _ in axes)):
            return

        def body(position: tuple[str, ...]) -> None:
            target_index = self.offset(position, [a for _, a, _ in axes], target_view.start)
            source_index = self.offset(position, [b for _, _, b in axes], source_view.start)
            self.copy_run(target, target_index, source, source_index, run)

        self.for_each_position([size for size, _, _ in axes], body)

    def full_view(self, array: Array) -> StridedView:
        """Return the view of a whole array, in order."""
        return StridedView("0", tuple(self.sizes.strides(array.dims)))


@dataclass(frozen=True, slots=True)
class StridedView:
    """A strided view of an array: its first element and the stride of each axis, in elements."""

    start: str
    strides: tuple[str, ...]


def is_empty(array: Array) -> bool:
    """Return whether an array statically has no elements."""
    return any(is_literal(size) and int(size) == 0 for size in array.dims)
