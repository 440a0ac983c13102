"""Shapes, broadcasting, slices, joining; and arrays made from nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding

from wend.backends.jax.lowering import Emitter, GraphLowering, padded
from wend.backends.jax.meshes import automatic, check_divisible
from wend.backends.jax.values import Stacked, is_static
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ir.types import Dim
from wend.ops import creating, shaping
from wend.ops.shapes import Slices
from wend.ops.sharding import shard


def _array(x: Any, node: Node, k: int = 0) -> Any:
    return jnp.asarray(x, node.operands[k].tensor.dtype)


def _iota(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    length = node.attrs["length"]
    if length is None:
        if not is_static(operands[0]):
            length = ctx.sizes(node.results[0].tensor.dims)
            if length is None:
                raise ctx.data_dependent(node)
            (length,) = length
        else:
            length = int(operands[0])
    return jnp.arange(length, dtype=node.attrs["dtype"])


def _nonnegative(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    x, message = operands[0], node.attrs["message"]

    def fail(values: Sequence[Any]) -> None:
        node.op.kernel(values[0], message=message)  # type: ignore[misc]

    least = jnp.min(jnp.asarray(x), initial=0)
    ctx.check(node, least < 0, fail, least)
    return x


def _from_elements(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    shape = node.attrs["shape"]
    return jnp.stack([_array(x, node) for x in operands]).reshape(shape)


def _shape_of(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    return np.array(np.shape(operands[0]), np.int64)


def _dim_of(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    return np.int64(np.shape(operands[0])[node.attrs["axis"]])


def _broadcast_to(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    x, *sizes = operands
    shape = ctx.shape_of(node, sizes, node.attrs["shape"])
    if _does_not_fit(np.shape(x), shape):
        source = np.shape(x)
        ctx.check(
            node,
            np.bool_(True),
            lambda _: np.broadcast_to(np.broadcast_to(np.int8(0), source), shape),
        )
        return jnp.zeros(shape, node.results[0].tensor.dtype)
    return jnp.broadcast_to(_array(x, node), shape)


def _does_not_fit(source: Sequence[int], target: Sequence[int]) -> bool:
    pairs = zip(source[::-1], target[::-1], strict=False)
    return len(source) > len(target) or any(size not in (1, t) for size, t in pairs)


def _sum_to(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    x, *sizes = operands
    target = ctx.shape_of(node, sizes, node.attrs["shape"])
    x = _array(x, node)
    leading = x.ndim - len(target)
    trailing = x.shape[leading:]
    axes = [axis + leading for axis, size in enumerate(target) if size == 1 and trailing[axis] != 1]
    summed = jnp.sum(x, axis=(*range(leading), *axes), dtype=x.dtype, keepdims=True)
    return summed.reshape(target)


def sized(ctx: GraphLowering, node: Node, x: Any, dims: Sequence[Dim] | None) -> Any:
    """Return an array; one stacked of a list has the first size that its type states.

    Raises:
        UnsupportedError: its type states none.
    """
    if not isinstance(x, Stacked):
        return x
    sizes = ctx.sizes(dims)
    if sizes is None:
        raise ctx.data_dependent(node)
    items, count = x.items.items, sizes[0]
    if x.is_uniform:
        return jnp.broadcast_to(items, (count, *items.shape[1:]))
    return padded(items, count, 0)[:count]


def _refine(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    type = node.attrs["type"]
    x = operands[0]
    if isinstance(x, Stacked) and ctx.sizes(type.shape) is None:
        return x
    refined = sized(ctx, node, x, getattr(type, "shape", None))
    ctx.bind(node.operands[0].type, refined)  # also sizes that the operand's type has as symbols
    return refined


def _keep_shape(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    x, sizes = operands
    if isinstance(x, Stacked):
        x = sized(ctx, node, x, node.attrs["shape"])
    if not is_static(sizes):
        return x
    expected = [a if e < 0 else int(e) for e, a in zip(sizes, np.shape(x), strict=True)]
    if tuple(expected) != np.shape(x):
        shape, attrs = np.shape(x), node.attrs
        kernel: Any = node.op.kernel
        ctx.check(
            node,
            np.bool_(True),
            lambda _: kernel(np.broadcast_to(np.int8(0), shape), sizes, **attrs),
        )
    return x


def _reshape(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    x, *sizes = operands
    if isinstance(x, Stacked):
        target = ctx.shape_of(node, sizes, node.results[0].tensor.dims)
        inner = x.items.items.shape[1:]
        count = math.prod(target) // max(math.prod(inner), 1)
        return sized(ctx, node, x, (count, *inner)).reshape(target)
    shape = node.attrs["shape"]
    if sizes or shape is None or any(not isinstance(dim, int) for dim in shape):
        shape = _inferred_shape(ctx, node, x, sizes) or ctx.shape_of(node, sizes, shape)
    return jnp.reshape(_array(x, node), shape)


def _inferred_shape(
    ctx: GraphLowering, node: Node, x: Any, sizes: Sequence[Any]
) -> tuple[int, ...] | None:
    """Return a shape that the run gives, of which the array leaves one size; else None."""
    dims = [ctx.size(dim) for dim in node.results[0].tensor.shape or ()]
    known = math.prod(dim for dim in dims if dim is not None)
    source = np.shape(x)
    if not sizes or is_static(sizes[0]) or dims.count(None) != 1 or not known:
        return None
    count, remainder = divmod(math.prod(source), known)
    if remainder:
        return None
    shape = tuple(count if dim is None else dim for dim in dims)
    ctx.check(
        node,
        jnp.any(sizes[0] != np.array(shape)),
        lambda values: np.broadcast_to(np.int8(0), source).reshape(values[0]),
        sizes[0],
    )
    return shape


def _transpose(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    return jnp.transpose(_array(operands[0], node), node.attrs["perm"])


def _concat(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    return jnp.concatenate([_array(x, node) for x in operands], axis=node.attrs["axis"])


def _split(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    bounds = np.cumsum(node.attrs["sizes"])[:-1].tolist()
    return tuple(jnp.split(_array(operands[0], node), bounds, axis=node.attrs["axis"]))


def slice_key(slices: Slices) -> tuple[slice, ...]:
    """Return static slices as an index."""
    return tuple(slice(*bounds) for bounds in slices)


def _slice(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    return _array(operands[0], node)[slice_key(node.attrs["slices"])]


def _add_slice(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    into, x = operands
    key = slice_key(node.attrs["slices"])
    return _array(into, node).at[key].add(_array(x, node, 1))


def clipped(bound: Any, size: Any, low: Any, high: Any) -> Any:
    """Return a bound of a slice from the front, clipped as Python clips it."""
    bound = jnp.asarray(bound, jnp.int64)
    return jnp.clip(jnp.where(bound < 0, bound + size, bound), low, high)


def _bounds(start: Any, stop: Any, size: int) -> tuple[Any, Any]:
    """Return the clipped bounds of a slice without a step."""
    return clipped(start, size, 0, size), clipped(stop, size, 0, size)


def _narrow(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    x, start, stop = operands
    axis, size = node.attrs["axis"], node.attrs["size"]
    x = _array(x, node)
    if is_static(start) and is_static(stop):
        return x[(slice(None),) * axis + (slice(int(start), int(stop)),)]
    count = ctx.size(size) if size is not None else None
    if count is None:
        raise ctx.data_dependent(node)
    first, last = _bounds(start, stop, x.shape[axis])

    def fail(values: Sequence[Any]) -> None:
        raise IndexError(f"a part of {count} elements is outside of its array")

    ctx.check(node, last - first != count, fail)
    if count > x.shape[axis]:
        return jnp.zeros((*x.shape[:axis], count, *x.shape[axis + 1 :]), x.dtype)
    return jax.lax.dynamic_slice_in_dim(x, first, count, axis)


def _add_narrow(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    into, x, start, stop = operands
    axis = node.attrs["axis"]
    into, x = _array(into, node), _array(x, node, 1)
    first, _ = _bounds(start, stop, into.shape[axis])
    old = jax.lax.dynamic_slice_in_dim(into, first, x.shape[axis], axis)
    return jax.lax.dynamic_update_slice_in_dim(into, old + x, first, axis)


def _pad(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    widths = node.attrs["widths"]
    x = _array(operands[0], node)
    return jnp.pad(x, widths, constant_values=node.attrs["value"]) if widths else x


def _shard(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    x, sharding = operands[0], node.attrs["sharding"]
    is_inside = bool(ctx.axes) or bool(jax.sharding.get_abstract_mesh().manual_axes)
    if sharding is None or is_inside:  # elements of a map lie where that has them
        return x
    x = _array(x, node)
    check_divisible(node, x.shape)
    if isinstance(sharding, NamedSharding):
        kind = sharding.memory_kind
        sharding = NamedSharding(automatic(sharding.mesh), sharding.spec, memory_kind=kind)
    return jax.lax.with_sharding_constraint(x, sharding)


EMITTERS: dict[Op, Emitter] = {
    shard: _shard,
    creating.iota: _iota,
    creating.nonnegative: _nonnegative,
    creating.from_elements: _from_elements,
    shaping.shape_of: _shape_of,
    shaping.dim_of: _dim_of,
    shaping.broadcast_to: _broadcast_to,
    shaping.sum_to: _sum_to,
    shaping.refine: _refine,
    shaping.keep_shape: _keep_shape,
    shaping.reshape: _reshape,
    shaping.transpose: _transpose,
    shaping.concat: _concat,
    shaping.split: _split,
    shaping.slice_: _slice,
    shaping.add_slice: _add_slice,
    shaping.narrow: _narrow,
    shaping.add_narrow: _add_narrow,
    shaping.pad: _pad,
}
# Those that give a stacked list its size
SIZING = frozenset({shaping.refine, shaping.keep_shape, shaping.reshape})
