"""Gives a value to where another type is declared: one that knows less, or more, of its sizes."""

from __future__ import annotations

from dataclasses import dataclass

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
from wend.ir.types import MaybeType, Symbol, TensorType, Type


@dataclass(eq=False, repr=False, slots=True)
class Conversions:
    """Writes into `w` what makes one type's slots of another's."""

    w: Writer
    traps: Traps
    arrays: Arrays

    def coerce(self, slots: Registers, found: Type, expected: Type) -> Registers:
        """The slots of a value where another type is declared: a maybe may be given its value."""
        if isinstance(expected, MaybeType):
            if isinstance(found, MaybeType):
                return (slots[0], *self._fit_present(slots[1:], found.of, expected.of, slots[0]))
            return ("true", *self.coerce(slots, found, expected.of))
        if isinstance(found, TensorType) and isinstance(expected, TensorType):
            return self._fit_tensor(slots, found, expected, "true")
        if registers(found) != registers(expected):
            raise UnknownTypeError(f"{found} as {expected}")
        return slots

    def tensor(self, array: Array, expected: TensorType) -> Registers:
        """The slots of an array of these sizes where a type is declared."""
        if expected.shape is None:
            raise UnknownTypeError(f"an array as {expected}")
        self.check(array.dims, expected)
        return self.arrays.slots(expected, array)

    def check(self, dims: tuple[str, ...], expected: TensorType) -> None:
        """Leave the function where sizes that are declared are others."""
        for size, dim in zip(dims, expected.dims, strict=True):
            if not isinstance(dim, Symbol):
                self.traps.check(self.arrays.sizes.equal(size, str(dim)), BAD_SHAPE)

    def _boxed(self, type: TensorType, slots: Registers) -> str:
        """A copy with its rank and sizes before it. What it is a copy of lives until the end."""
        scalar = is_scalar(type)
        array = Array("", type.dtype, ()) if scalar else self.arrays.of(type, slots)
        size = self.arrays.bytes(array)
        pointer = self.arrays.take(self.arrays.sizes.add(size, str(BOXED_BYTES)))
        for k, number in enumerate((str(len(array.dims)), *array.dims)):
            at = self.w.define(f"getelementptr i64, ptr {pointer}, i64 {k}")
            self.w.do(f"store i64 {number}, ptr {at}")
        elements = self.w.define(f"getelementptr i8, ptr {pointer}, i64 {BOXED_BYTES}")
        if scalar:
            self.arrays.store_at(array.kind, elements, slots[0])
        else:
            self.arrays.move(elements, array.pointer, size)
        return pointer

    def _fit_present(self, slots: Registers, found: Type, expected: Type, flag: str) -> Registers:
        if isinstance(found, TensorType) and isinstance(expected, TensorType):
            return self._fit_tensor(slots, found, expected, flag)
        return self.coerce(slots, found, expected)

    def _fit_tensor(
        self, slots: Registers, found: TensorType, expected: TensorType, flag: str
    ) -> Registers:
        """Sizes that are declared are checked where `flag` says that the value is there."""
        if found.shape == expected.shape or (found.shape is None and expected.shape is None):
            return slots
        if found.shape is None:
            raise UnknownTypeError(f"{found} as {expected}")
        if expected.shape is None and found.dtype == expected.dtype:
            return (self._boxed(found, slots),)
        if found.dtype != expected.dtype or found.rank != expected.rank:
            raise UnknownTypeError(f"{found} as {expected}")
        if is_scalar(found):
            return slots
        array = self.arrays.of(found, slots)
        for size, mine, wanted in zip(array.dims, found.dims, expected.dims, strict=True):
            if mine != wanted and not isinstance(wanted, Symbol):
                equal = self.arrays.sizes.equal(size, str(wanted))
                if flag != "true" and equal != "true":
                    absent = self.w.define(f"xor i1 {flag}, true")
                    equal = self.w.define(f"or i1 {equal}, {absent}")
                self.traps.check(equal, BAD_SHAPE)
        return self.arrays.slots(expected, array)
