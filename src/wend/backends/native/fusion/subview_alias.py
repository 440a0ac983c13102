"""Which parts of arrays nodes name, and whether two are the same, or have nothing in common."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wend.ir.dtypes import INT64
from wend.ir.graph import Node, Value
from wend.ops import creating, elementwise, indexing, parts, shaping, updating

# What takes a part of its first operand, and what puts or adds its second operand there
SUBVIEW_LOADS = {shaping.slice_, shaping.narrow, parts.take_part, indexing.gather}
SUBVIEW_STORES = {updating.set_slice, updating.scatter_set, parts.set_part}

_SLICES = {shaping.slice_, shaping.add_slice, updating.set_slice}
_NARROW = {shaping.narrow, shaping.add_narrow}
_LEADING = {indexing.gather, updating.scatter_set}
_WHOLE: parts.Bounds = (None, None, None)


def positions_of(node: Node) -> Sequence[Value]:
    """The operands that say where a part lies."""
    return node.operands[1 if node.op in SUBVIEW_LOADS else 2 :]


def entries_of(node: Node, rank: int) -> Sequence[parts.Entry]:
    """What a node names of each axis of its first operand, as `ops.parts` has it."""
    if node.op in _SLICES:
        slices: parts.Entries = node.attrs["slices"]
        return slices
    if node.op in _NARROW:
        return [parts.CUT if k == node.attrs["axis"] else _WHOLE for k in range(rank)]
    if node.op in _LEADING:
        count = len(positions_of(node))
        return [parts.AT if k < count else _WHOLE for k in range(rank)]
    entries: parts.Entries = node.attrs["entries"]
    return entries


def must_alias(one: Node, other: Node) -> bool:
    """Whether two nodes name the same part."""
    mine, theirs = positions_of(one), positions_of(other)
    rank = len(one.operands[0].tensor.dims)
    if [*entries_of(one, rank)] != [*entries_of(other, rank)]:
        return False
    return all(_distance(a, b) == 0 for a, b in zip(mine, theirs, strict=True))


def no_alias(one: Node, other: Node) -> bool:
    """Whether two parts of arrays of the same sizes are known to have no element in common."""
    dims = one.operands[0].tensor.dims
    pairs = (parts.by_axis(entries_of(n, len(dims)), positions_of(n)) for n in (one, other))
    for size, (a, mine), (b, theirs) in zip(dims, *pairs, strict=True):
        if a == b == parts.AT and isinstance(size, int):
            far = _distance(mine[0], theirs[0])
            # A negative one counts from the end: so far apart, both cannot be the same position.
            if far is not None and 0 < abs(far) < size:
                return True
    return False


def _distance(x: Value, y: Value) -> int | None:
    """How far one integer is from another, if that is known."""
    (mine, a), (theirs, b) = _apart(x), _apart(y)
    return a - b if mine is theirs else None


def _apart(value: Value) -> tuple[Value | None, int]:
    """An integer as a value, or nothing, and a number that is added."""
    added = 0
    if value.tensor.dtype != INT64:
        return value, 0  # sums of smaller ones may wrap around
    while (node := value.node) is not None and node.op in (elementwise.add, elementwise.sub):
        x, y = node.operands
        sign = 1 if node.op is elementwise.add else -1
        if (number := _number(y)) is not None:
            value, added = x, added + sign * number
        elif sign > 0 and (number := _number(x)) is not None:
            value, added = y, added + number
        else:
            return value, added
    number = _number(value)
    return (value, added) if number is None else (None, added + number)


def _number(value: Value) -> int | None:
    node = value.node
    if node is None or node.op is not creating.constant or value.tensor.shape != ():
        return None
    return int(np.asarray(node.attrs["value"]))
