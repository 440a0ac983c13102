"""Values that may be Zero at run time: a flag beside the value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wend.backends.native.codegen.lowering import Emit, Lowering, is_maybe
from wend.backends.native.emit.control.lists import add_values, has_sums
from wend.backends.native.target.value_layout import (
    Registers,
    nothing,
    references,
    registers,
)
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ir.types import MaybeType, without_maybe
from wend.ops import maybe


def emit_zero(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """Nothing."""
    return [nothing(node.results[0].type)]


def emit_is_zero(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """The flag."""
    if not is_maybe(node.operands[0]):
        return [("false",)]
    return [(low.w.define(f"xor i1 {operands[0][0]}, true"),)]


def emit_any_nonzero(
    low: Lowering, node: Node, operands: Sequence[Registers]
) -> Sequence[Registers]:
    """The flags, or-ed."""
    pairs = zip(node.operands, operands, strict=True)
    first, *rest = (slots[0] if is_maybe(value) else "true" for value, slots in pairs)
    for flag in rest:
        first = low.w.define(f"or i1 {first}, {flag}")
    return [(first,)]


def emit_autograd_add(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """The sum of what is there."""
    result = node.results[0].type
    if not has_sums(result):
        return NotImplemented
    both = MaybeType(without_maybe(result))
    x, y = (
        low.coerce(node, low.pooled(node, k), value.type, both)
        for k, value in enumerate(node.operands)
    )
    places = (
        low.places.maybe_used(node, 0),
        low.places.maybe_used(node, 1),
        low.places.maybe_of(node.results[0]),
    )
    total = add_values(low, both, x, y, places)
    return [total if isinstance(result, MaybeType) else total[1:]]


def emit_instantiate(
    low: Lowering, node: Node, operands: Sequence[Registers]
) -> Sequence[Registers]:
    """The value, or the zeros given; those of an absent value may be absent, and are not read."""
    result = node.results[0].type
    (flag, *value), zeros = low.pooled(node, 0), low.pooled(node, 1)
    type = node.operands[1].type
    if is_maybe(node.operands[1]):
        zeros, type = zeros[1:], without_maybe(type)
    zeros = low.coerce(node, zeros, type, result)
    chosen = tuple(
        low.w.define(f"select i1 {flag}, {register} {a}, {register} {b}")
        for register, a, b in zip(registers(result), value, zeros, strict=True)
    )
    for k in references(result):
        low.arrays.retain(chosen[k])
    return [chosen]


def emit_present(low: Lowering, node: Node, operands: Sequence[Registers]) -> Sequence[Registers]:
    """The value, which is known to be there."""
    slots = operands[0][1:]
    for k in references(node.results[0].type):
        low.memory.share(node.results[0], node.operands[0], slots[k])
    return [slots]


EMITTERS: Mapping[Op, Emit] = {
    maybe.zero: emit_zero,
    maybe.is_zero: emit_is_zero,
    maybe.any_nonzero: emit_any_nonzero,
    maybe.autograd_add: emit_autograd_add,
    maybe.instantiate: emit_instantiate,
    maybe.present: emit_present,
}
