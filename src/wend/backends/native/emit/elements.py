"""Arithmetic, comparison, choice and conversion of numbers in registers, with NumPy's meaning.

`ELEMENTS` says how one element of a result is computed; arrays are loops of that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from wend.backends.native.emit.casting import write_cast
from wend.backends.native.kinds import FLOAT32, REGISTERS, Kind
from wend.backends.native.lowering import Lowering
from wend.backends.native.slots import is_scalar
from wend.ir.dtypes import FLOAT64
from wend.ir.graph import Node, Value
from wend.ir.op import Op
from wend.ir.types import TensorType
from wend.ops import elementwise as ops
from wend.ops import shaping, special

MOST_UNROLLED = 8  # trips of a loop that LLVM unrolls
# (low, node, kind of the operands, operands) -> result; of `select` the kind of the choices
Write: TypeAlias = Callable[..., str]


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Element:
    """How one element is computed, and for which kinds of dtype (`"fiub"`)."""

    write: Write
    kinds: str

    def takes(self, node: Node) -> bool:
        """Whether it can compute what a node does."""
        dtypes = [value.tensor.dtype for value in (*node.operands, *node.results)]
        return kind_of(node).dtype.kind in self.kinds and all(d in REGISTERS for d in dtypes)


def kind_of(node: Node) -> Kind:
    """The kind of the operands; of the choices, for `select`."""
    return Kind(node.operands[-1].tensor.dtype)


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


def _in_double(compute: Callable[[Lowering, Kind, Sequence[str]], str]) -> Element:
    """A function that is computed in f64, also of f32."""

    def write(low: Lowering, node: Node, kind: Kind, *given: str) -> str:
        wide = kind.of(FLOAT64)
        if kind.dtype == FLOAT32:
            given = tuple(low.w.define(f"fpext {kind.text} {x} to {wide.text}") for x in given)
        found = compute(low, wide, given)
        if kind.dtype == FLOAT32:
            found = low.w.define(f"fptrunc {wide.text} {found} to {kind.text}")
        return found

    return Element(write, "f")


def inlined(name: str) -> Element:
    """A function of reals that is written in IR, in `math.py`, for scalars and for loops."""
    return _function(name, _alone(name))


def _alone(name: str) -> Element:
    """A function of one real, made for who waits for it."""
    return _in_double(lambda low, kind, given: low.calls.inlined(name, kind, *given))


def looped(name: str) -> Element:
    """A function of reals that is written in IR for loops; one number does as well there."""
    return Element(lambda low, node, kind, *given: low.calls.in_loop(name, kind, *given), "f")


def from_libm(name: str) -> Element:
    """A function of reals that is written in IR for loops; of scalars, the C library's."""
    return _function(name, _in_double(lambda low, kind, given: low.calls.from_libm(name, *given)))


def _function(name: str, alone: Element) -> Element:
    """A function of `math.py` in loops over arrays, and `alone` of scalars."""

    def write(low: Lowering, node: Node, kind: Kind, *given: str) -> str:
        if is_scalar(node.results[0].type):
            return alone.write(low, node, kind, *given)
        return low.calls.in_loop(name, kind, *given)

    return Element(write, "f")


def helper(name: str) -> Element:
    """A function of two numbers, from `arithmetic.py`."""

    def write(low: Lowering, node: Node, kind: Kind, x: str, y: str) -> str:
        short = f"{'u' if kind.is_unsigned else ''}{kind.suffix}"
        type = kind.text
        return low.calls.helper(f"{name}.{short}", type, f"{type} {x}", f"{type} {y}")

    return Element(write, "fiu")


def wave(name: str) -> Element:
    """Sine or cosine; where a region wants both of one number they are computed together."""
    index = ("sin", "cos").index(name)
    alone, many = _alone(name), inlined(name)

    def write(low: Lowering, node: Node, kind: Kind, x: str) -> str:
        (operand,) = node.operands
        if not is_scalar(operand.type):
            # LLVM makes no vectors of loops that it unrolls: each element would cost a call
            return (alone if _is_unrolled(operand.tensor) else many).write(low, node, kind, x)
        if operand not in low.waves or kind.dtype != FLOAT64:
            return alone.write(low, node, kind, x)
        pair = low.waves[operand]
        if pair is None:
            pair = low.waves[operand] = both_waves(low, kind, x)
        return pair[index]

    return Element(write, "f")


def _is_unrolled(type: TensorType) -> bool:
    dims = [dim for dim in type.dims if isinstance(dim, int)]
    return len(dims) == len(type.dims) and math.prod(dims) <= MOST_UNROLLED


def both_waves(low: Lowering, kind: Kind, x: str) -> tuple[str, str]:
    """Sine and cosine of f64, of any lanes."""
    name = "sincos" if kind.lanes == 1 else f"sincos.v{kind.lanes}"
    low.calls.math.add(name)
    pair = f"{{ {kind.text}, {kind.text} }}"
    both = low.w.define(f"call {pair} @wend.{name}({kind.text} {x})")
    return (
        low.w.define(f"extractvalue {pair} {both}, 0"),
        low.w.define(f"extractvalue {pair} {both}, 1"),
    )


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


def _power(low: Lowering, node: Node, kind: Kind, x: str, y: str) -> str:
    alone = is_scalar(node.results[0].type)
    if kind.dtype == FLOAT32:
        return (_POWER if alone else _SHORT_POWER).write(low, node, kind, x, y)
    power = low.calls.from_libm("pow", x, y) if alone else low.calls.in_loop("pow", kind, x, y)
    if not is_one_number(node.operands[1]):
        return power
    # As NumPy has it where there is one exponent, x ** 0.5 is the root also where `pow`
    # disagrees: at −0.0 and −inf.
    w = low.w
    is_half = w.define(f"fcmp oeq double {y}, 0.5")
    is_two = w.define(f"fcmp oeq double {y}, 2.0")
    root = w.define(f"call double @llvm.sqrt.f64(double {x})")
    square = w.define(f"fmul double {x}, {x}")
    chosen = w.define(f"select i1 {is_two}, double {square}, double {power}")
    return w.define(f"select i1 {is_half}, double {root}, double {chosen}")


def is_one_number(value: Value) -> bool:
    """Whether it is a scalar, or one broadcast."""
    if value.node is not None and value.node.op is shaping.broadcast_to:
        value = value.node.operands[0]
    return is_scalar(value.type)


_POWER = _in_double(lambda low, kind, given: low.calls.from_libm("pow", *given))
# f64 has the digits that the logarithm needs for a power of f32
_SHORT_POWER = _in_double(
    lambda low, kind, given: low.calls.inlined("pow.loop.short", kind, *given)
)


def _intrinsic(name: str) -> Element:
    return template(f"call {{t}} @llvm.{name}.{{s}}({{t}} {{x}})")


def _class_test(mask: int) -> Element:
    def write(low: Lowering, node: Node, kind: Kind, x: str) -> str:
        flags = kind.flags.text
        name = f"@llvm.is.fpclass.{kind.suffix}"
        return low.w.define(f"call {flags} {name}({kind.text} {x}, i32 {mask})")

    return Element(write, "f")


_FROM_LIBM = (
    *(ops.cbrt, ops.exp2, ops.log2, ops.log10, ops.tan, ops.sinh, ops.cosh, ops.atan2),
    *(ops.asin, ops.acos, ops.atan, ops.asinh, ops.acosh, ops.atanh),
)


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
    ops.pow: Element(_power, "f"),
    ops.abs: Element(_absolute, "fiu"),
    ops.sign: Element(_sign, "fiu"),
    ops.maximum: extreme("ogt", "smax", "or"),
    ops.minimum: extreme("olt", "smin", "and"),
    **{op: _intrinsic(op.name) for op in (ops.sqrt, ops.floor, ops.ceil, ops.trunc, ops.rint)},
    ops.sin: wave("sin"),
    ops.cos: wave("cos"),
    **{op: inlined(op.name) for op in (ops.exp, ops.expm1, ops.log, ops.log1p, ops.tanh)},
    **{op: from_libm(op.name) for op in _FROM_LIBM},
    **{op: looped(op.name) for op in (special.erf, special.erfc, special.expit)},
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
