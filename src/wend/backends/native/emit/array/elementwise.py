"""Elementwise operations: in registers for scalars, as loops for arrays outside of loop nests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.emit.array.in_place import writable
from wend.backends.native.emit.scalar.element import Element, kind_of
from wend.backends.native.emit.scalar.elements import ELEMENTS
from wend.backends.native.emit.scalar.pairs import computes_pairs
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.passes.lane_maps import is_elementwise


def elementwise_emitter(element: Element) -> Emit:
    """Return the emitter of an elementwise operation."""

    def emit(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
        if not element.supports(node):
            return NotImplemented
        kind = kind_of(node)
        if is_scalar(node.results[0].type):
            return [(element.emit(low, node, kind, *(registers[0] for registers in operands)),)]
        return [_emit_loop(low, node, lambda args: element.emit(low, node, kind, *args))]

    return emit


def _emit_loop(
    low: Lowering, node: Node, compute_element: Callable[[Sequence[str]], str]
) -> Registers:
    """Emit a loop over the elements of arrays of one shape."""
    if any(value in low.deferred_products for value in node.operands):
        return _add_product(low, node)
    arrays = [low.array(node, k) for k in range(len(node.operands))]
    for other in arrays[1:]:
        low.check_equal_dims(arrays[0].dims, other.dims)
    return low.computed_result(
        node, arrays[0].dims, lambda k: compute_element([low.arrays.load(x, k) for x in arrays])
    )


def _add_product(low: Lowering, node: Node) -> Registers:
    """Add a product that was not materialized to an array, in place (GEMM with beta = 1)."""
    (k,) = (k for k, value in enumerate(node.operands) if value in low.deferred_products)
    product = low.array(node, k)
    target = writable(low, node, 1 - k)
    low.check_equal_dims(product.dims, target.dims)
    low.deferred_products[node.operands[k]](target)
    return low.array_result(node, target)


def computes_elements(node: Node) -> bool:
    """Return whether native code can compute a node element by element.

    True only for arrays of known rank.
    """
    if computes_pairs(node):
        return True
    if node.op not in ELEMENTS or is_scalar(node.results[0].type):
        return False
    if any(value.tensor.shape is None for value in (*node.operands, *node.results)):
        return False
    return ELEMENTS[node.op].supports(node)


def computes_numbers(node: Node) -> bool:
    """Return whether native code can compute a node on numbers, if it is elementwise at all."""
    return not is_elementwise(node) or (node.op in ELEMENTS and ELEMENTS[node.op].supports(node))


EMITTERS: Mapping[Op, Emit] = {op: elementwise_emitter(element) for op, element in ELEMENTS.items()}
