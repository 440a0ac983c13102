"""Alias analysis of subviews: which part of an array a node accesses, and whether two overlap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wend.ir.dtypes import INT64
from wend.ir.graph import Node, Value
from wend.ops import creating, elementwise, indexing, parts, shaping, updating
from wend.ops.shapes import WHOLE

# Operations that load a subview of their first operand, and that store their second operand there
SUBVIEW_LOADS = {shaping.slice_, shaping.narrow, parts.take_part, indexing.gather}
SUBVIEW_STORES = {updating.set_slice, updating.scatter_set, parts.set_part}

_SLICES = {shaping.slice_, shaping.add_slice, updating.set_slice}
_NARROW = {shaping.narrow, shaping.add_narrow}
_LEADING_AXES = {indexing.gather, updating.scatter_set}


def subview_positions(node: Node) -> Sequence[Value]:
    """Return the operands that are positions of the subview."""
    return node.operands[1 if node.op in SUBVIEW_LOADS else 2 :]


def subview_entries(node: Node, rank: int) -> Sequence[parts.Entry]:
    """Return the index entry for each axis of the first operand, as in `ops.parts`."""
    if node.op in _SLICES:
        slices: parts.Entries = node.attrs["slices"]
        return slices
    if node.op in _NARROW:
        return [parts.CUT if k == node.attrs["axis"] else WHOLE for k in range(rank)]
    if node.op in _LEADING_AXES:
        count = len(subview_positions(node))
        return [parts.AT if k < count else WHOLE for k in range(rank)]
    entries: parts.Entries = node.attrs["entries"]
    return entries


def must_alias(lhs: Node, rhs: Node) -> bool:
    """Return whether two nodes access the same subview."""
    lhs_positions, rhs_positions = subview_positions(lhs), subview_positions(rhs)
    rank = len(lhs.operands[0].tensor.dims)
    if [*subview_entries(lhs, rank)] != [*subview_entries(rhs, rank)]:
        return False
    return all(_difference(a, b) == 0 for a, b in zip(lhs_positions, rhs_positions, strict=True))


def no_alias(lhs: Node, rhs: Node) -> bool:
    """Return whether two subviews of arrays of equal sizes provably do not overlap."""
    dims = lhs.operands[0].tensor.dims
    pairs = (parts.by_axis(subview_entries(n, len(dims)), subview_positions(n)) for n in (lhs, rhs))
    for size, (lhs_entry, lhs_positions), (rhs_entry, rhs_positions) in zip(
        dims, *pairs, strict=True
    ):
        if lhs_entry == rhs_entry == parts.AT and isinstance(size, int):
            difference = _difference(lhs_positions[0], rhs_positions[0])
            # Negative positions count from the end, so positions a whole size apart may coincide.
            if difference is not None and 0 < abs(difference) < size:
                return True
    return False


def _difference(x: Value, y: Value) -> int | None:
    """Return the difference of two integers if it is a known constant, else None."""
    (lhs_base, lhs_offset), (rhs_base, rhs_offset) = _affine_parts(x), _affine_parts(y)
    return lhs_offset - rhs_offset if lhs_base is rhs_base else None


def _affine_parts(value: Value) -> tuple[Value | None, int]:
    """Return an integer as a base value, or None for a constant, plus a constant offset."""
    offset = 0
    if value.tensor.dtype != INT64:
        return value, 0  # sums of narrower integers may wrap around
    while (node := value.node) is not None and node.op in (elementwise.add, elementwise.sub):
        x, y = node.operands
        sign = 1 if node.op is elementwise.add else -1
        if (number := _constant_value(y)) is not None:
            value, offset = x, offset + sign * number
        elif sign > 0 and (number := _constant_value(x)) is not None:
            value, offset = y, offset + number
        else:
            return value, offset
    number = _constant_value(value)
    return (value, offset) if number is None else (None, offset + number)


def _constant_value(value: Value) -> int | None:
    node = value.node
    if node is None or node.op is not creating.constant or value.tensor.shape != ():
        return None
    return int(np.asarray(node.attrs["value"]))
