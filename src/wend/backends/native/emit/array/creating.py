"""Constants, ranges, and arrays made from scalars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import FAILED
from wend.backends.native.emit.array.shaping import emit_identity, new_array
from wend.backends.native.emit.scalar.casting import emit_cast
from wend.backends.native.target.kinds import REGISTERS, WORD, Kind, scalar_literal
from wend.backends.native.target.numpy_capi import aligned_copy
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import creating


def emit_constant(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Emit a constant: an exact literal, or a reference to an array in memory."""
    value, (result,) = node.attrs["value"], node.results
    if is_scalar(result.type):
        return [(scalar_literal(value[()], value.dtype),)]
    low.refcounts.mark_foreign(result)
    return [(low.constant(aligned_copy(value)).pointer,)]


def emit_iota(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit the range 0, 1, 2, … of a static or dynamic length."""
    dtype, length = node.attrs["dtype"], node.attrs["length"]
    if dtype not in REGISTERS or dtype.kind == "b":
        return NotImplemented
    if length is None:
        length_kind = Kind(node.operands[0].tensor.dtype)
        size = low.sizes.max(emit_cast(low.w, length_kind, WORD, operands[0][0]), "0")
    else:
        size = str(max(length, 0))
    kind = Kind(dtype)
    return [low.computed_result(node, [size], lambda k: emit_cast(low.w, WORD, kind, k))]


def emit_nonnegative(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Forward integers, after a check that none is negative."""
    value = node.operands[0].tensor
    if value.dtype.kind != "i":
        return emit_identity(low, node, operands)

    def check(number: str) -> None:
        word = emit_cast(low.w, Kind(value.dtype), WORD, number)
        low.traps.check(low.w.define(f"icmp sge i64 {word}, 0"), FAILED)

    if is_scalar(value):
        check(operands[0][0])
        return operands
    array = low.array(node, 0)
    low.w.loop(low.arrays.count(array), lambda k: check(low.arrays.load(array, k)))
    return emit_identity(low, node, operands)


def emit_from_elements(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit an array of the scalars that are the operands."""
    if node.results[0].tensor.dtype not in REGISTERS:
        return NotImplemented
    shape = node.attrs["shape"]
    if not shape:
        return [operands[0]]
    numbers = [number for (number,) in operands]
    return [new_array(low, node, numbers, [str(size) for size in shape])]


EMITTERS: Mapping[Op, Emit] = {
    creating.constant: emit_constant,
    creating.iota: emit_iota,
    creating.nonnegative: emit_nonnegative,
    creating.from_elements: emit_from_elements,
}
