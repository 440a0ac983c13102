"""Reading and writing at positions that are values; sorting and searching."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from wend.backends.jax.lowering import Emitter, GraphLowering
from wend.backends.jax.values import is_static
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import indexing, searching, updating
from wend.ops.frame_states import may_fail


def array(x: Any, node: Node, k: int = 0) -> Any:
    """Return an operand as an array of JAX."""
    return jnp.asarray(x, node.operands[k].tensor.dtype)


def front_positions(
    ctx: GraphLowering, node: Node, indices: Sequence[Any], sizes: Sequence[Any]
) -> list[Any]:
    """Return positions from the front; check that they are in their axes.

    An error shows the first positions that are not. Sizes may be those that only the run knows.
    """
    positions, is_outside = [], []
    for index, size in zip(indices, sizes, strict=True):
        is_known = isinstance(size, int) and is_static(index) and np.size(index)
        if is_known and not ((index < -size) | (index >= size)).any():
            positions.append(jnp.asarray(np.where(index < 0, index + size, index)))
            continue
        wide = jnp.asarray(index).astype(jnp.int64)
        position = jnp.where(wide < 0, wide + size, wide)
        is_outside.append((position < 0) | (position >= size))
        positions.append(position)
    if is_outside and may_fail(node):
        outside = is_outside[0]
        for other in is_outside[1:]:
            outside = outside | other
        if outside.size:
            first = jnp.argmax(outside.reshape(-1))
            shown = [jnp.asarray(i).astype(jnp.int64).reshape(-1)[first] for i in indices]
            unknown = [size for size in sizes if not isinstance(size, int)]

            def fail(values: Sequence[Any]) -> None:
                lengths = iter(values[len(shown) :])
                shape = [size if isinstance(size, int) else int(next(lengths)) for size in sizes]
                # Vectors of positions, whose error shows the number for empty axes, too
                key = tuple(x[np.newaxis] for x in values[: len(shown)])
                np.broadcast_to(np.int8(0), shape)[key]

            ctx.check(node, jnp.any(outside), fail, *shown, *unknown)
    return positions


def _gather(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    x, *indices = operands
    x = array(x, node)
    positions = front_positions(ctx, node, indices, x.shape[: len(indices)])
    if any(size == 0 for size in x.shape[: len(indices)]):
        return jnp.zeros((*np.shape(indices[0]), *x.shape[len(indices) :]), x.dtype)
    return x.at[tuple(positions)].get(mode="clip")


def _position(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    index, size = (jnp.asarray(x).astype(jnp.int64) for x in operands)
    position = jnp.where(index < 0, index + size, index)

    def fail(values: Sequence[Any]) -> None:
        assert node.op.kernel is not None
        node.op.kernel(*values, **node.attrs)

    if may_fail(node):
        ctx.check(node, (position < 0) | (position >= size), fail, index, size)
    return position


def _scatter_add(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    into, x, *indices = operands
    into = array(into, node)
    positions = front_positions(ctx, node, indices, into.shape[: len(indices)])
    return into.at[tuple(positions)].add(array(x, node, 1), mode="drop")


def _scatter_set(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    into, x, *indices = operands
    into, x = array(into, node), array(x, node, 1)
    positions = front_positions(ctx, node, indices, into.shape[: len(indices)])
    if 0 in into.shape[: len(indices)]:
        return into
    if np.ndim(indices[0]) and np.size(indices[0]) > 1:
        return _set_last(into, x, positions)
    return into.at[tuple(positions)].set(x, mode="drop")


def _set_last(into: Any, x: Any, positions: Sequence[Any]) -> Any:
    """Write rows; of several at one position the last, which XLA's scatter does not promise."""
    sizes = into.shape[: len(positions)]
    flat = jnp.zeros_like(positions[0])
    for position, size in zip(positions, sizes, strict=True):
        flat = flat * size + position
    count = flat.shape[0]
    order = jnp.arange(count, dtype=jnp.int32)
    cells = jnp.full(int(np.prod(sizes)), -1, jnp.int32)
    last = cells.at[flat].max(order, mode="drop")
    is_last = last.at[flat].get(mode="clip") == order
    outside = jnp.int64(np.prod(sizes, dtype=np.int64))
    rows = into.reshape(-1, *into.shape[len(positions) :])
    rows = rows.at[jnp.where(is_last, flat, outside)].set(x, mode="drop")
    return rows.reshape(into.shape)


def _along(ctx: GraphLowering, node: Node, indices: Any, like: Any, axis: int) -> tuple[Any, ...]:
    """Return the full index of elements at positions of one axis."""
    (position,) = front_positions(ctx, node, [indices], [like.shape[axis]])
    key = list(jnp.ogrid[tuple(slice(size) for size in np.shape(indices))])
    for k, size in enumerate(like.shape):
        if k != axis and np.shape(indices)[k] != size and size == 1:
            key[k] = jnp.zeros_like(key[k])
    key[axis] = position
    return tuple(key)


def _take_along(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    x, indices = operands
    x, axis = array(x, node), node.attrs["axis"]
    (position,) = front_positions(ctx, node, [indices], [x.shape[axis]])
    return jnp.take_along_axis(x, position, axis, mode="clip")


def _add_along(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    into, x, indices = operands
    into = array(into, node)
    key = _along(ctx, node, indices, into, node.attrs["axis"])
    return into.at[key].add(array(x, node, 1), mode="drop")


def _searchsorted(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    x, values = (array(v, node, k) for k, v in enumerate(operands))
    return jnp.searchsorted(x, values, side=node.attrs["side"])


def _isin(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    x, among = (array(v, node, k) for k, v in enumerate(operands))
    return jnp.isin(x, among)


def _sort(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    return jnp.sort(array(operands[0], node), axis=node.attrs["axis"], stable=True)


def _argsort(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    return jnp.argsort(array(operands[0], node), axis=node.attrs["axis"], stable=True)


EMITTERS: dict[Op, Emitter] = {
    indexing.gather: _gather,
    indexing.position: _position,
    indexing.scatter_add: _scatter_add,
    indexing.take_along: _take_along,
    indexing.add_along: _add_along,
    updating.scatter_set: _scatter_set,
    searching.searchsorted: _searchsorted,
    searching.isin: _isin,
    searching.sort: _sort,
    searching.argsort: _argsort,
}
