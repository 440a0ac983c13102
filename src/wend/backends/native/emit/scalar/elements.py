"""Arithmetic, comparison, choice and conversion of numbers in registers, with NumPy's meaning.

`ELEMENTS` says how one element of a result is computed; arrays are loops of that.
"""

from __future__ import annotations

from collections.abc import Mapping

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.emit.scalar.casting import write_cast
from wend.backends.native.emit.scalar.element import Element
from wend.backends.native.emit.scalar.functions import FUNCTIONS
from wend.backends.native.emit.scalar.numbers import NUMBERS
from wend.backends.native.target.kinds import Kind
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import elementwise as ops


def template(
    real: str | None = None, integer: str | None = None, flag: str | None = None
) -> Element:
    """One instruction, with {t} for the type, {s} for its suffix, {x} and {y} for operands."""
    texts = {"f": real, "i": integer, "u": integer, "b": flag}

    def write(low: Lowering, node: Node, kind: Kind, *given: str) -> str:
        text = texts[kind.dtype.kind]
        assert text is not None
        x, y = given[0], given[-1]
        return low.w.define(text.format(t=kind.text, s=kind.suffix, x=x, y=y))

    return Element(write, "".join(k for k, text in texts.items() if text is not None))


def compare(real: str, signed: str) -> Element:
    """A comparison; those of bools are of 0 and 1."""
    unsigned = signed.replace("s", "u", 1) if signed[0] == "s" else signed

    def write(low: Lowering, node: Node, kind: Kind, x: str, y: str) -> str:
        how = f"fcmp {real}" if kind.is_real else f"icmp {signed}"
        if kind.dtype.kind in "ub":
            how = f"icmp {unsigned}"
        return low.w.define(f"{how} {kind.text} {x}, {y}")

    return Element(write, "fiub")


def helper(name: str) -> Element:
    """A function of two numbers, from `arithmetic.py`."""

    def write(low: Lowering, node: Node, kind: Kind, x: str, y: str) -> str:
        short = f"{'u' if kind.is_unsigned else ''}{kind.suffix}"
        type = kind.text
        return low.calls.helper(f"{name}.{short}", type, f"{type} {x}", f"{type} {y}")

    return Element(write, "fiu")


def _absolute(low: Lowering, node: Node, kind: Kind, x: str) -> str:
    if kind.is_real:
        return low.w.define(f"call {kind.text} @llvm.fabs.{kind.suffix}({kind.text} {x})")
    if kind.is_unsigned:
        return x
    return low.w.define(f"call {kind.text} @llvm.abs.{kind.suffix}({kind.text} {x}, i1 false)")


def _sign(low: Lowering, node: Node, kind: Kind, x: str) -> str:
    w, type, flags = low.w, kind.text, kind.flags.text
    zero, one = kind.literal(0), kind.literal(1)
    if not kind.is_real:
        positive = w.define(f"icmp {'ugt' if kind.is_unsigned else 'sgt'} {type} {x}, {zero}")
        rest = zero
        if not kind.is_unsigned:
            rest = w.define(f"ashr {type} {x}, {kind.literal(kind.bits - 1)}")
        return w.define(f"select {flags} {positive}, {type} {one}, {type} {rest}")
    # NaN stays, and −0.0 becomes 0.0.
    negative = w.define(f"fcmp olt {type} {x}, {zero}")
    rest = w.define(f"select {flags} {negative}, {type} {kind.literal(-1)}, {type} {zero}")
    positive = w.define(f"fcmp ogt {type} {x}, {zero}")
    sign = w.define(f"select {flags} {positive}, {type} {one}, {type} {rest}")
    nan = w.define(f"fcmp uno {type} {x}, {zero}")
    return w.define(f"select {flags} {nan}, {type} {x}, {type} {sign}")


def extreme(real: str, signed: str, logic: str) -> Element:
    """The larger or smaller; NaN wins."""

    def write(low: Lowering, node: Node, kind: Kind, x: str, y: str) -> str:
        w, type = low.w, kind.text
        if kind.is_bool:
            return w.define(f"{logic} {type} {x}, {y}")
        if kind.is_integer:
            name = signed.replace("s", "u", 1) if kind.is_unsigned else signed
            return w.define(f"call {type} @llvm.{name}.{kind.suffix}({type} {x}, {type} {y})")
        better = w.define(f"fcmp {real} {type} {x}, {y}")
        nan = w.define(f"fcmp uno {type} {x}, {kind.literal(0)}")
        first = w.define(f"or {kind.flags.text} {better}, {nan}")
        return w.define(f"select {kind.flags.text} {first}, {type} {x}, {type} {y}")

    return Element(write, "fiub")


def _shift(left: bool) -> Element:
    """A shift; by more bits than there are, and by negative numbers, as NumPy has it."""

    def write(low: Lowering, node: Node, kind: Kind, x: str, y: str) -> str:
        w, type, flags, zero = low.w, kind.text, kind.flags.text, kind.literal(0)
        inside = w.define(f"icmp ult {type} {y}, {kind.literal(kind.bits)}")
        by = w.define(f"select {flags} {inside}, {type} {y}, {type} {zero}")
        opcode = "shl" if left else "lshr" if kind.is_unsigned else "ashr"
        shifted = w.define(f"{opcode} {type} {x}, {by}")
        rest = zero
        if opcode == "ashr":
            rest = w.define(f"ashr {type} {x}, {kind.literal(kind.bits - 1)}")
        return w.define(f"select {flags} {inside}, {type} {shifted}, {type} {rest}")

    return Element(write, "iu")


def _select(low: Lowering, node: Node, kind: Kind, flag: str, x: str, y: str) -> str:
    return low.w.define(f"select {kind.flags.text} {flag}, {kind.text} {x}, {kind.text} {y}")


def _cast(low: Lowering, node: Node, kind: Kind, x: str) -> str:
    return write_cast(low.w, kind, kind.of(node.attrs["dtype"]), x)


def _intrinsic(name: str) -> Element:
    return template(f"call {{t}} @llvm.{name}.{{s}}({{t}} {{x}})")


def _class_test(mask: int) -> Element:
    def write(low: Lowering, node: Node, kind: Kind, x: str) -> str:
        flags = kind.flags.text
        name = f"@llvm.is.fpclass.{kind.suffix}"
        return low.w.define(f"call {flags} {name}({kind.text} {x}, i32 {mask})")

    return Element(write, "f")


def _negative(low: Lowering, node: Node, kind: Kind, x: str) -> str:
    if kind.is_real:
        return low.w.define(f"fneg {kind.text} {x}")
    return low.w.define(f"sub {kind.text} {kind.literal(0)}, {x}")


def _reciprocal(low: Lowering, node: Node, kind: Kind, x: str) -> str:
    return low.w.define(f"fdiv {kind.text} {kind.literal(1.0)}, {x}")


def _not(low: Lowering, node: Node, kind: Kind, x: str) -> str:
    return low.w.define(f"xor {kind.text} {x}, {kind.literal(1 if kind.is_bool else -1)}")


def _is_nan(low: Lowering, node: Node, kind: Kind, x: str) -> str:
    return low.w.define(f"fcmp uno {kind.text} {x}, {kind.literal(0.0)}")


ELEMENTS: Mapping[Op, Element] = {
    ops.add: template("fadd {t} {x}, {y}", "add {t} {x}, {y}"),
    ops.sub: template("fsub {t} {x}, {y}", "sub {t} {x}, {y}"),
    ops.mul: template("fmul {t} {x}, {y}", "mul {t} {x}, {y}"),
    ops.div: template("fdiv {t} {x}, {y}"),
    ops.neg: Element(_negative, "fiu"),
    ops.reciprocal: Element(_reciprocal, "f"),
    ops.floor_divide: helper("floor_divide"),
    ops.remainder: helper("remainder"),
    ops.abs: Element(_absolute, "fiu"),
    ops.sign: Element(_sign, "fiu"),
    ops.maximum: extreme("ogt", "smax", "or"),
    ops.minimum: extreme("olt", "smin", "and"),
    **{op: _intrinsic(op.name) for op in (ops.sqrt, ops.floor, ops.ceil, ops.trunc, ops.rint)},
    **FUNCTIONS,
    **NUMBERS,
    ops.bit_and: template(None, "and {t} {x}, {y}", "and {t} {x}, {y}"),
    ops.bit_or: template(None, "or {t} {x}, {y}", "or {t} {x}, {y}"),
    ops.bit_xor: template(None, "xor {t} {x}, {y}", "xor {t} {x}, {y}"),
    ops.bit_not: Element(_not, "iub"),
    ops.shift_left: _shift(left=True),
    ops.shift_right: _shift(left=False),
    ops.eq: compare("oeq", "eq"),
    ops.ne: compare("une", "ne"),
    ops.lt: compare("olt", "slt"),
    ops.le: compare("ole", "sle"),
    ops.gt: compare("ogt", "sgt"),
    ops.ge: compare("oge", "sge"),
    ops.isnan: Element(_is_nan, "f"),
    ops.isinf: _class_test(516),
    ops.isfinite: _class_test(504),
    ops.select: Element(_select, "fiub"),
    ops.cast: Element(_cast, "fiub"),
}
