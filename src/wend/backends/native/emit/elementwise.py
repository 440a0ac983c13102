"""Arithmetic, comparison, choice and conversion of scalars, with NumPy's meaning."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence

from wend.backends.native.lowering import Emit, Lowering
from wend.backends.native.slots import REGISTERS, Slots, refuse, registers
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import elementwise as ops

# An instruction per type, with {t} for the type and {x}, {y} for the operands
Templates = Mapping[str, str]
_REAL, _INT, _BOOL = "double", "i64", "i1"


def template(texts: Templates) -> Emit:
    """An emitter that writes one instruction."""

    def emit(low: Lowering, node: Node, operands: Sequence[Slots]) -> Sequence[Slots]:
        type = _type(node)
        if type not in texts:
            raise refuse(node, f"it does not take {node.operands[0].type} here")
        x, y = operands[0][0], operands[-1][0]
        return [(low.w.define(texts[type].format(t=type, x=x, y=y)),)]

    return emit


def written(emit_one: Callable[..., str]) -> Emit:
    """An emitter of a function `(low, node, type, *operands) -> result`."""

    def emit(low: Lowering, node: Node, operands: Sequence[Slots]) -> Sequence[Slots]:
        return [(emit_one(low, node, _type(node), *(slots[0] for slots in operands)),)]

    return emit


def _type(node: Node) -> str:
    """The LLVM type of the operands; of the choices, for `select`."""
    return registers(node.operands[-1].type)[0]


def compare(real: str, signed: str) -> Emit:
    """A comparison; those of bools are of 0 and 1."""
    unsigned = signed.replace("s", "u", 1)
    return template(
        {
            _REAL: f"fcmp {real} double {{x}}, {{y}}",
            _INT: f"icmp {signed} i64 {{x}}, {{y}}",
            _BOOL: f"icmp {unsigned} i1 {{x}}, {{y}}",
        }
    )


def intrinsic(name: str) -> Emit:
    """A function of reals that is an instruction."""
    return template({_REAL: f"call double @llvm.{name}.f64(double {{x}})"})


def inlined(name: str) -> Emit:
    """A function of reals that is written in IR, in `math.py`."""
    return written(lambda low, node, type, x: low.call(name, x))


def from_libm(name: str) -> Emit:
    """A function of reals that the C library has."""
    return written(lambda low, node, type, *given: low.call_libm(name, *given))


def helper(reals: str | None, ints: str | None) -> Emit:
    """A function of two operands, from `arithmetic.py`."""

    def emit_one(low: Lowering, node: Node, type: str, x: str, y: str) -> str:
        name = reals if type == _REAL else ints
        if name is None:
            raise refuse(node, f"it does not take {node.operands[0].type} here")
        return low.call_helper(name, type, f"{type} {x}", f"{type} {y}")

    return written(emit_one)


def wave(name: str) -> Emit:
    """Sine or cosine; where a region wants both of one value they are computed together."""
    index = ("sin", "cos").index(name)

    def emit(low: Lowering, node: Node, operands: Sequence[Slots]) -> Sequence[Slots]:
        (operand,) = node.operands
        if operand not in low.waves:
            return [(low.call(name, operands[0][0]),)]
        pair = low.waves[operand]
        if pair is None:
            low.math.add("sincos")
            both = low.w.define(f"call {{ double, double }} @wend.sincos(double {operands[0][0]})")
            sine, cosine = (
                low.w.define(f"extractvalue {{ double, double }} {both}, {k}") for k in (0, 1)
            )
            pair = low.waves[operand] = (sine, cosine)
        return [(pair[index],)]

    return emit


def _absolute(low: Lowering, node: Node, type: str, x: str) -> str:
    if type == _REAL:
        return low.w.define(f"call double @llvm.fabs.f64(double {x})")
    return low.w.define(f"call i64 @llvm.abs.i64(i64 {x}, i1 false)")


def _sign(low: Lowering, node: Node, type: str, x: str) -> str:
    w = low.w
    if type == _INT:
        positive = w.define(f"icmp sgt i64 {x}, 0")
        shifted = w.define(f"ashr i64 {x}, 63")
        return w.define(f"select i1 {positive}, i64 1, i64 {shifted}")
    # NaN stays, and −0.0 becomes 0.0.
    negative = w.define(f"fcmp olt double {x}, 0.0")
    rest = w.define(f"select i1 {negative}, double -1.0, double 0.0")
    positive = w.define(f"fcmp ogt double {x}, 0.0")
    sign = w.define(f"select i1 {positive}, double 1.0, double {rest}")
    nan = w.define(f"fcmp uno double {x}, 0.0")
    return w.define(f"select i1 {nan}, double {x}, double {sign}")


def _extreme(real: str, signed: str, logic: str) -> Emit:
    """The larger or smaller; NaN wins."""

    def emit_one(low: Lowering, node: Node, type: str, x: str, y: str) -> str:
        w = low.w
        if type == _BOOL:
            return w.define(f"{logic} i1 {x}, {y}")
        if type == _INT:
            return w.define(f"call i64 @llvm.{signed}.i64(i64 {x}, i64 {y})")
        better = w.define(f"fcmp {real} double {x}, {y}")
        nan = w.define(f"fcmp uno double {x}, 0.0")
        first = w.define(f"or i1 {better}, {nan}")
        return w.define(f"select i1 {first}, double {x}, double {y}")

    return written(emit_one)


def _shift(opcode: str, beyond: str) -> Emit:
    """A shift; `beyond`: what it is by 64 and more, and by negative numbers, as NumPy has it."""

    def emit_one(low: Lowering, node: Node, type: str, x: str, y: str) -> str:
        w = low.w
        inside = w.define(f"icmp ult i64 {y}, 64")
        by = w.define(f"select i1 {inside}, i64 {y}, i64 0")
        shifted = w.define(f"{opcode} i64 {x}, {by}")
        rest = w.define(beyond.format(x=x))
        return w.define(f"select i1 {inside}, i64 {shifted}, i64 {rest}")

    return written(emit_one)


def emit_select(low: Lowering, node: Node, operands: Sequence[Slots]) -> Sequence[Slots]:
    """One of two."""
    (flag,), (x,), (y,) = operands
    type = _type(node)
    return [(low.w.define(f"select i1 {flag}, {type} {x}, {type} {y}"),)]


def emit_cast(low: Lowering, node: Node, operands: Sequence[Slots]) -> Sequence[Slots]:
    """Conversion between reals, integers and bools."""
    ((x,),) = operands
    source, target = _type(node), REGISTERS[node.attrs["dtype"]]
    w = low.w
    match source, target:
        case ("double", "i64"):
            return [(_to_integer(low, x),)]
        case ("double", "i1"):
            return [(w.define(f"fcmp une double {x}, 0.0"),)]
        case ("i64", "i1"):
            return [(w.define(f"icmp ne i64 {x}, 0"),)]
        case ("i64", "double"):
            return [(w.define(f"sitofp i64 {x} to double"),)]
        case ("i1", "double"):
            return [(w.define(f"uitofp i1 {x} to double"),)]
        case ("i1", "i64"):
            return [(w.define(f"zext i1 {x} to i64"),)]
    return [(x,)]


def _to_integer(low: Lowering, x: str) -> str:
    """What the processor gives, as NumPy does: x86 gives the lowest integer where none fits."""
    w = low.w
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return w.define(f"call i64 @llvm.fptosi.sat.i64.f64(double {x})")
    low_enough = w.define(f"fcmp olt double {x}, 0x43E0000000000000")
    high_enough = w.define(f"fcmp oge double {x}, 0xC3E0000000000000")
    fits = w.define(f"and i1 {low_enough}, {high_enough}")
    safe = w.define(f"select i1 {fits}, double {x}, double 0xC3E0000000000000")
    return w.define(f"fptosi double {safe} to i64")


def _emit_pow(low: Lowering, node: Node, type: str, x: str, y: str) -> str:
    if type != _REAL:
        raise refuse(node, "it does not take integers here")
    # As NumPy has it, x ** 0.5 is the root also where `pow` disagrees: at −0.0 and −inf.
    w = low.w
    is_half = w.define(f"fcmp oeq double {y}, 0.5")
    is_two = w.define(f"fcmp oeq double {y}, 2.0")
    root = w.define(f"call double @llvm.sqrt.f64(double {x})")
    square = w.define(f"fmul double {x}, {x}")
    power = w.define(f"select i1 {is_two}, double {square}, double {low.call_libm('pow', x, y)}")
    return w.define(f"select i1 {is_half}, double {root}, double {power}")


_FROM_LIBM = (
    *(ops.cbrt, ops.exp2, ops.log2, ops.log10, ops.tan, ops.sinh, ops.cosh, ops.atan2),
    *(ops.asin, ops.acos, ops.atan, ops.asinh, ops.acosh, ops.atanh),
)

EMITTERS: Mapping[Op, Emit] = {
    ops.add: template({_REAL: "fadd {t} {x}, {y}", _INT: "add {t} {x}, {y}"}),
    ops.sub: template({_REAL: "fsub {t} {x}, {y}", _INT: "sub {t} {x}, {y}"}),
    ops.mul: template({_REAL: "fmul {t} {x}, {y}", _INT: "mul {t} {x}, {y}"}),
    ops.div: template({_REAL: "fdiv {t} {x}, {y}"}),
    ops.neg: template({_REAL: "fneg {t} {x}", _INT: "sub {t} 0, {x}"}),
    ops.reciprocal: template({_REAL: "fdiv {t} 1.0, {x}"}),
    ops.floor_divide: helper("floor_divide.f64", "floor_divide.i64"),
    ops.remainder: helper("remainder.f64", "remainder.i64"),
    ops.pow: written(_emit_pow),
    ops.abs: written(_absolute),
    ops.sign: written(_sign),
    ops.maximum: _extreme("oge", "smax", "or"),
    ops.minimum: _extreme("ole", "smin", "and"),
    ops.sqrt: intrinsic("sqrt"),
    ops.floor: intrinsic("floor"),
    ops.ceil: intrinsic("ceil"),
    ops.trunc: intrinsic("trunc"),
    ops.rint: intrinsic("rint"),
    ops.sin: wave("sin"),
    ops.cos: wave("cos"),
    **{op: inlined(op.name) for op in (ops.exp, ops.expm1, ops.log, ops.log1p, ops.tanh)},
    **{op: from_libm(op.name) for op in _FROM_LIBM},
    ops.bit_and: template({_INT: "and {t} {x}, {y}", _BOOL: "and {t} {x}, {y}"}),
    ops.bit_or: template({_INT: "or {t} {x}, {y}", _BOOL: "or {t} {x}, {y}"}),
    ops.bit_xor: template({_INT: "xor {t} {x}, {y}", _BOOL: "xor {t} {x}, {y}"}),
    ops.bit_not: template({_INT: "xor {t} {x}, -1", _BOOL: "xor {t} {x}, true"}),
    ops.shift_left: _shift("shl", "and i64 {x}, 0"),
    ops.shift_right: _shift("ashr", "ashr i64 {x}, 63"),
    ops.eq: compare("oeq", "eq"),
    ops.ne: compare("une", "ne"),
    ops.lt: compare("olt", "slt"),
    ops.le: compare("ole", "sle"),
    ops.gt: compare("ogt", "sgt"),
    ops.ge: compare("oge", "sge"),
    ops.isnan: template({_REAL: "fcmp uno double {x}, 0.0"}),
    ops.isinf: template({_REAL: "call i1 @llvm.is.fpclass.f64(double {x}, i32 516)"}),
    ops.isfinite: template({_REAL: "call i1 @llvm.is.fpclass.f64(double {x}, i32 504)"}),
    ops.select: emit_select,
    ops.cast: emit_cast,
}
