"""The two floating-point formats of the mathematical functions, bit by bit."""

from __future__ import annotations

import struct

from wend.base.lazy.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Format:
    """A binary format of IEEE 754.

    Attributes:
        name: the suffix of intrinsics, such as `f64`.
        real: the LLVM type.
        width: the bits of a number.
        digits: the bits of the fraction.
    """

    name: str
    real: str
    width: int
    digits: int

    @property
    def bias(self) -> int:
        """The exponent bias, which is also the highest exponent."""
        return int(2 ** (self.width - self.digits - 2)) - 1

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    @property
    def epsilon(self) -> float:
        """The bound below which expm1 x rounds to x."""
        return 2.0 ** -(self.digits + 2)

    @property
    def magic(self) -> float:
        """The number whose addition and subtraction rounds to the nearest integer.

        After the addition the low bits of the sum are the integer in two's complement.
        """
        return float(1.5 * 2.0**self.digits)

    @property
    def magic_bits(self) -> int:
        return self.bits(self.magic)

    def element(self, kind: str) -> str:
        """Return the LLVM type of a real, of a word with its bits, or of a flag."""
        return {"real": self.real, "word": f"i{self.width}", "flag": "i1"}[kind]

    def round(self, value: float) -> float:
        """Return the nearest number of this format."""
        return value if self.width == 64 else float(struct.unpack("f", struct.pack("f", value))[0])

    def bits(self, value: float) -> int:
        """Return the bits of a number as a signed integer."""
        real, word = ("<d", "<q") if self.width == 64 else ("<f", "<i")
        return int(struct.unpack(word, struct.pack(real, value))[0])

    def literal(self, value: float) -> str:
        """Return the literal that LLVM parses exactly; f32, too, is written as f64."""
        return f"0x{bits_of(self.round(value)) % 2**64:016X}"


def bits_of(value: float) -> int:
    """Return the bits of a double as a signed 64-bit integer."""
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def double_of(bits: int) -> float:
    """Return the double with these bits."""
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])


F64 = Format("f64", "double", 64, 52)
F32 = Format("f32", "float", 32, 23)
