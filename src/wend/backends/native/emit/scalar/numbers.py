"""Signs, neighbours, remainders and divisors of numbers in registers."""

from __future__ import annotations

from collections.abc import Mapping

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.emit.scalar.element import Element
from wend.backends.native.target.kinds import Kind
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import elementwise as ops


def _bits(kind: Kind) -> str:
    """The integers of the size of a real."""
    return f"i{8 * kind.dtype.itemsize}"


def _signbit(low: Lowering, node: Node, kind: Kind, x: str) -> str:
    bits = low.w.define(f"bitcast {kind.text} {x} to {_bits(kind)}")
    return low.w.define(f"icmp slt {_bits(kind)} {bits}, 0")


def _nextafter(low: Lowering, node: Node, kind: Kind, x: str, y: str) -> str:
    """The bits one up or down; from 0 the least number with the other's sign."""
    w, type, bits = low.w, kind.text, _bits(kind)
    word = w.define(f"bitcast {type} {x} to {bits}")
    is_up = w.define(f"fcmp olt {type} {x}, {y}")
    is_positive = w.define(f"fcmp ogt {type} {x}, {kind.literal(0)}")
    grows = w.define(f"icmp eq i1 {is_up}, {is_positive}")
    by = w.define(f"select i1 {grows}, {bits} 1, {bits} -1")
    moved = w.define(f"bitcast {bits} {w.define(f'add {bits} {word}, {by}')} to {type}")
    least = w.define(f"bitcast {bits} 1 to {type}")
    signed = w.define(f"call {type} @llvm.copysign.{kind.suffix}({type} {least}, {type} {y})")
    is_zero = w.define(f"fcmp oeq {type} {x}, {kind.literal(0)}")
    near = w.define(f"select i1 {is_zero}, {type} {signed}, {type} {moved}")
    is_same = w.define(f"fcmp oeq {type} {x}, {y}")
    found = w.define(f"select i1 {is_same}, {type} {y}, {type} {near}")
    is_nan = w.define(f"fcmp uno {type} {x}, {y}")
    return w.define(
        f"select i1 {is_nan}, {type} {w.define(f'fadd {type} {x}, {y}')}, {type} {found}"
    )


def _fmod(low: Lowering, node: Node, kind: Kind, x: str, y: str) -> str:
    return low.w.define(f"frem {kind.text} {x}, {y}")


def _fmod_int(low: Lowering, node: Node, kind: Kind, x: str, y: str) -> str:
    """The remainder with the sign of x; by 0 and −1, of which LLVM knows nothing, it is 0."""
    w, type = low.w, kind.text
    odd = w.define(f"icmp eq {type} {y}, 0")
    if not kind.is_unsigned:
        odd = w.define(f"or i1 {odd}, {w.define(f'icmp eq {type} {y}, -1')}")
    divisor = w.define(f"select i1 {odd}, {type} 1, {type} {y}")
    return w.define(f"{'urem' if kind.is_unsigned else 'srem'} {type} {x}, {divisor}")


def _magnitude(low: Lowering, kind: Kind, x: str) -> str:
    """The absolute value, as an unsigned integer."""
    if kind.is_unsigned:
        return x
    return low.w.define(f"call {kind.text} @llvm.abs.{kind.suffix}({kind.text} {x}, i1 false)")


def _gcd(low: Lowering, node: Node, kind: Kind, x: str, y: str) -> str:
    x, y = (_magnitude(low, kind, v) for v in (x, y))
    type = kind.text
    return low.calls.helper(f"gcd.u{kind.suffix}", type, f"{type} {x}, {type} {y}")


def _lcm(low: Lowering, node: Node, kind: Kind, x: str, y: str) -> str:
    x, y = (_magnitude(low, kind, v) for v in (x, y))
    type, w = kind.text, low.w
    found = low.calls.helper(f"gcd.u{kind.suffix}", type, f"{type} {x}, {type} {y}")
    none = w.define(f"icmp eq {type} {found}, 0")
    divisor = w.define(f"select i1 {none}, {type} 1, {type} {found}")
    return w.define(f"mul {type} {w.define(f'udiv {type} {x}, {divisor}')}, {y}")


def _bit_count(low: Lowering, node: Node, kind: Kind, x: str) -> str:
    type = kind.text
    size = _magnitude(low, kind, x)
    count = low.w.define(f"call {type} @llvm.ctpop.{kind.suffix}({type} {size})")
    return count if type == "i8" else low.w.define(f"trunc {type} {count} to i8")


NUMBERS: Mapping[Op, Element] = {
    ops.signbit: Element(_signbit, "f"),
    ops.nextafter: Element(_nextafter, "f"),
    ops.fmod: Element(_fmod, "f"),
    ops.fmod_int: Element(_fmod_int, "iu"),
    ops.gcd: Element(_gcd, "iu"),
    ops.lcm: Element(_lcm, "iu"),
    ops.bit_count: Element(_bit_count, "iu"),
}
