"""The memory that the arrays of a loop's carry take while trips replace them."""

from __future__ import annotations

from collections.abc import Mapping

from wend.ir.graph import Node, Value
from wend.ir.types import TensorType
from wend.ops import lists
from wend.ops.control import WhileParts
from wend.passes.lane_maps import is_elementwise


def carry_buffers(w: WhileParts) -> list[tuple[list[Value], int]]:
    """Return the arrays of the carry that shift into each other, with their number of buffers.

    An array has one buffer if a trip computes the next in place of it, else two. Arrays that a trip
    shifts, as in `x1, x2 = x0, x1`, rotate in a ring. Arrays that a loop records have no buffers of
    their own, nor have those of sizes that only the run knows.
    """
    sources = {
        inner: w.before_carry.index(x)
        for x, inner in zip(w.forwarded, w.after_forwarded, strict=True)
        if x in w.before_carry
    }
    params = {k: x for x, k in sources.items()}
    shifted_to = {sources[x]: k for k, x in enumerate(w.next_carry) if x in sources}
    last_readers = {
        x: node for region in (w.before, w.after) for node in region.nodes for x in node.operands
    }
    rings = []
    for k, (param, following) in enumerate(zip(w.before_carry, w.next_carry, strict=True)):
        type = param.type
        is_array = isinstance(type, TensorType) and type.is_static and type.shape != ()
        if not is_array or following in sources or _is_recorded(param, params.get(k), last_readers):
            continue
        ring, at_end = [param], k
        while at_end in shifted_to:
            at_end = shifted_to[at_end]
            ring.append(w.before_carry[at_end])
        replaced = params.get(at_end)
        is_in_place = replaced is not None and _replaces(following, replaced, last_readers)
        rings.append((ring, len(ring) + (not is_in_place)))
    return rings


def _is_recorded(param: Value, inner: Value | None, last_readers: Mapping[Value, Node]) -> bool:
    """Return whether a list takes over the arrays of a carry."""
    readers = [last_readers[x] for x in (param, inner) if x is not None and x in last_readers]
    return any(node.op is lists.list_push for node in readers)


def _replaces(value: Value, old: Value, last_readers: Mapping[Value, Node]) -> bool:
    """Return whether a value is computed in the memory of an array that nothing else reads."""
    if value is old:
        return True
    node = value.node
    if node is None:
        return False
    operands = node.operands if is_elementwise(node) else ()
    if node.op.updates is not None:
        operands = (node.operands[node.op.updates],)
    free = {x for x in operands if x.type == value.type and last_readers.get(x) is node}
    return any(_replaces(x, old, last_readers) for x in free)
