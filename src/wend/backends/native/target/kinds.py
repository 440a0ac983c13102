"""Element kinds: a dtype and a vector width, and the LLVM types they map to."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from wend.base.lazy.dataclass import dataclass
from wend.ir.dtypes import BOOL, FLOAT64, INT64

FLOAT32 = np.dtype(np.float32)

# LLVM register types by dtype. Other dtypes (f16, complex) live in memory only; in loop nests
# complex elements are pairs of registers.
REGISTERS = {
    BOOL: "i1",
    FLOAT64: "double",
    FLOAT32: "float",
    **{np.dtype(f"{sign}{size}"): f"i{8 * size}" for sign in "iu" for size in (1, 2, 4, 8)},
}
# The LLVM types of the parts of complex numbers
PARTS = {np.dtype(np.complex64): "float", np.dtype(np.complex128): "double"}
# Placeholder literals for the registers of an absent value
ABSENT_LITERALS = {"double": "0.0", "float": "0.0", "i1": "false", "ptr": "null"}


@dataclass(frozen=True, slots=True)
class Kind:
    """Numbers of one dtype, `lanes` of them in a vector."""

    dtype: np.dtype
    lanes: int = 1

    @property
    def element(self) -> str:
        """The LLVM type of one lane."""
        return REGISTERS[self.dtype]

    @property
    def text(self) -> str:
        """The LLVM type of the scalar or the whole vector."""
        return self.element if self.lanes == 1 else f"<{self.lanes} x {self.element}>"

    @property
    def suffix(self) -> str:
        """The type suffix of intrinsic names: `f64`, `v8f64`."""
        element_suffix = {"double": "f64", "float": "f32"}.get(self.element, self.element)
        return element_suffix if self.lanes == 1 else f"v{self.lanes}{element_suffix}"

    @property
    def is_real(self) -> bool:
        return self.dtype.kind == "f"

    @property
    def is_bool(self) -> bool:
        return self.dtype.kind == "b"

    @property
    def is_integer(self) -> bool:
        return self.dtype.kind in "iu"

    @property
    def is_unsigned(self) -> bool:
        return self.dtype.kind == "u"

    @property
    def bits(self) -> int:
        return 1 if self.is_bool else 8 * self.dtype.itemsize

    def literal(self, value: Any) -> str:
        """Return a constant that LLVM reads back exactly, splatted across the lanes."""
        scalar = scalar_literal(value, self.dtype)
        return scalar if self.lanes == 1 else f"splat ({self.element} {scalar})"

    def of(self, dtype: np.dtype) -> Kind:
        """Return the kind of another dtype with the same number of lanes."""
        return Kind(dtype, self.lanes)

    @property
    def scalar(self) -> Kind:
        """The kind of one lane."""
        return Kind(self.dtype)

    @property
    def flags(self) -> Kind:
        """The kind of bools with the same number of lanes."""
        return self.of(BOOL)


WORD = Kind(INT64)


def scalar_literal(value: Any, dtype: np.dtype) -> str:
    """Return a number as a literal that LLVM reads back exactly.

    LLVM writes f32 literals with the bits of the f64 of the same value.
    """
    match dtype.kind:
        case "f":
            (bits,) = struct.unpack("<Q", struct.pack("<d", float(value)))
            return f"0x{bits:016X}"
        case "b":
            return "true" if value else "false"
    return str(int(value))


def memory_type(register: str) -> str:
    """Return the type in memory of a value with this register type."""
    return "i8" if register == "i1" else register
