"""Values that may be Zero at run time: a flag beside the value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wend.backends.native.codegen.lowering import Emit, Lowering, is_maybe
from wend.backends.native.emit.array.shaping import share_operand
from wend.backends.native.emit.control.lists import add_values, is_addable
from wend.backends.native.target.value_layout import Registers, absent_value, registers
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ir.types import MaybeType, without_maybe
from wend.ops import maybe


def emit_zero(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Return an absent value."""
    return [absent_value(node.results[0].type)]


def emit_is_zero(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Emit the negated flag."""
    if not is_maybe(node.operands[0]):
        return [("false",)]
    return [(low.w.define(f"xor i1 {operands[0][0]}, true"),)]


def emit_any_nonzero(
    low: Lowering, node: Node, operands: Sequence[Registers]
) -> Sequence[Registers]:
    """Emit the disjunction of the flags."""
    pairs = zip(node.operands, operands, strict=True)
    any_present, *flags = (slots[0] if is_maybe(value) else "true" for value, slots in pairs)
    for flag in flags:
        any_present = low.w.define(f"or i1 {any_present}, {flag}")
    return [(any_present,)]


def emit_autograd_add(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit the sum of those operands that are present."""
    result = node.results[0].type
    if not is_addable(result):
        return NotImplemented
    maybe_type = MaybeType(without_maybe(result))
    x, y = (
        low.coerce(node, low.refcounted(node, k), value.type, maybe_type)
        for k, value in enumerate(node.operands)
    )
    list_classes = (
        low.list_classes.of_use_or_none(node, 0),
        low.list_classes.of_use_or_none(node, 1),
        low.list_classes.of_or_none(node.results[0]),
    )
    total = add_values(low, maybe_type, x, y, list_classes)
    return [total if isinstance(result, MaybeType) else total[1:]]


def emit_instantiate(
    low: Lowering, node: Node, operands: Sequence[Registers]
) -> Sequence[Registers]:
    """Emit the value, or the given zeros if it is absent.

    The zeros of an absent value may be absent too; they are not read.
    """
    result = node.results[0].type
    (flag, *value), zeros = low.refcounted(node, 0), low.refcounted(node, 1)
    type = node.operands[1].type
    if is_maybe(node.operands[1]):
        zeros, type = zeros[1:], without_maybe(type)
    zeros = low.coerce(node, zeros, type, result)
    selected = tuple(
        low.w.define(f"select i1 {flag}, {register} {a}, {register} {b}")
        for register, a, b in zip(registers(result), value, zeros, strict=True)
    )
    low.arrays.retain_all(result, selected)
    return [selected]


def emit_present(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Return the value of an operand that is known to be present."""
    slots = operands[0][1:]
    share_operand(low, node, slots)
    return [slots]


EMITTERS: Mapping[Op, Emit] = {
    maybe.zero: emit_zero,
    maybe.is_zero: emit_is_zero,
    maybe.any_nonzero: emit_any_nonzero,
    maybe.autograd_add: emit_autograd_add,
    maybe.instantiate: emit_instantiate,
    maybe.present: emit_present,
}
