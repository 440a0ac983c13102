"""Matrices that a loop multiplies by in each trip, moved to where vectors are lines of the cache.

NumPy's memory starts at multiples of 16 bytes. A vector of 64 then lies in two lines, and a product
with it takes up to twice as long. So a loop that multiplies by a small matrix of the caller's
copies it first, if it does not lie well already.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.target.kinds import FLOAT32
from wend.backends.native.target.value_layout import Registers
from wend.ir.dtypes import FLOAT64
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import TensorType
from wend.ops import contracting, shaping
from wend.ops.control import WhileParts, call, if_, while_

_LINE = 64
# Bytes: of less there are few lines; more comes from further away than a copy would help
_LEAST, _MOST = 1 << 10, 1 << 18
_MOVES = {shaping.transpose, shaping.reshape}


def align(
    low: Lowering, parts: WhileParts, given: Sequence[Registers]
) -> tuple[list[Registers], list[str]]:
    """The slots of a loop's invariants, and what is to be released after the loop."""
    found: list[Registers] = list(given)
    made: list[str] = []
    for k, value in enumerate(parts.invariants):
        if value not in low.memory.foreign or not _is_matrix(value):
            continue
        params = parts.before_invariants[k], parts.after_invariants[k]
        if any(map(_is_multiplied, (parts.before, parts.after), params)):
            found[k], copy = _aligned(low, value, given[k])
            made.append(copy)
    return found, made


def _is_matrix(value: Value) -> bool:
    """Whether it is one of floats, and not known to be too small or too large."""
    type = value.type
    if not isinstance(type, TensorType) or type.shape is None or len(type.shape) < 2:
        return False
    known = [dim for dim in type.shape if isinstance(dim, int)]
    size = math.prod(known) * type.dtype.itemsize
    is_fit = size <= _MOST and (size >= _LEAST or len(known) < len(type.shape))
    return is_fit and type.dtype in (FLOAT64, FLOAT32)


def _is_multiplied(graph: Graph, value: Value) -> bool:
    """Whether a product reads a value, or what it looks like from another side."""
    for node in graph.nodes:
        if value not in node.operands:
            continue
        if node.op is contracting.dot_general:
            return True
        if node.op in _MOVES and _is_multiplied(graph, node.results[0]):
            return True
        index = node.operands.index(value)
        if any(_is_multiplied(region, param) for region, param in _inner(node, index)):
            return True
    return False


def _inner(node: Node, index: int) -> list[tuple[Graph, Value]]:
    """What an operand is called in the regions of a node, where it stays what it is."""
    if node.op is while_:
        parts = WhileParts.of(node)
        k = index - len(parts.carry)
        if k < 0:
            return []
        named = parts.before_invariants[k], parts.after_invariants[k]
        return [*zip(node.regions, named, strict=True)]
    if node.op is if_:
        return [(branch, branch.params[index - 1]) for branch in node.regions]
    return [(callee, callee.params[index]) for callee in node.regions] if node.op is call else []


def _aligned(low: Lowering, value: Value, slots: Registers) -> tuple[Registers, str]:
    """A matrix, or a copy of it; and the copy, or null."""
    w, arrays = low.w, low.arrays
    array = arrays.of(value.tensor, slots)
    size = arrays.bytes(array)
    address = w.define(f"ptrtoint ptr {array.pointer} to i64")
    beside = w.define(f"and i64 {address}, {_LINE - 1}")
    is_beside = w.define(f"icmp ne i64 {beside}, 0")
    from_least = w.define(f"sub i64 {size}, {_LEAST}")
    is_fit = w.define(f"icmp ule i64 {from_least}, {_MOST - _LEAST}")
    move, done = w.new_label("align"), w.new_label("aligned")
    outside = w.block
    w.branch(w.define(f"and i1 {is_beside}, {is_fit}"), move, done)
    w.start(move)
    copy = arrays.copied(array)
    inside = w.block
    w.jump(done)
    w.start(done)
    pointer, made = w.merge(
        ["ptr", "ptr"], [((array.pointer, "null"), outside), ((copy.pointer,) * 2, inside)]
    )
    return (pointer, *slots[1:]), made
