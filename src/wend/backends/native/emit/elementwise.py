"""Elementwise operations: in registers for scalars, loops for arrays.

Where one loop alone reads an array, it is not put into memory: its elements are computed there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wend.backends.native.arrays import Array
from wend.backends.native.emit.element import Element, kind_of
from wend.backends.native.emit.elements import ELEMENTS
from wend.backends.native.emit.writing import writable
from wend.backends.native.exits import BAD_SHAPE
from wend.backends.native.lowering import Emit, Lowering
from wend.backends.native.slots import Slots, is_scalar
from wend.ir.graph import Node, Value
from wend.ir.op import Op
from wend.ops import indexing, searching, shaping, updating

# Operations one after another in a loop: each is a level of recursion when the loop is written.
_DEEPEST = 64

# What changes an array in place where it can; nodes with regions hand arrays on to such.
_WRITERS = {
    *(shaping.add_slice, shaping.add_narrow, indexing.scatter_add, indexing.add_along),
    *(updating.set_slice, updating.scatter_set, searching.set_along),
}


def emitter(element: Element) -> Emit:
    """The emitter of an operation whose elements are computed so."""

    def emit(low: Lowering, node: Node, operands: Sequence[Slots]) -> Any:
        if not element.takes(node):
            return NotImplemented
        kind = kind_of(node)
        if is_scalar(node.results[0].type):
            return [(element.write(low, node, kind, *(slots[0] for slots in operands)),)]
        return [_emit_loop(low, node, lambda given: element.write(low, node, kind, *given))]

    return emit


def _emit_loop(low: Lowering, node: Node, compute: Callable[[Sequence[str]], str]) -> Slots:
    if any(value in low.products for value in node.operands):
        return _add_product(low, node)
    arrays = [low.array(node, k) for k in range(len(node.operands))]
    dims = arrays[0].dims
    for other in arrays[1:]:
        for mine, theirs in zip(dims, other.dims, strict=True):
            low.exits.unless(low.sizes.equal(mine, theirs), BAD_SHAPE)
    pairs = zip(node.operands, arrays, strict=True)
    readers = [_reader(low, value, array) for value, array in pairs]

    def element(index: str) -> str:
        return compute([read(index) for read in readers])

    is_shallow = _depth(low, node) <= _DEEPEST
    is_kept = not any(may_change(low, v) for v in node.operands)
    if is_shallow and is_kept and _has_one_reader(low, node):
        return defer(low, node, dims, element)
    made = low.new_result(node, dims)
    count = low.arrays.count(made)
    low.w.loop(count, lambda index: low.arrays.store(made, index, element(index)))
    return low.give(node, made)


def _add_product(low: Lowering, node: Node) -> Slots:
    """The sum of an array, which is changed, and a product that is not in memory."""
    (k,) = (k for k, value in enumerate(node.operands) if value in low.products)
    product = low.array(node, k)
    target = writable(low, node, 1 - k)
    for mine, theirs in zip(product.dims, target.dims, strict=True):
        low.exits.unless(low.sizes.equal(mine, theirs), BAD_SHAPE)
    low.products[node.operands[k]](target)
    return low.give(node, target)


def _reader(low: Lowering, value: Value, array: Array) -> Callable[[str], str]:
    if value in low.lazy:
        return low.lazy[value]
    return lambda index: low.arrays.load(array, index)


def defer(low: Lowering, node: Node, dims: Sequence[str], element: Callable[[str], str]) -> Slots:
    """A result that is not put into memory: one loop computes its elements."""
    low.lazy[node.results[0]] = element
    return keep_operands(low, node, dims)


def keep_operands(low: Lowering, node: Node, dims: Sequence[str]) -> Slots:
    """The slots of a result that is not in memory; what it reads is kept until it has been read."""
    (result,) = node.results
    depth = _depth(low, node)
    keeps: list[str] = []
    for value in dict.fromkeys(node.operands):
        if value in low.kept:
            keeps += low.kept[value]
            low.kept[value] = ()
        elif value in low.memory.held:
            pointer = low.values[value][0]
            if low.may_move(value):
                low.memory.move(value)
            else:
                low.arrays.retain(pointer)
            keeps.append(pointer)
    low.kept[result] = tuple(keeps)
    low.depths[result] = depth
    low.memory.mark_foreign(result)
    return low.give(node, Array("null", result.tensor.dtype, tuple(dims)))


def _depth(low: Lowering, node: Node) -> int:
    """How many operations an element of its result is the outcome of, where it is read."""
    return 1 + max((low.depths.get(v, 0) for v in node.operands), default=0)


def is_read_by_loops(low: Lowering, value: Value) -> bool:
    """Whether only elementwise operations of the same region read an array."""
    assert low.uses is not None
    takers = low.uses.takers(value)
    return not low.uses.is_result(value) and bool(takers) and all(map(_is_loop, takers))


def _has_one_reader(low: Lowering, node: Node) -> bool:
    """Whether it is read by one loop, once: then nothing is computed twice."""
    (result,) = node.results
    assert low.uses is not None
    takers = low.uses.takers(result)
    is_once = len(takers) == 1 and takers[0].operands.count(result) == 1
    return is_once and is_read_by_loops(low, result)


def _is_loop(node: Node) -> bool:
    if node.op not in ELEMENTS or any(is_scalar(value.type) for value in node.results):
        return False
    if any(value.tensor.shape is None for value in (*node.operands, *node.results)):
        return False
    return ELEMENTS[node.op].takes(node)


def may_change(low: Lowering, value: Value) -> bool:
    """Whether what is read later on would have to be copied, since it is changed meanwhile."""
    assert low.uses is not None
    return any(taker.op in _WRITERS or taker.regions for taker in low.uses.takers(value))


EMITTERS: Mapping[Op, Emit] = {op: emitter(element) for op, element in ELEMENTS.items()}
