"""Arrays whose first size only the run knows, as those of a list: rows, and how many they are.

What Python does with parts of lists, as `out[::-1]` or `out[2:]`, comes as parts of such arrays;
`np.sum(np.array(out) ** 2)` computes on with one, and `x[:k]` gives one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from wend.backends.jax.emit import checking, elementwise, reducing
from wend.backends.jax.emit.indexing import array, front_positions
from wend.backends.jax.emit.shaping import EMITTERS as OF_ARRAYS
from wend.backends.jax.emit.shaping import clipped, slice_key
from wend.backends.jax.lowering import Emitter, GraphLowering, padded
from wend.backends.jax.values import DeviceList, Stacked, is_static
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import effects, indexing, lists, shaping
from wend.ops import reducing as reducing_ops
from wend.ops.frame_states import may_fail


def emit_of_stacked(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any | None:
    """Return the result of a node of stacked arrays; None if it needs to know their sizes."""
    stacked = [x for x in operands if isinstance(x, Stacked)]
    if not stacked and node.op not in _MAKES_STACKED:
        return None
    if any(x.is_uniform for x in stacked) and node.op not in _TAKES_UNIFORM:
        return None
    if node.op in elementwise.EMITTERS:
        return _elementwise(ctx, node, operands)
    if node.op in _IDENTITIES:
        return _reduce(ctx, node, operands)
    emitter = _EMITTERS.get(node.op)
    return None if emitter is None else emitter(ctx, node, operands)


def _elementwise(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    """Compute the elements of all rows; those beyond the last one mean nothing."""
    rows = _rows_of(operands)
    if rows is None or may_fail(node):
        return None
    result = elementwise.EMITTERS[node.op](ctx, node, rows)
    return _like(operands, result)


def _rows_of(operands: Sequence[Any]) -> list[Any] | None:
    """Return the rows of arrays of one length, with one room; None if others are among them."""
    if not all(isinstance(x, Stacked) for x in operands):
        return None
    room = max(x.items.capacity for x in operands)

    def fit(x: Stacked) -> Any:
        rows = x.items.items
        return (
            jnp.broadcast_to(rows, (room, *rows.shape[1:]))
            if x.is_uniform
            else padded(rows, room, 0)
        )

    return [fit(x) for x in operands]


def _like(operands: Sequence[Stacked], rows: Any) -> Stacked:
    """Return an array with rows made of those of others."""
    is_uniform = all(x.is_uniform for x in operands)
    return Stacked(DeviceList(rows, operands[0].items.length), is_uniform)


def _reduce(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    x, axes = operands[0].items, node.attrs["axes"]
    reduce = reducing.EMITTERS[node.op]
    if 0 not in axes:
        return Stacked(DeviceList(reduce(ctx, node, [x.items]), x.length))
    if node.op in _HAVE_NO_IDENTITY:
        shape = (0, *x.items.shape[1:])

        def fail(values: Sequence[Any]) -> None:
            node.op.kernel(np.zeros(shape), **node.attrs)  # type: ignore[misc]

        ctx.check(node, x.length == 0, fail)
    return reduce(ctx, node, [_filled(x, _IDENTITIES[node.op](x.items.dtype))])


def _filled(x: DeviceList, value: Any) -> Any:
    """Return rows, with a value in those beyond the last one."""
    is_row = (jnp.arange(x.capacity) < x.length).reshape(-1, *[1] * (x.items.ndim - 1))
    return jnp.where(is_row, x.items, value)


def _cumsum(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    x = operands[0].items
    sums = reducing.EMITTERS[node.op](ctx, node, [_filled(x, 0)])
    return Stacked(DeviceList(sums, x.length))


def _concat(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    """Join parts of rows."""
    rows = _rows_of(operands)
    if node.attrs["axis"] == 0 or rows is None:
        return None
    return _like(operands, jnp.concatenate(rows, axis=node.attrs["axis"]))


def _rows_in(x: Any, node: Node, k: int = 0) -> DeviceList:
    """Return an operand as rows."""
    if isinstance(x, Stacked):
        return x.items
    return DeviceList(array(x, node, k), jnp.int32(np.shape(x)[0]))


def _positions(part: tuple[Any, Any, int | None], length: Any, room: int) -> tuple[Any, Any]:
    """Return the positions of a slice, with more up to the room, and how many there are."""
    start, stop, step = part
    step = 1 if step is None else step
    length = jnp.asarray(length, jnp.int64)
    low, high = (0, length) if step > 0 else (-1, length - 1)
    first, last = (low, high) if step > 0 else (high, low)
    first = first if start is None else clipped(start, length, low, high)
    last = last if stop is None else clipped(stop, length, low, high)
    span = last - first if step > 0 else first - last
    count = jnp.maximum((span + (abs(step) - 1)) // abs(step), 0)
    return first + step * jnp.arange(room), count.astype(jnp.int32)


def _part(x: DeviceList, part: tuple[Any, Any, int | None], key: Sequence[slice]) -> Stacked:
    positions, count = _positions(part, x.length, x.capacity)
    rows = x.items.at[positions].get(mode="clip")
    return Stacked(DeviceList(rows[(slice(None), *key)], count))


def _add_part(
    into: DeviceList, x: DeviceList, part: tuple[Any, Any, int | None], key: Sequence[slice]
) -> Stacked:
    positions, _ = _positions(part, into.length, x.capacity)
    is_row = jnp.arange(x.capacity) < x.length
    position = jnp.where(is_row, positions, into.capacity)
    rows = into.items.at[(position, *key)].add(x.items, mode="drop")
    return Stacked(DeviceList(rows, into.length))


def _slice(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    first, *others = node.attrs["slices"]
    return _part(_rows_in(operands[0], node), first, slice_key(others))


def _add_slice(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    into, x = operands[0], _rows_in(operands[1], node, 1)
    first, *others = node.attrs["slices"]
    rows = _rows_of(operands) if first in _WHOLE else None
    if rows is not None:
        key = (slice(None), *slice_key(others))
        return _like(operands, rows[0].at[key].add(rows[1]))
    if isinstance(operands[1], Stacked) and operands[1].is_uniform:
        return None
    if isinstance(into, Stacked) and into.is_uniform:
        room = _room_around(first, x.capacity)
        if room is None:
            return None
        rows = jnp.broadcast_to(into.items.items, (room, *into.items.items.shape[1:]))
        into = Stacked(DeviceList(rows, into.items.length))
    return _add_part(_rows_in(into, node), x, first, slice_key(others))


def _room_around(part: tuple[Any, Any, int | None], count: int) -> int | None:
    """Return the most rows of an array whose part has so many; None if there is no bound."""
    start, stop, step = part
    step = 1 if step is None else step
    first, end = (start, stop) if step > 0 else (stop, start)
    is_bounded = end is None and (first is None or first >= 0)
    return count * abs(step) + (first or 0) + 1 if is_bounded else None


def _narrow(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    x, start, stop = operands
    size = node.attrs["size"]
    if node.attrs["axis"] != 0 and isinstance(x, Stacked):
        return _like([x], OF_ARRAYS[node.op](ctx, node, [x.items.items, start, stop]))
    is_known = (is_static(start) and is_static(stop)) or ctx.sizes(None if size is None else [size])
    if node.attrs["axis"] != 0 or (is_known and not isinstance(x, Stacked)):
        return None
    return _part(_rows_in(x, node), (start, stop, 1), ())


def _add_narrow(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    into, x, start, stop = operands
    rows = _rows_of([into, x]) if node.attrs["axis"] != 0 else None
    if rows is not None:
        return _like([into, x], OF_ARRAYS[node.op](ctx, node, [*rows, start, stop]))
    if node.attrs["axis"] != 0 or (isinstance(x, Stacked) and x.is_uniform):
        return None
    added = _add_part(_rows_in(into, node), _rows_in(x, node, 1), (start, stop, 1), ())
    return added if isinstance(into, Stacked) else added.items.items


def _unstack(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    list_class = ctx.classes.of(node.results[0])
    assert list_class is not None
    ctx.note_most_element(list_class, None)
    return operands[0].items


def _shape_of(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    x = operands[0].items
    sizes = jnp.stack([jnp.asarray(n, jnp.int64) for n in (x.length, *x.items.shape[1:])])
    ctx.note_room_in(sizes, x.capacity)
    return sizes


def _dim_of(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    x, axis = operands[0].items, node.attrs["axis"]
    return jnp.asarray(x.items.shape[axis] if axis else x.length, jnp.int64)


def _reshape(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    """Return an array whose rows have another shape."""
    x, dims = operands[0], node.results[0].tensor.dims
    inner = ctx.sizes(dims[1:])
    if not dims or ctx.size(dims[0]) is not None or inner is None:
        return None
    rows = x.items.items
    if math.prod(inner) != math.prod(rows.shape[1:]):
        return None
    return _like([x], rows.reshape(rows.shape[0], *inner))


def _broadcast_to(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    x, *sizes = operands
    dims = node.results[0].tensor.dims
    inner = ctx.sizes(dims[1:])
    if not sizes or is_static(sizes[0]) or inner is None or ctx.size(dims[0]) is not None:
        return None
    room = ctx.room_in(sizes[0])
    if isinstance(x, Stacked):
        return _broadcast_rows(ctx, node, x, sizes[0], room, inner)
    if np.ndim(x) == len(dims) and np.shape(x)[0] != 1:
        return None
    x = jnp.asarray(x, node.operands[0].tensor.dtype)
    rows = jnp.broadcast_to(x, (1 if room is None else room, *inner))
    return Stacked(DeviceList(rows, sizes[0][0].astype(jnp.int32)), is_uniform=room is None)


def _broadcast_rows(
    ctx: GraphLowering,
    node: Node,
    x: Stacked,
    sizes: Any,
    room: int | None,
    inner: tuple[int, ...],
) -> Stacked | None:
    """Return an array whose rows are those of another one, or its one row as often as asked."""
    rows, length, count = x.items.items, x.items.length, sizes[0].astype(jnp.int32)
    fits = node.operands[0].tensor.dims[:1] == node.results[0].tensor.dims[:1]
    can_fail = may_fail(node) or not ctx.enclosing or fits
    if rows.ndim != 1 + len(inner) or (room is None and x.is_uniform) or not can_fail:
        return None
    shape = rows.shape[1:]
    room = rows.shape[0] if room is None or x.is_uniform else max(room, rows.shape[0])

    def fail(values: Sequence[Any]) -> None:
        if values[0] == 1:
            raise ctx.data_dependent(node)
        node.op.kernel(np.zeros((int(values[0]), *shape)), values[1], **node.attrs)  # type: ignore[misc]

    has_room = x.is_uniform or count <= room
    is_failing = (length != count) & ((length != 1) | ~jnp.asarray(has_room))
    if not fits:
        ctx.check(node, is_failing, fail, length, sizes)
    if not (fits or x.is_uniform):
        rows = jnp.where(length == 1, rows[:1], padded(rows, room, 0))
    return Stacked(DeviceList(jnp.broadcast_to(rows, (rows.shape[0], *inner)), count), x.is_uniform)


def _broadcast_shapes(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    """Return the shape of arrays that broadcast, of which the run knows the first sizes."""
    if len({len(x) for x in operands}) != 1 or not may_fail(node):
        return None
    rooms = [int(x[0]) if is_static(x) else ctx.room_in(x) for x in operands]
    shapes = jnp.stack([jnp.asarray(x, jnp.int64) for x in operands])
    sizes = shapes[0]
    for shape in shapes[1:]:
        sizes = jnp.where(sizes == 1, shape, sizes)

    def fail(values: Sequence[Any]) -> None:
        node.op.kernel(*values[0], **node.attrs)  # type: ignore[misc]

    ctx.check(node, jnp.any((shapes != sizes) & (shapes != 1)), fail, shapes)
    known = [room for room in rooms if room is not None]
    if len(known) == len(rooms):
        ctx.note_room_in(sizes, max(known))
    return sizes


def _sum_to(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    """Sum up parts of rows, or the rows where there was one."""
    x, *sizes = operands
    dims = node.results[0].tensor.dims
    inner, shape = ctx.sizes(dims[1:]), x.items.items.shape
    if inner is None or len(dims) != len(shape) or ctx.size(dims[0]) is not None or not sizes:
        return None
    axes = [k for k, size in enumerate(inner, 1) if size == 1 and shape[k] != 1]
    rows, count = x.items.items, sizes[0][0].astype(jnp.int32)
    rows = jnp.sum(rows, axis=tuple(axes), dtype=rows.dtype, keepdims=True)
    summed = DeviceList(rows, x.items.length)
    total = jnp.sum(_filled(summed, 0), axis=0, dtype=rows.dtype, keepdims=True)
    return Stacked(DeviceList(jnp.where(count == x.items.length, rows, total), count))


def _checked(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    """Check what a run says of an array, as that it has elements."""
    x, *predicates = operands
    if any("{" in text for text in node.attrs["texts"]):  # it would show the elements
        return None
    checking.check_each(ctx, node, predicates, np.int8(0))
    return x


def _gather(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    """Return elements at positions."""
    x, *indices = operands
    key = _key(ctx, node, x, indices)
    return None if key is None else x.items.items.at[key].get(mode="clip")


def _scatter_add(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    into, x, *indices = operands
    key = None if isinstance(x, Stacked) else _key(ctx, node, into, indices)
    if key is None:
        return None
    rows = into.items.items.at[key].add(array(x, node, 1), mode="drop")
    return Stacked(DeviceList(rows, into.items.length))


def _key(ctx: GraphLowering, node: Node, x: Any, indices: Sequence[Any]) -> tuple[Any, ...] | None:
    """Return positions from the front in the axes of an array; check that they are in these."""
    if not isinstance(x, Stacked) or any(isinstance(index, Stacked) for index in indices):
        return None
    sizes = (x.items.length, *x.items.items.shape[1:])
    return tuple(front_positions(ctx, node, indices, sizes[: len(indices)]))


def _least(dtype: np.dtype) -> Any:
    return dtype.type(
        -np.inf if dtype.kind == "f" else False if dtype.kind == "b" else np.iinfo(dtype).min
    )


def _most(dtype: np.dtype) -> Any:
    return dtype.type(
        np.inf if dtype.kind == "f" else True if dtype.kind == "b" else np.iinfo(dtype).max
    )


_WHOLE = (None, None, None), (None, None, 1)  # slices
_MAKES_STACKED = {shaping.broadcast_to, shaping.broadcast_shapes, shaping.narrow}
_TAKES_UNIFORM = {*elementwise.EMITTERS, shaping.concat, shaping.reshape, shaping.dim_of}
_TAKES_UNIFORM |= {shaping.broadcast_to, shaping.add_slice}
_HAVE_NO_IDENTITY = {reducing_ops.reduce_max, reducing_ops.reduce_min}
_IDENTITIES: dict[Op, Callable[[np.dtype], Any]] = {
    reducing_ops.reduce_sum: lambda dtype: 0,
    reducing_ops.reduce_prod: lambda dtype: 1,
    reducing_ops.reduce_any: lambda dtype: False,
    reducing_ops.reduce_all: lambda dtype: True,
    reducing_ops.reduce_max: _least,
    reducing_ops.reduce_min: _most,
}
_EMITTERS: dict[Op, Emitter] = {
    reducing_ops.cumsum: _cumsum,
    shaping.concat: _concat,
    shaping.slice_: _slice,
    shaping.add_slice: _add_slice,
    shaping.narrow: _narrow,
    shaping.add_narrow: _add_narrow,
    shaping.shape_of: _shape_of,
    shaping.dim_of: _dim_of,
    shaping.reshape: _reshape,
    shaping.broadcast_to: _broadcast_to,
    shaping.broadcast_shapes: _broadcast_shapes,
    shaping.sum_to: _sum_to,
    effects.checked: _checked,
    indexing.gather: _gather,
    indexing.scatter_add: _scatter_add,
    lists.list_unstack: _unstack,
}
