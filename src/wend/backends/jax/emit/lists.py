"""Lists: an array per leaf of the elements, and a length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wend.backends.jax import offload
from wend.backends.jax.emit.maybes import add_values
from wend.backends.jax.lowering import Emitter, GraphLowering, unsized
from wend.backends.jax.values import (
    DeviceList,
    Maybe,
    Stacked,
    TapeSegment,
    TripList,
    element_of_trip_list,
    gathered,
    own,
    row_at,
)
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ir.types import ListType
from wend.ops import lists, spilling


def element_at(items: Any, index: Any) -> Any:
    """Return the element at a position that is not negative."""

    def get(x: Any) -> Any:
        return jax.lax.dynamic_index_in_dim(
            x, index, 0, keepdims=False, allow_negative_indices=False
        )

    return jax.tree.map(get, items)


def _with_element(items: Any, index: Any, element: Any) -> Any:
    def put(x: Any, value: Any) -> Any:
        return jax.lax.dynamic_update_index_in_dim(x, value, index, 0, allow_negative_indices=False)

    return jax.tree.map(put, items, element)


def _fitted(ctx: GraphLowering, node: Node, k: int, element: Any) -> Any:
    """Return an element in the form that it has in its list, the first operand."""
    type = node.operands[0].type
    assert isinstance(type, ListType)
    list_class = ctx.classes.of_use(node, 0)
    assert list_class is not None
    return unsized(ctx.fit(element, type.element, list_class.element))


def push(
    ctx: GraphLowering, node: Node, operands: Sequence[Any], *, is_checked_later: bool
) -> DeviceList | TripList:
    """Return a list with an element more; one that does not fit is lost (D34)."""
    list_class = ctx.classes.of_use(node, 0)
    assert list_class is not None
    list, element = operands
    if isinstance(list, TripList) and list.row is None:
        list = own(list)
    if not isinstance(list.items, TapeSegment):
        list = ctx.fit_list(list, list_class)
    if isinstance(list, TripList) and isinstance(element, TripList):
        assert list_class.element is not None
        element = ctx.fit_list(element, list_class.element)
    else:
        element = _fitted(ctx, node, 1, own(element))
    length = list.length + jnp.int32(1)
    size = None if isinstance(list, TripList) or list.size is None else list.size + 1
    ctx.note_most_element(list_class, ctx.most_of(operands[1]))
    if size is not None and not ctx.grows:
        ctx.bound(list_class, size)
    elif not (is_checked_later and list_class in ctx.live_classes) and not (
        list_class in ctx.bounded_classes and not ctx.grows
    ):
        ctx.note_length(list_class, length, node)
    if isinstance(list, TripList):
        items = _with_element(list.items, list.row, gathered(element, list.axes))
        return replace(list, items=items, length=length, row=list.row + jnp.int32(1))
    if isinstance(element, TapeSegment):
        return DeviceList(offload.push(ctx, node, list, element), length, size)
    return DeviceList(_with_element(list.items, list.length, element), length, size)


def _position(
    ctx: GraphLowering,
    node: Node,
    list: DeviceList | TripList,
    index: Any,
    *,
    is_checked: bool = True,
) -> Any:
    """Return a position from the front; check that it is in the list."""
    index = jnp.asarray(index)
    position = jnp.where(index < 0, index + list.length, index)
    if is_checked:

        def fail(values: Sequence[Any]) -> None:
            raise IndexError(lists.text_of_bad_position(node.op))

        ctx.check(node, (position < 0) | (position >= list.length), fail)
    return position


def _pop(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    (list,) = operands

    def fail(values: Sequence[Any]) -> None:
        [].pop()

    ctx.check(node, list.length <= 0, fail)
    length = list.length - jnp.int32(1)
    size = None if list.size is None else list.size - 1
    return DeviceList(list.items, length, size), element_at(list.items, length)


def _get(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    list, index = operands
    if isinstance(list.items, TapeSegment):
        return offload.get(ctx, node, list, jnp.asarray(index))
    index, common = jnp.asarray(index), ctx.common(index)
    position = index if node.attrs.get("in_bounds") else _position(ctx, node, list, index)
    if not isinstance(list, TripList):
        element = element_at(list.items, position)
    elif common is None:
        element = element_of_trip_list(list, position)
    else:
        element = row_at(list, common)
    ctx.note_most(element, ctx.most_element(ctx.classes.of_use(node, 0)))
    return element


def _set(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    list, index, element = operands
    list_class = ctx.classes.of_use(node, 0)
    assert list_class is not None
    ctx.note_most_element(list_class, ctx.most_of(element))
    position = _position(ctx, node, list, index)
    return _replaced(ctx, node, list, position, element)


def _add_at(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    list, index, element = operands
    position = _position(ctx, node, list, index, is_checked=False)
    total = add_values(element_at(list.items, position), element)
    return _replaced(ctx, node, list, position, total)


def _replaced(
    ctx: GraphLowering, node: Node, list: DeviceList, position: Any, element: Any
) -> DeviceList:
    """Return a list with another element at a position."""
    list_class = ctx.classes.of_use(node, 0)
    assert list_class is not None
    fitted = ctx.fit_list(list, list_class)
    items = _with_element(fitted.items, position, _fitted(ctx, node, 2, element))
    return DeviceList(items, list.length, list.size)


def _len(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    (list,) = operands
    if isinstance(list, DeviceList) and list.size is not None:
        return np.int64(list.size)
    return list.length.astype(jnp.int64)


def zeros_like(value: Any) -> Any:
    """Return zeros of a value's shape, lists of its lengths."""
    if isinstance(value, DeviceList):
        return DeviceList(zeros_like(value.items), value.length, value.size)
    if isinstance(value, Maybe):
        return Maybe(value.is_present, zeros_like(value.value))
    return jnp.zeros_like(value)


def _zeros(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    return zeros_like(operands[0])


def _add(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    return add_values(*operands)


def _stack(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    list = operands[0]
    if isinstance(list.items, Stacked):  # of a map, each with a length of its own
        raise ctx.data_dependent(node)
    return Stacked(list) if list.size is None else list.items[: list.size]


def _unstack(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    x = jnp.asarray(operands[0], node.operands[0].tensor.dtype)
    count = x.shape[0]
    list_class = ctx.classes.of(node.results[0])
    assert list_class is not None
    ctx.note_most_element(list_class, ctx.most_of(operands[0]))
    value = DeviceList(x, jnp.int32(count), count)
    if count == 0:
        value = DeviceList(jnp.zeros((1, *x.shape[1:]), x.dtype), jnp.int32(0), 0)
    return value


def _spill(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    return offload.segment_of(ctx, node, operands)


def _unspill(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    return offload.value_in(operands[0], node)


EMITTERS: dict[Op, Emitter] = {
    lists.list_pop: _pop,
    lists.list_get: _get,
    lists.list_set: _set,
    lists.list_add_at: _add_at,
    lists.list_len: _len,
    lists.list_zeros: _zeros,
    lists.list_add: _add,
    lists.list_stack: _stack,
    lists.list_unstack: _unstack,
    spilling.spill: _spill,
    spilling.unspill: _unspill,
}
