"""Elementwise operations: in registers for scalars; of arrays what is in no nest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import BAD_SHAPE
from wend.backends.native.emit.array.in_place import writable
from wend.backends.native.emit.scalar.element import Element, kind_of
from wend.backends.native.emit.scalar.elements import ELEMENTS
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.ir.graph import Node
from wend.ir.op import Op


def emitter(element: Element) -> Emit:
    """The emitter of an operation whose elements are computed so."""

    def emit(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
        if not element.takes(node):
            return NotImplemented
        kind = kind_of(node)
        if is_scalar(node.results[0].type):
            return [(element.write(low, node, kind, *(slots[0] for slots in operands)),)]
        return [_emit_loop(low, node, lambda given: element.write(low, node, kind, *given))]

    return emit


def _emit_loop(low: Lowering, node: Node, compute: Callable[[Sequence[str]], str]) -> Registers:
    if any(value in low.products for value in node.operands):
        return _add_product(low, node)
    arrays = [low.array(node, k) for k in range(len(node.operands))]
    for other in arrays[1:]:
        for mine, theirs in zip(arrays[0].dims, other.dims, strict=True):
            low.traps.check(low.sizes.equal(mine, theirs), BAD_SHAPE)
    made = low.new_result(node, arrays[0].dims)

    def each(index: str) -> None:
        low.arrays.store(made, index, compute([low.arrays.load(x, index) for x in arrays]))

    low.w.loop(low.arrays.count(made), each)
    return low.give(node, made)


def _add_product(low: Lowering, node: Node) -> Registers:
    """The sum of an array, which is changed, and a product that is not in memory."""
    (k,) = (k for k, value in enumerate(node.operands) if value in low.products)
    product = low.array(node, k)
    target = writable(low, node, 1 - k)
    for mine, theirs in zip(product.dims, target.dims, strict=True):
        low.traps.check(low.sizes.equal(mine, theirs), BAD_SHAPE)
    low.products[node.operands[k]](target)
    return low.give(node, target)


def computes_elements(node: Node) -> bool:
    """Whether a node computes arrays of known rank element by element, and native code can."""
    if node.op not in ELEMENTS or is_scalar(node.results[0].type):
        return False
    if any(value.tensor.shape is None for value in (*node.operands, *node.results)):
        return False
    return ELEMENTS[node.op].takes(node)


EMITTERS: Mapping[Op, Emit] = {op: emitter(element) for op, element in ELEMENTS.items()}
