"""Alignment of the matrices that a loop multiplies by on every trip.

NumPy aligns memory to 16 bytes, so a vector of 64 bytes may straddle two cache lines, and a product
with the matrix then takes up to twice as long. A loop that multiplies by a small matrix of the
caller copies it first if it is not aligned.
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

_CACHE_LINE_BYTES = 64
# A smaller matrix has too few cache lines to matter; a larger one is read from memory too far away
# for a copy to help.
_MIN_COPIED_BYTES, _MAX_COPIED_BYTES = 1 << 10, 1 << 18
_LAYOUT_OPS = {shaping.transpose, shaping.reshape}


def align_invariants(
    low: Lowering, parts: WhileParts, invariant_slots: Sequence[Registers]
) -> tuple[list[Registers], list[str]]:
    """Return the slots of a loop's invariants, and the pointers to release after the loop."""
    aligned_slots: list[Registers] = list(invariant_slots)
    copies: list[str] = []
    for k, value in enumerate(parts.invariants):
        if value not in low.refcounts.foreign or not _may_be_copied(value):
            continue
        params = parts.before_invariants[k], parts.after_invariants[k]
        if any(map(_feeds_product, (parts.before, parts.after), params)):
            aligned_slots[k], copy = _align(low, value, invariant_slots[k])
            copies.append(copy)
    return aligned_slots, copies


def _may_be_copied(value: Value) -> bool:
    """Return whether a value is a float matrix that is not known to be too small or too large."""
    type = value.type
    if not isinstance(type, TensorType) or type.shape is None or len(type.shape) < 2:
        return False
    static_dims = [dim for dim in type.shape if isinstance(dim, int)]
    size = math.prod(static_dims) * type.dtype.itemsize
    is_size_suitable = size <= _MAX_COPIED_BYTES and (
        size >= _MIN_COPIED_BYTES or len(static_dims) < len(type.shape)
    )
    return is_size_suitable and type.dtype in (FLOAT64, FLOAT32)


def _feeds_product(graph: Graph, value: Value) -> bool:
    """Return whether a product reads a value, directly or through layout operations."""
    for node in graph.nodes:
        if value not in node.operands:
            continue
        if node.op is contracting.dot_general:
            return True
        if node.op in _LAYOUT_OPS and _feeds_product(graph, node.results[0]):
            return True
        index = node.operands.index(value)
        if any(_feeds_product(region, param) for region, param in _region_params(node, index)):
            return True
    return False


def _region_params(node: Node, index: int) -> list[tuple[Graph, Value]]:
    """Return the regions of a node, with the param that an operand is in each of them."""
    if node.op is while_:
        parts = WhileParts.of(node)
        k = index - len(parts.carry)
        if k < 0:
            return []
        region_params = parts.before_invariants[k], parts.after_invariants[k]
        return [*zip(node.regions, region_params, strict=True)]
    if node.op is if_:
        return [(branch, branch.params[index - 1]) for branch in node.regions]
    return [(callee, callee.params[index]) for callee in node.regions] if node.op is call else []


def _align(low: Lowering, value: Value, slots: Registers) -> tuple[Registers, str]:
    """Return the slots of an aligned matrix, and the copy to release, or null."""
    w, arrays = low.w, low.arrays
    array = arrays.of(value.tensor, slots)
    size = arrays.bytes(array)
    address = w.define(f"ptrtoint ptr {array.pointer} to i64")
    misalignment = w.define(f"and i64 {address}, {_CACHE_LINE_BYTES - 1}")
    is_misaligned = w.define(f"icmp ne i64 {misalignment}, 0")
    above_min_bytes = w.define(f"sub i64 {size}, {_MIN_COPIED_BYTES}")
    is_size_suitable = w.define(
        f"icmp ule i64 {above_min_bytes}, {_MAX_COPIED_BYTES - _MIN_COPIED_BYTES}"
    )
    copy, outside, inside = w.when(
        ("align", "aligned"),
        lambda: w.define(f"and i1 {is_misaligned}, {is_size_suitable}"),
        lambda: arrays.copy(array),
    )
    pointer, copy_or_null = w.merge(
        ["ptr", "ptr"], [((array.pointer, "null"), outside), ((copy.pointer,) * 2, inside)]
    )
    return (pointer, *slots[1:]), copy_or_null
