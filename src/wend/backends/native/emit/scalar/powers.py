"""Powers to known exponents: a few multiplications, a root, a reciprocal, within 2 ulp.

`pow` computes a logarithm and an exponential. Roots and reciprocals are exact to half a unit in the
last place; where they are multiplied, a fused multiply–add computes what rounding has lost. Zeros,
infinities, NaN and subnormals come out as from `pow`: the formulas overflow and underflow only
where the power does, and what a correction makes NaN of is left uncorrected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from wend.backends.native.target.kinds import Kind
from wend.backends.native.target.writer import Writer
from wend.base.lazy.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class _Instructions:
    """Instructions on numbers of one kind."""

    w: Writer
    kind: Kind

    def number(self, value: float) -> str:
        return self.kind.literal(value)

    def times(self, x: str, y: str) -> str:
        return self.w.define(f"fmul {self.kind.text} {x}, {y}")

    def plus(self, x: str, y: str) -> str:
        return self.w.define(f"fadd {self.kind.text} {x}, {y}")

    def reciprocal(self, x: str) -> str:
        return self.w.define(f"fdiv {self.kind.text} {self.number(1)}, {x}")

    def negated(self, x: str) -> str:
        return self.w.define(f"fneg {self.kind.text} {x}")

    def fma(self, x: str, y: str, z: str) -> str:
        """Emit x y + z, rounded once."""
        return self._call("fma", x, y, z)

    def root(self, x: str) -> str:
        """Emit the root of x, which is infinite at −∞, as powers are."""
        bound = self.number(-float("inf"))
        is_lowest = self.w.define(f"fcmp oeq {self.kind.text} {x}, {bound}")
        x = self.select(is_lowest, self.number(float("inf")), x)
        return self.absolute(self._call("sqrt", x))

    def absolute(self, x: str) -> str:
        return self._call("fabs", x)

    def copysign(self, x: str, sign: str) -> str:
        return self._call("copysign", x, sign)

    def select(self, flag: str, yes: str, no: str) -> str:
        return self.w.define(f"select i1 {flag}, {self.kind.text} {yes}, {self.kind.text} {no}")

    def unless_nan(self, corrected: str, rounded: str) -> str:
        """Emit a corrected number; if it is NaN, the number before its correction."""
        is_number = self.w.define(f"fcmp ord {self.kind.text} {corrected}, {corrected}")
        return self.select(is_number, corrected, rounded)

    def _call(self, name: str, *operands: str) -> str:
        arguments = ", ".join(f"{self.kind.text} {x}" for x in operands)
        return self.w.define(f"call {self.kind.text} @llvm.{name}.{self.kind.suffix}({arguments})")


_Emit: TypeAlias = Callable[[_Instructions, str], str]


def _cube(a: _Instructions, x: str) -> str:
    return a.times(a.times(x, x), x)


def _fourth(a: _Instructions, x: str) -> str:
    square = a.times(x, x)
    lost = a.fma(x, x, a.negated(square))
    twice = a.plus(lost, lost)
    corrected = a.fma(square, square, a.times(square, twice))
    power = a.times(square, square)
    is_finite = a.w.define(f"fcmp olt {a.kind.text} {power}, {a.number(float('inf'))}")
    return a.select(is_finite, corrected, power)


def _inverse_square(a: _Instructions, x: str) -> str:
    inverse = a.reciprocal(x)
    power = a.times(inverse, inverse)
    error = a.fma(a.negated(inverse), x, a.number(1))  # the inverse is off by this part of it
    return a.unless_nan(a.fma(a.plus(error, error), power, power), power)


def _three_halves(a: _Instructions, x: str) -> str:
    return a.times(a.absolute(x), a.root(x))


def _five_halves(a: _Instructions, x: str) -> str:
    return a.times(a.times(x, x), a.root(x))


def _inverse_root(a: _Instructions, x: str) -> str:
    return a.reciprocal(a.root(x))


def _repeated_product(a: _Instructions, x: str, count: int) -> tuple[str, str]:
    """Emit x to the power of a count ≥ 2, and what rounding has lost of it."""
    power = a.times(x, x)
    lost = a.fma(x, x, a.negated(power))
    for _ in range(count - 2):
        power, before = a.times(power, x), power
        lost = a.fma(lost, x, a.fma(before, x, a.negated(power)))
    return power, lost


def _inverse_cube(a: _Instructions, x: str) -> str:
    inverse = a.reciprocal(x)
    power, lost = _repeated_product(a, inverse, 3)
    # The inverse is off by this part of it, hence the power by three times that.
    error = a.fma(a.negated(inverse), x, a.number(1))
    correction = a.fma(a.times(error, a.number(3)), power, lost)
    return a.copysign(a.unless_nan(a.plus(power, correction), power), x)  # of zeros


def _inverse_halves(count: int) -> _Emit:
    """Return the emitter of an odd power of the inverse root."""

    def emit(a: _Instructions, x: str) -> str:
        inverse_root = _inverse_root(a, x)
        inverse, inverse_lost = _repeated_product(a, inverse_root, 2)
        power, lost = _repeated_product(a, inverse_root, count)
        # The inverse is off by this part of it, hence the power by `count / 2` times that.
        error = a.fma(a.negated(inverse), x, a.number(1))
        error = a.fma(a.negated(inverse_lost), x, error)
        correction = a.fma(a.times(error, a.number(count / 2)), power, lost)
        return a.unless_nan(a.plus(power, correction), power)

    return emit


# Exponents that are common in programs, and those of their derivatives
_POWERS: Mapping[float, _Emit] = {
    -3.0: _inverse_cube,
    -2.5: _inverse_halves(5),
    -2.0: _inverse_square,
    -1.5: _inverse_halves(3),
    -1.0: _Instructions.reciprocal,
    -0.5: _inverse_root,
    1.5: _three_halves,
    2.5: _five_halves,
    3.0: _cube,
    4.0: _fourth,
}


def known_power(w: Writer, kind: Kind, x: str, exponent: str) -> str | None:
    """Emit x to the power of a literal; None if its power needs `pow`."""
    for number, emit in _POWERS.items():
        if exponent == kind.literal(number):
            return emit(_Instructions(w, kind), x)
    return None


def power_of_number(w: Writer, kind: Kind, x: str, y: str, power: str) -> str:
    """Emit x ** y as NumPy computes it for an exponent that is a number; `power`: what `pow` gives.

    An exponent of 0.5 takes the square root, which differs from `pow` at −0.0 and −inf.
    """
    type, flags = kind.text, kind.flags.text
    is_half = w.define(f"fcmp oeq {type} {y}, {kind.literal(0.5)}")
    is_two = w.define(f"fcmp oeq {type} {y}, {kind.literal(2.0)}")
    root = w.define(f"call {type} @llvm.sqrt.{kind.suffix}({type} {x})")
    square = w.define(f"fmul {type} {x}, {x}")
    chosen = w.define(f"select {flags} {is_two}, {type} {square}, {type} {power}")
    return w.define(f"select {flags} {is_half}, {type} {root}, {type} {chosen}")
