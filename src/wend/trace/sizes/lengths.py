"""Static lengths of traced lists, and the shapes of their items."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wend.ir.graph import Value
from wend.ir.types import Dim, Symbol, TensorType
from wend.ops import lists
from wend.ops.build import Build
from wend.ops.control import WhileParts, while_
from wend.ops.loop_counters import trip_count


def static_length(list: Value) -> Dim | None:
    """Return the number of items if the graph determines it, or None.

    It is the number of pushes, each times the trip counts of the loops around it.
    """
    return _pushes(list, None)


def _pushes(list: Value, base: Value | None) -> Dim | None:
    """Return how many more items a list has than `base`, from which it grew.

    With `base` None the count starts from an empty list.
    """
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
        w, position = WhileParts.of(node), list.index
        if w.forwarded[position] not in w.before_carry:
            return None
        i = w.before_carry.index(w.forwarded[position])
        per_trip = _pushes(w.next_carry[i], w.after_forwarded[position])
        return _sum(_pushes(w.carry[i], base), _product(per_trip, trip_count(w)))
    return None


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
    """Return the shape of a list's items as a vector.

    Each symbolic size is read from the first array that has it, where the size comes from; None if
    an array is missing.
    """
    if type.is_static:
        return b.constant(type.dims, np.int64)
    axes: dict[Dim, tuple[Value, int]] = {}
    for array in arrays:
        if isinstance(array.type, TensorType) and array.type.shape is not None:
            for axis, dim in enumerate(array.type.dims):
                axes.setdefault(dim, (array, axis))  # later ones may be what an attempt left
    if any(isinstance(dim, Symbol) and dim not in axes for dim in type.dims):
        return None
    sizes = [
        b.size_of(*axes[dim]) if isinstance(dim, Symbol) else b.integer(dim) for dim in type.dims
    ]
    return b.concat(*(b.insert_axes(size, axes=(0,)) for size in sizes), axis=0)
