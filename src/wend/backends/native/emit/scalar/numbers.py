"""Sign bits, adjacent floats, remainders, common divisors and bit counts in registers."""

from __future__ import annotations

from collections.abc import Mapping

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.emit.scalar.element import Element, instruction
from wend.backends.native.target.kinds import Kind
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import elementwise as ops


def _bits_type(kind: Kind) -> str:
    """Return the integer type that is as wide as a float."""
    return f"i{8 * kind.dtype.itemsize}"


def _signbit(low: Lowering, node: Node, kind: Kind, x: str) -> str:
    """Emit the sign bit of a float."""
    bits = low.w.define(f"bitcast {kind.text} {x} to {_bits_type(kind)}")
    return low.w.define(f"icmp slt {_bits_type(kind)} {bits}, 0")


def _nextafter(low: Lowering, node: Node, kind: Kind, x: str, y: str) -> str:
    """Emit the next float after x towards y: its bits plus or minus one.

    From 0 it is the smallest subnormal with the sign of y.
    """
    w, type, bits = low.w, kind.text, _bits_type(kind)
    word = w.define(f"bitcast {type} {x} to {bits}")
    is_up = w.define(f"fcmp olt {type} {x}, {y}")
    is_positive = w.define(f"fcmp ogt {type} {x}, {kind.literal(0)}")
    grows = w.define(f"icmp eq i1 {is_up}, {is_positive}")
    step = w.define(f"select i1 {grows}, {bits} 1, {bits} -1")
    neighbor = w.define(f"bitcast {bits} {w.define(f'add {bits} {word}, {step}')} to {type}")
    smallest = w.define(f"bitcast {bits} 1 to {type}")
    from_zero = w.define(f"call {type} @llvm.copysign.{kind.suffix}({type} {smallest}, {type} {y})")
    is_zero = w.define(f"fcmp oeq {type} {x}, {kind.literal(0)}")
    candidate = w.define(f"select i1 {is_zero}, {type} {from_zero}, {type} {neighbor}")
    is_same = w.define(f"fcmp oeq {type} {x}, {y}")
    result = w.define(f"select i1 {is_same}, {type} {y}, {type} {candidate}")
    is_nan = w.define(f"fcmp uno {type} {x}, {y}")
    return w.define(
        f"select i1 {is_nan}, {type} {w.define(f'fadd {type} {x}, {y}')}, {type} {result}"
    )


def _fmod_int(low: Lowering, node: Node, kind: Kind, x: str, y: str) -> str:
    """Emit the remainder with the sign of x; for divisors 0 and −1 it is 0.

    LLVM leaves both undefined.
    """
    w, type = low.w, kind.text
    is_undefined = w.define(f"icmp eq {type} {y}, 0")
    if not kind.is_unsigned:
        is_undefined = w.define(f"or i1 {is_undefined}, {w.define(f'icmp eq {type} {y}, -1')}")
    divisor = w.define(f"select i1 {is_undefined}, {type} 1, {type} {y}")
    return w.define(f"{'urem' if kind.is_unsigned else 'srem'} {type} {x}, {divisor}")


def magnitude(low: Lowering, kind: Kind, x: str) -> str:
    """Emit the absolute value as an unsigned integer."""
    if kind.is_unsigned:
        return x
    return low.w.define(f"call {kind.text} @llvm.abs.{kind.suffix}({kind.text} {x}, i1 false)")


def _gcd(low: Lowering, node: Node, kind: Kind, x: str, y: str) -> str:
    """Emit the greatest common divisor."""
    x, y = (magnitude(low, kind, v) for v in (x, y))
    type = kind.text
    return low.calls.helper(f"gcd.u{kind.suffix}", type, f"{type} {x}, {type} {y}")


def _lcm(low: Lowering, node: Node, kind: Kind, x: str, y: str) -> str:
    """Emit the least common multiple."""
    x, y = (magnitude(low, kind, v) for v in (x, y))
    type, w = kind.text, low.w
    gcd = low.calls.helper(f"gcd.u{kind.suffix}", type, f"{type} {x}, {type} {y}")
    is_zero = w.define(f"icmp eq {type} {gcd}, 0")
    divisor = w.define(f"select i1 {is_zero}, {type} 1, {type} {gcd}")
    return w.define(f"mul {type} {w.define(f'udiv {type} {x}, {divisor}')}, {y}")


def _bit_count(low: Lowering, node: Node, kind: Kind, x: str) -> str:
    """Emit the number of ones in the absolute value."""
    type = kind.text
    size = magnitude(low, kind, x)
    count = low.w.define(f"call {type} @llvm.ctpop.{kind.suffix}({type} {size})")
    return count if type == "i8" else low.w.define(f"trunc {type} {count} to i8")


def _mul_high(low: Lowering, node: Node, kind: Kind, x: str, y: str) -> str:
    """Emit the upper half of a product: of 128 bits, or in a vector by products of halves."""
    w, type = low.w, kind.text
    if kind.lanes == 1:
        wide = [w.define(f"zext i64 {v} to i128") for v in (x, y)]
        product = w.define(f"mul i128 {wide[0]}, {wide[1]}")
        return w.define(f"trunc i128 {w.define(f'lshr i128 {product}, 64')} to i64")
    half, mask = kind.literal(32), kind.literal(2**32 - 1)

    def lower(v: str) -> str:
        return w.define(f"and {type} {v}, {mask}")

    def upper(v: str) -> str:
        return w.define(f"lshr {type} {v}, {half}")

    def product_of(a: str, b: str) -> str:
        return w.define(f"mul {type} {a}, {b}")

    def total(a: str, b: str) -> str:
        return w.define(f"add {type} {a}, {b}")

    (x_low, y_low), (x_high, y_high) = (lower(x), lower(y)), (upper(x), upper(y))
    middle = total(product_of(x_high, y_low), upper(product_of(x_low, y_low)))
    carry = upper(total(product_of(x_low, y_high), lower(middle)))
    return total(total(product_of(x_high, y_high), upper(middle)), carry)


NUMBERS: Mapping[Op, Element] = {
    ops.signbit: Element(_signbit, "f"),
    ops.nextafter: Element(_nextafter, "f"),
    ops.fmod: instruction("frem {t} {x}, {y}"),
    ops.fmod_int: Element(_fmod_int, "iu"),
    ops.gcd: Element(_gcd, "iu"),
    ops.lcm: Element(_lcm, "iu"),
    ops.mul_high: Element(_mul_high, "u", takes_vectors=True),
    ops.bit_count: Element(_bit_count, "iu"),
}
