"""Arithmetic, comparison, selection and casts of numbers in registers, with NumPy's semantics.

`ELEMENTS` says how one element of a result is computed; arrays are loops over that.
"""

from __future__ import annotations

from collections.abc import Mapping

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.emit.scalar.casting import emit_cast
from wend.backends.native.emit.scalar.element import Element, instruction
from wend.backends.native.emit.scalar.functions import FUNCTIONS
from wend.backends.native.emit.scalar.numbers import NUMBERS, magnitude
from wend.backends.native.target.kinds import Kind
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import elementwise as ops


def compare(real: str, signed: str) -> Element:
    """Return a comparison; bools compare as 0 and 1."""
    unsigned = signed.replace("s", "u", 1) if signed[0] == "s" else signed

    def emit(low: Lowering, node: Node, kind: Kind, x: str, y: str) -> str:
        predicate = f"fcmp {real}" if kind.is_real else f"icmp {signed}"
        if kind.dtype.kind in "ub":
            predicate = f"icmp {unsigned}"
        return low.w.define(f"{predicate} {kind.text} {x}, {y}")

    return Element(emit, "fiub", takes_vectors=True)


def runtime_helper(name: str) -> Element:
    """Return a function of two numbers from `codegen/arithmetic.py`."""

    def emit(low: Lowering, node: Node, kind: Kind, x: str, y: str) -> str:
        suffix = f"{'u' if kind.is_unsigned else ''}{kind.suffix}"
        type = kind.text
        return low.calls.helper(f"{name}.{suffix}", type, f"{type} {x}", f"{type} {y}")

    return Element(emit, "fiu")


def _absolute(low: Lowering, node: Node, kind: Kind, x: str) -> str:
    """Emit the absolute value."""
    if kind.is_real:
        return low.w.define(f"call {kind.text} @llvm.fabs.{kind.suffix}({kind.text} {x})")
    return magnitude(low, kind, x)


def _sign(low: Lowering, node: Node, kind: Kind, x: str) -> str:
    """Emit the sign: −1, 0 or 1."""
    w, type, flags = low.w, kind.text, kind.flags.text
    zero, one = kind.literal(0), kind.literal(1)
    if not kind.is_real:
        positive = w.define(f"icmp {'ugt' if kind.is_unsigned else 'sgt'} {type} {x}, {zero}")
        nonpositive = zero
        if not kind.is_unsigned:
            nonpositive = w.define(f"ashr {type} {x}, {kind.literal(kind.bits - 1)}")
        return w.define(f"select {flags} {positive}, {type} {one}, {type} {nonpositive}")
    # NaN stays NaN, and −0.0 becomes 0.0.
    negative = w.define(f"fcmp olt {type} {x}, {zero}")
    nonpositive = w.define(f"select {flags} {negative}, {type} {kind.literal(-1)}, {type} {zero}")
    positive = w.define(f"fcmp ogt {type} {x}, {zero}")
    sign = w.define(f"select {flags} {positive}, {type} {one}, {type} {nonpositive}")
    nan = w.define(f"fcmp uno {type} {x}, {zero}")
    return w.define(f"select {flags} {nan}, {type} {x}, {type} {sign}")


def min_or_max(real: str, signed: str, logic: str) -> Element:
    """Return the larger or the smaller of two numbers; NaN propagates."""

    def emit(low: Lowering, node: Node, kind: Kind, x: str, y: str) -> str:
        w, type = low.w, kind.text
        if kind.is_bool:
            return w.define(f"{logic} {type} {x}, {y}")
        if kind.is_integer:
            name = signed.replace("s", "u", 1) if kind.is_unsigned else signed
            return w.define(f"call {type} @llvm.{name}.{kind.suffix}({type} {x}, {type} {y})")
        is_better = w.define(f"fcmp {real} {type} {x}, {y}")
        is_nan = w.define(f"fcmp uno {type} {x}, {kind.literal(0)}")
        takes_x = w.define(f"or {kind.flags.text} {is_better}, {is_nan}")
        return w.define(f"select {kind.flags.text} {takes_x}, {type} {x}, {type} {y}")

    return Element(emit, "fiub", takes_vectors=True)


def _shift(left: bool) -> Element:
    """Return a shift, defined as in NumPy for counts that are negative or exceed the width."""

    def emit(low: Lowering, node: Node, kind: Kind, x: str, y: str) -> str:
        w, type, flags, zero = low.w, kind.text, kind.flags.text, kind.literal(0)
        is_in_range = w.define(f"icmp ult {type} {y}, {kind.literal(kind.bits)}")
        count = w.define(f"select {flags} {is_in_range}, {type} {y}, {type} {zero}")
        opcode = "shl" if left else "lshr" if kind.is_unsigned else "ashr"
        shifted = w.define(f"{opcode} {type} {x}, {count}")
        out_of_range = zero
        if opcode == "ashr":
            out_of_range = w.define(f"ashr {type} {x}, {kind.literal(kind.bits - 1)}")
        return w.define(f"select {flags} {is_in_range}, {type} {shifted}, {type} {out_of_range}")

    return Element(emit, "iu", takes_vectors=True)


def _select(low: Lowering, node: Node, kind: Kind, flag: str, x: str, y: str) -> str:
    """Emit a choice between x and y."""
    return low.w.define(f"select {kind.flags.text} {flag}, {kind.text} {x}, {kind.text} {y}")


def _cast(low: Lowering, node: Node, kind: Kind, x: str) -> str:
    """Emit a conversion to the dtype of the node."""
    return emit_cast(low.w, kind, kind.of(node.attrs["dtype"]), x)


def _intrinsic(name: str) -> Element:
    """Return an LLVM intrinsic of one operand."""
    return instruction(f"call {{t}} @llvm.{name}.{{s}}({{t}} {{x}})")


def _class_test(mask: int) -> Element:
    """Return a test of a float's class by a mask of `llvm.is.fpclass`."""

    def emit(low: Lowering, node: Node, kind: Kind, x: str) -> str:
        flags = kind.flags.text
        name = f"@llvm.is.fpclass.{kind.suffix}"
        return low.w.define(f"call {flags} {name}({kind.text} {x}, i32 {mask})")

    return Element(emit, "f", takes_vectors=True)


def _not(low: Lowering, node: Node, kind: Kind, x: str) -> str:
    """Emit the complement of all bits."""
    return low.w.define(f"xor {kind.text} {x}, {kind.literal(1 if kind.is_bool else -1)}")


ELEMENTS: Mapping[Op, Element] = {
    ops.add: instruction("fadd {t} {x}, {y}", "add {t} {x}, {y}"),
    ops.sub: instruction("fsub {t} {x}, {y}", "sub {t} {x}, {y}"),
    ops.mul: instruction("fmul {t} {x}, {y}", "mul {t} {x}, {y}"),
    ops.div: instruction("fdiv {t} {x}, {y}"),
    ops.neg: instruction("fneg {t} {x}", "sub {t} {zero}, {x}"),
    ops.reciprocal: instruction("fdiv {t} {one}, {x}"),
    ops.floor_divide: runtime_helper("floor_divide"),
    ops.remainder: runtime_helper("remainder"),
    ops.graft: Element(lambda low, node, kind, x, y: x, "f", takes_vectors=True),
    ops.abs: Element(_absolute, "fiu", takes_vectors=True),
    ops.sign: Element(_sign, "fiu", takes_vectors=True),
    ops.maximum: min_or_max("ogt", "smax", "or"),
    ops.minimum: min_or_max("olt", "smin", "and"),
    **{op: _intrinsic(op.name) for op in (ops.sqrt, ops.floor, ops.ceil, ops.trunc, ops.rint)},
    **FUNCTIONS,
    **NUMBERS,
    ops.bit_and: instruction(None, "and {t} {x}, {y}", "and {t} {x}, {y}"),
    ops.bit_or: instruction(None, "or {t} {x}, {y}", "or {t} {x}, {y}"),
    ops.bit_xor: instruction(None, "xor {t} {x}, {y}", "xor {t} {x}, {y}"),
    ops.bit_not: Element(_not, "iub", takes_vectors=True),
    ops.shift_left: _shift(left=True),
    ops.shift_right: _shift(left=False),
    ops.eq: compare("oeq", "eq"),
    ops.ne: compare("une", "ne"),
    ops.lt: compare("olt", "slt"),
    ops.le: compare("ole", "sle"),
    ops.gt: compare("ogt", "sgt"),
    ops.ge: compare("oge", "sge"),
    ops.isnan: instruction("fcmp uno {t} {x}, {zero}"),
    ops.isinf: _class_test(516),
    ops.isfinite: _class_test(504),
    ops.select: Element(_select, "fiub", takes_vectors=True),
    ops.cast: Element(_cast, "fiub", takes_vectors=True),
}


def can_widen(node: Node) -> bool:
    """Return whether LLVM can widen the instructions of an elementwise operation in a loop."""
    element = ELEMENTS.get(node.op)
    if element is None or not element.supports(node):
        return False
    return element.takes_vectors or element.loop_function is not None
