"""Constants, ranges, and arrays of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import FAILED
from wend.backends.native.emit.array.shaping import emit_same
from wend.backends.native.emit.scalar.casting import write_cast
from wend.backends.native.target.kinds import (
    REGISTERS,
    WORD,
    Kind,
    scalar_literal,
)
from wend.backends.native.target.numpy_capi import aligned
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import creating


def emit_constant(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """A literal, to the last bit; of an array, where it lies."""
    value, (result,) = node.attrs["value"], node.results
    if is_scalar(result.type):
        return [(scalar_literal(value[()], value.dtype),)]
    low.memory.mark_foreign(result)
    return [(low.constant(aligned(value)).pointer,)]


def emit_iota(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """0, 1, 2, …"""
    dtype, length = node.attrs["dtype"], node.attrs["length"]
    if dtype not in REGISTERS or dtype.kind == "b":
        return NotImplemented
    if length is None:
        wide = Kind(node.operands[0].tensor.dtype)
        size = low.sizes.most(write_cast(low.w, wide, WORD, operands[0][0]), "0")
    else:
        size = str(max(length, 0))
    made = low.new_result(node, [size])
    kind = Kind(dtype)

    def each(index: str) -> None:
        low.arrays.store(made, index, write_cast(low.w, WORD, kind, index))

    low.w.loop(size, each)
    return [low.give(node, made)]


def emit_nonnegative(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """The integers themselves."""
    value = node.operands[0].tensor
    if value.dtype.kind != "i":
        return emit_same(low, node, operands)

    def check(number: str) -> None:
        wide = write_cast(low.w, Kind(value.dtype), WORD, number)
        low.traps.check(low.w.define(f"icmp sge i64 {wide}, 0"), FAILED)

    if is_scalar(value):
        check(operands[0][0])
        return operands
    array = low.array(node, 0)
    low.w.loop(low.arrays.count(array), lambda k: check(low.arrays.load(array, k)))
    return emit_same(low, node, operands)


def emit_from_elements(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Numbers put side by side."""
    if node.results[0].tensor.dtype not in REGISTERS:
        return NotImplemented
    shape = node.attrs["shape"]
    if not shape:
        return [operands[0]]
    made = low.new_result(node, [str(size) for size in shape])
    for k, (number,) in enumerate(operands):
        low.arrays.store(made, str(k), number)
    return [low.give(node, made)]


EMITTERS: Mapping[Op, Emit] = {
    creating.constant: emit_constant,
    creating.iota: emit_iota,
    creating.nonnegative: emit_nonnegative,
    creating.from_elements: emit_from_elements,
}
