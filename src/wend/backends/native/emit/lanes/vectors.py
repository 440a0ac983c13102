"""Elementwise operations on vectors: one instruction, a vector function, or lane by lane."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.emit.scalar.element import kind_of
from wend.backends.native.emit.scalar.elements import ELEMENTS
from wend.backends.native.emit.scalar.powers import power_of_number
from wend.backends.native.math.vector_variants import lanes_of, vector_variants
from wend.backends.native.target.kinds import WORD, Kind
from wend.ir.dtypes import FLOAT64
from wend.ir.graph import Node, Value
from wend.ops import elementwise as ops


def vector_kind(value: Value, lanes: int) -> Kind:
    """Return the kind of a vector with a number for each lane."""
    return Kind(value.tensor.dtype, lanes)


def emit_vector(low: Lowering, node: Node, lanes: int, args: Sequence[str]) -> str:
    """Emit an elementwise operation on vectors."""
    element, kind = ELEMENTS[node.op], Kind(kind_of(node).dtype, lanes)
    if element.takes_vectors:
        return element.emit(low, node, kind, *args)
    if element.loop_function is not None and kind.is_real:
        name = f"{element.loop_function}.loop{'' if kind.dtype == FLOAT64 else '.f32'}"
        result = _call(low, name, kind, args)
        if node.op is not ops.pow or kind.dtype != FLOAT64:
            return result
        x, y = args
        return power_of_number(low.w, kind, x, y, result)
    kinds = [vector_kind(x, lanes) for x in node.operands]
    result_kind = vector_kind(node.results[0], lanes)

    def compute(numbers: Sequence[str]) -> str:
        return element.emit(low, node, kind.scalar, *numbers)

    return _by_lane(low, kinds, result_kind, args, compute)


def splat(low: Lowering, kind: Kind, number: str) -> str:
    """Emit a vector of one number."""
    first = low.w.define(f"insertelement {kind.text} poison, {kind.element} {number}, i64 0")
    zeros = f"<{kind.lanes} x i32> zeroinitializer"
    return low.w.define(f"shufflevector {kind.text} {first}, {kind.text} poison, {zeros}")


def count_from(low: Lowering, lanes: int, first: str) -> str:
    """Emit the vector of consecutive integers from one on."""
    kind = Kind(WORD.dtype, lanes)
    return low.w.define(f"add {kind.text} {splat(low, kind, first)}, {numbers(lanes)}")


def numbers(lanes: int) -> str:
    """Return the vector of the numbers of the lanes."""
    return f"<{', '.join(f'i64 {k}' for k in range(lanes))}>"


def _call(low: Lowering, name: str, kind: Kind, args: Sequence[str]) -> str:
    """Emit calls of a function for loops: of its widest variant that fits, or lane by lane."""
    low.calls.vectorizable_count += 1
    low.calls.math.add(name)  # which brings its variants along
    variants = [x for x in vector_variants().get(name, ()) if lanes_of(x) <= kind.lanes]
    if not variants:

        def compute(numbers: Sequence[str]) -> str:
            return _call_one(low, name, kind.scalar, numbers)

        return _by_lane(low, [kind] * len(args), kind, args, compute)
    variant = max(variants, key=lanes_of)
    width = lanes_of(variant)
    if width == kind.lanes:
        return _call_one(low, variant, kind, args)
    part, parts = Kind(kind.dtype, width), []
    for start in range(0, kind.lanes, width):
        pieces = [_shuffled(low, kind, x, range(start, start + width)) for x in args]
        parts.append(_call_one(low, variant, part, pieces))
    while len(parts) > 1:
        both = range(2 * part.lanes)
        parts = [
            _shuffled(low, part, x, both, y) for x, y in zip(parts[::2], parts[1::2], strict=True)
        ]
        part = Kind(kind.dtype, 2 * part.lanes)
    return parts[0]


def _call_one(low: Lowering, name: str, kind: Kind, args: Sequence[str]) -> str:
    operands = ", ".join(f"{kind.text} {x}" for x in args)
    return low.w.define(f"call {kind.text} @wend.{name}({operands})")


def _shuffled(low: Lowering, kind: Kind, x: str, lanes: range, y: str = "poison") -> str:
    mask = ", ".join(f"i32 {k}" for k in lanes)
    operands = f"{kind.text} {x}, {kind.text} {y}"
    return low.w.define(f"shufflevector {operands}, <{len(lanes)} x i32> <{mask}>")


def _by_lane(
    low: Lowering,
    kinds: Sequence[Kind],
    result: Kind,
    args: Sequence[str],
    compute: Callable[[Sequence[str]], str],
) -> str:
    w, out = low.w, "poison"
    for k in range(result.lanes):
        numbers = [
            w.define(f"extractelement {kind.text} {x}, i64 {k}")
            for kind, x in zip(kinds, args, strict=True)
        ]
        value = compute(numbers)
        out = w.define(f"insertelement {result.text} {out}, {result.element} {value}, i64 {k}")
    return out
