"""How long a traced list is, where the graph tells before the run; and how large its items."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wend.ir.graph import Value
from wend.ir.types import Dim, Symbol, TensorType
from wend.ops import creating, elementwise, lists, shaping
from wend.ops.build import Build
from wend.ops.control import WhileParts, while_


def known_length(list: Value) -> Dim | None:
    """The number of items: so many pushes, in loops of so many trips; None where it depends."""
    return _pushes(list, None)


def _pushes(list: Value, base: Value | None) -> Dim | None:
    """How many items a list has more than `base`, from which it grew; than none, if it is None."""
    if list is base:
        return 0
    node = list.node
    if node is None:
        return None
    if node.op is lists.list_new and base is None:
        return 0
    if node.op is lists.list_push:
        return _sum(_pushes(node.operands[0], base), 1)
    if node.op is while_:
        w, place = WhileParts.of(node), list.index
        if w.forwarded[place] not in w.before_carry:
            return None
        i = w.before_carry.index(w.forwarded[place])
        each = _pushes(w.next_carry[i], w.after_forwarded[place])
        return _sum(_pushes(w.carry[i], base), _product(each, _trips(w)))
    return None


def _trips(w: WhileParts) -> Dim | None:
    """The trip count of a loop that counts to a bound: a number, or the size of an array."""
    test = w.predicate.node
    if test is None or test.op not in (elementwise.lt, elementwise.gt):
        return None
    counter, bound = test.operands
    if counter not in w.before_carry or counter not in w.forwarded:
        return None
    i = w.before_carry.index(counter)
    following, now = w.next_carry[i].node, w.after_forwarded[w.forwarded.index(counter)]
    if following is None or following.op is not elementwise.add or following.operands[0] is not now:
        return None
    start, step = _number(w.carry[i]), _number(following.operands[1])
    limit = _size(_outside(w, bound))
    if start is None or not step or limit is None or (step > 0) != (test.op is elementwise.lt):
        return None
    if isinstance(limit, int):
        return len(range(start, limit, step))
    return limit if (start, step) == (0, 1) else None


def _outside(w: WhileParts, value: Value) -> Value:
    """What stands outside the loop for a value of its test."""
    if value in w.before_invariants:
        return w.invariants[w.before_invariants.index(value)]
    return value


def _size(value: Value) -> Dim | None:
    node = value.node
    if node is not None and node.op is shaping.dim_of:
        array = node.operands[0].type
        assert isinstance(array, TensorType)
        axis: int = node.attrs["axis"]
        return array.dims[axis]
    return _number(value)


def _number(value: Value) -> int | None:
    node = value.node
    if node is None or node.op is not creating.constant:
        return None
    found = node.attrs["value"]
    return int(found) if found.dtype.kind in "iu" and found.shape == () else None


def _sum(a: Dim | None, b: Dim | None) -> Dim | None:
    if a == 0 or b == 0:
        return b if a == 0 else a
    return a + b if isinstance(a, int) and isinstance(b, int) else None


def _product(a: Dim | None, b: Dim | None) -> Dim | None:
    if a == 0 or b == 0:
        return 0
    if a == 1 or b == 1:
        return b if a == 1 else a
    return a * b if isinstance(a, int) and isinstance(b, int) else None


def items_shape(b: Build, type: TensorType, arrays: Iterable[Value]) -> Value | None:
    """The shape of a list's items as a vector; None where no array outside has such a size."""
    if type.is_static:
        return b.constant(type.dims, np.int64)
    places: dict[Dim, tuple[Value, int]] = {}
    for array in arrays:
        if isinstance(array.type, TensorType) and array.type.shape is not None:
            places.update((dim, (array, axis)) for axis, dim in enumerate(array.type.dims))
    if any(isinstance(dim, Symbol) and dim not in places for dim in type.dims):
        return None
    sizes = [
        b.size_of(*places[dim]) if isinstance(dim, Symbol) else b.integer(dim) for dim in type.dims
    ]
    return b.concat(*(b.insert_axes(size, axes=(0,)) for size in sizes), axis=0)
