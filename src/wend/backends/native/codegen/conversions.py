"""Conversion of a value to a declared type that knows more or fewer of its sizes."""

from __future__ import annotations

from wend.backends.native.codegen.arrays import Array, Arrays
from wend.backends.native.codegen.traps import BAD_SHAPE, Traps
from wend.backends.native.target.value_layout import (
    BOXED_BYTES,
    Registers,
    UnknownTypeError,
    is_scalar,
    registers,
)
from wend.backends.native.target.writer import Writer
from wend.base.lazy.dataclass import dataclass
from wend.ir.types import MaybeType, Symbol, TensorType, Type


@dataclass(eq=False, repr=False, slots=True)
class Conversions:
    """Emits conversions between the registers of two types into `w`."""

    w: Writer
    traps: Traps
    arrays: Arrays

    def coerce(self, slots: Registers, actual: Type, expected: Type) -> Registers:
        """Return the registers of a value as a declared type; a maybe accepts a present value."""
        if isinstance(expected, MaybeType):
            if isinstance(actual, MaybeType):
                return (
                    slots[0],
                    *self._coerce_present(slots[1:], actual.of, expected.of, slots[0]),
                )
            return ("true", *self.coerce(slots, actual, expected.of))
        if isinstance(actual, TensorType) and isinstance(expected, TensorType):
            return self._coerce_tensor(slots, actual, expected, "true")
        if registers(actual) != registers(expected):
            raise UnknownTypeError(f"{actual} as {expected}")
        return slots

    def from_array(self, array: Array, expected: TensorType) -> Registers:
        """Return the registers of an array as a declared type."""
        if expected.shape is None:
            raise UnknownTypeError(f"an array as {expected}")
        self.check_dims(array.dims, expected)
        return self.arrays.slots(expected, array)

    def check_dims(self, dims: tuple[str, ...], expected: TensorType) -> None:
        """Trap if sizes differ from the declared ones."""
        for size, dim in zip(dims, expected.dims, strict=True):
            if not isinstance(dim, Symbol):
                self.traps.check(self.arrays.sizes.equal(size, str(dim)), BAD_SHAPE)

    def _box(self, type: TensorType, slots: Registers) -> str:
        """Copy an array behind a header of its rank and sizes.

        The original lives until the end of the run.
        """
        scalar = is_scalar(type)
        array = Array("", type.dtype, ()) if scalar else self.arrays.of(type, slots)
        size = self.arrays.bytes(array)
        pointer = self.arrays.allocate(self.arrays.sizes.add(size, str(BOXED_BYTES)))
        for k, number in enumerate((str(len(array.dims)), *array.dims)):
            address = self.w.define(f"getelementptr i64, ptr {pointer}, i64 {k}")
            self.w.do(f"store i64 {number}, ptr {address}")
        elements = self.w.define(f"getelementptr i8, ptr {pointer}, i64 {BOXED_BYTES}")
        if scalar:
            self.arrays.store_at(array.kind, elements, slots[0])
        else:
            self.arrays.memcpy(elements, array.pointer, size)
        return pointer

    def _coerce_present(
        self, slots: Registers, actual: Type, expected: Type, flag: str
    ) -> Registers:
        if isinstance(actual, TensorType) and isinstance(expected, TensorType):
            return self._coerce_tensor(slots, actual, expected, flag)
        return self.coerce(slots, actual, expected)

    def _coerce_tensor(
        self, slots: Registers, actual: TensorType, expected: TensorType, flag: str
    ) -> Registers:
        """Convert an array; declared sizes are checked where `flag` says that it is present."""
        if actual.shape == expected.shape or (actual.shape is None and expected.shape is None):
            return slots
        if actual.shape is None:
            raise UnknownTypeError(f"{actual} as {expected}")
        if expected.shape is None and actual.dtype == expected.dtype:
            return (self._box(actual, slots),)
        if actual.dtype != expected.dtype or actual.rank != expected.rank:
            raise UnknownTypeError(f"{actual} as {expected}")
        if is_scalar(actual):
            return slots
        array = self.arrays.of(actual, slots)
        for size, actual_dim, expected_dim in zip(
            array.dims, actual.dims, expected.dims, strict=True
        ):
            if actual_dim != expected_dim and not isinstance(expected_dim, Symbol):
                equal = self.arrays.sizes.equal(size, str(expected_dim))
                if flag != "true" and equal != "true":
                    absent = self.w.define(f"xor i1 {flag}, true")
                    equal = self.w.define(f"or i1 {equal}, {absent}")
                self.traps.check(equal, BAD_SHAPE)
        return self.arrays.slots(expected, array)
