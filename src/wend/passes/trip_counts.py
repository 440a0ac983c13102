"""The trip counts of counted loops."""

from __future__ import annotations

from wend.ir.graph import Value
from wend.ir.types import Dim, TensorType
from wend.ops import creating, elementwise, shaping
from wend.ops.control import WhileParts


def trip_count(w: WhileParts) -> Dim | None:
    """Return the trip count of a counted loop: a number, or the size of an array."""
    test = w.predicate.node
    if test is None or test.op not in (elementwise.lt, elementwise.gt):
        return None
    counter, bound = test.operands
    if counter not in w.before_carry or counter not in w.forwarded:
        return None
    i = w.before_carry.index(counter)
    update, current = w.next_carry[i].node, w.after_forwarded[w.forwarded.index(counter)]
    if update is None or update.op is not elementwise.add or update.operands[0] is not current:
        return None
    start, step = _constant(w.carry[i]), _constant(update.operands[1])
    limit = _as_dim(_outer_value(w, bound))
    if start is None or not step or limit is None or (step > 0) != (test.op is elementwise.lt):
        return None
    if isinstance(limit, int):
        return len(range(start, limit, step))
    return limit if (start, step) == (0, 1) else None


def _outer_value(w: WhileParts, value: Value) -> Value:
    """Return the outer value that an invariant of the test stands for."""
    if value in w.before_invariants:
        return w.invariants[w.before_invariants.index(value)]
    return value


def _as_dim(value: Value) -> Dim | None:
    node = value.node
    if node is not None and node.op is shaping.dim_of:
        array = node.operands[0].type
        assert isinstance(array, TensorType)
        axis: int = node.attrs["axis"]
        return array.dims[axis]
    return _constant(value)


def _constant(value: Value) -> int | None:
    node = value.node
    if node is None or node.op is not creating.constant:
        return None
    array = node.attrs["value"]
    return int(array) if array.dtype.kind in "iu" and array.shape == () else None
