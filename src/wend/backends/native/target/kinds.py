"""How numbers are computed with: a dtype, and how many of them at once, as LLVM types."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from wend.ir.dtypes import BOOL, FLOAT64, INT64

FLOAT32 = np.dtype(np.float32)

# What a register holds; other dtypes (f16, complex) live in memory only.
REGISTERS = {
    BOOL: "i1",
    FLOAT64: "double",
    FLOAT32: "float",
    **{np.dtype(f"{sign}{size}"): f"i{8 * size}" for sign in "iu" for size in (1, 2, 4, 8)},
}
# What an absent value holds
NOTHING = {"double": "0.0", "float": "0.0", "i1": "false", "ptr": "null"}


@dataclass(frozen=True, slots=True)
class Kind:
    """Numbers of a dtype, `lanes` of them side by side."""

    dtype: np.dtype
    lanes: int = 1

    @property
    def element(self) -> str:
        """The LLVM type of one."""
        return REGISTERS[self.dtype]

    @property
    def text(self) -> str:
        """The LLVM type of all."""
        return self.element if self.lanes == 1 else f"<{self.lanes} x {self.element}>"

    @property
    def suffix(self) -> str:
        """What names of intrinsics end in: `f64`, `v8f64`."""
        short = {"double": "f64", "float": "f32"}.get(self.element, self.element)
        return short if self.lanes == 1 else f"v{self.lanes}{short}"

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
        """A constant, to the last bit."""
        one = scalar_literal(value, self.dtype)
        return one if self.lanes == 1 else f"splat ({self.element} {one})"

    def of(self, dtype: np.dtype) -> Kind:
        """As many of another dtype."""
        return Kind(dtype, self.lanes)

    @property
    def flags(self) -> Kind:
        """As many bools."""
        return self.of(BOOL)


WORD = Kind(INT64)


def scalar_literal(value: Any, dtype: np.dtype) -> str:
    """A number of a dtype the way LLVM reads it back exactly; it writes f32 as f64, too."""
    match dtype.kind:
        case "f":
            (bits,) = struct.unpack("<Q", struct.pack("<d", float(value)))
            return f"0x{bits:016X}"
        case "b":
            return "true" if value else "false"
    return str(int(value))


def stored(register: str) -> str:
    """The type in memory of what is in a register."""
    return "i8" if register == "i1" else register
