"""Parts of arrays whose positions are values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from wend.backends.jax.emit.indexing import array, front_positions
from wend.backends.jax.lowering import Emitter, GraphLowering
from wend.backends.jax.values import is_static
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import parts


class _PartPlace:
    """The place of a part in an array.

    Attributes:
        starts, sizes: by axis, where it starts and how many elements it has; of axes without step.
        key: the static slices to be applied to what starts and sizes cut out.
        dropped: the axes that it does not have.
    """

    def __init__(
        self, ctx: GraphLowering, node: Node, shape: Sequence[int], positions: Sequence[Any]
    ) -> None:
        entries, sizes = node.attrs["entries"], iter(_cut_sizes(ctx, node))
        self.starts: list[Any] = []
        self.sizes: list[int] = []
        self.key: list[slice] = []
        self.dropped: list[int] = []
        at_positions, at_sizes = [], []
        pairs = parts.by_axis(entries, positions)
        for axis, (entry, at) in enumerate(pairs):
            size = shape[axis]
            if entry == parts.AT:
                at_positions.append(at[0])
                at_sizes.append(size)
                self._add(axis, None, 1, slice(None))
                self.dropped.append(axis)
            elif entry == parts.CUT:
                count = _static_count(at, size)
                declared = next(sizes)
                count = declared if count is None else count
                if count is None:
                    raise ctx.data_dependent(node)
                self._add(axis, _first(at[0], size), min(count, size), slice(None))
            else:
                self._add(axis, np.int64(0), size, slice(*entry))
        front = iter(_front(ctx, node, at_positions, at_sizes))
        self.starts = [next(front) if start is None else start for start in self.starts]

    def _add(self, axis: int, start: Any, size: int, key: slice) -> None:
        self.starts.append(start)
        self.sizes.append(size)
        self.key.append(key)

    def cut(self, x: Any) -> Any:
        """Return what starts and sizes cut out of an array."""
        starts = [jnp.asarray(start, jnp.int64) for start in self.starts]
        return jax.lax.dynamic_slice(x, starts, self.sizes)

    def replace(self, into: Any, block: Any) -> Any:
        """Return an array with what they cut out replaced."""
        starts = [jnp.asarray(start, jnp.int64) for start in self.starts]
        return jax.lax.dynamic_update_slice(into, block, starts)

    def whole(self, x: Any, block: Any) -> Any:
        """Return a part with the axes that it does not have."""
        shape = list(block[tuple(self.key)].shape)
        return x.reshape(shape)


def _front(
    ctx: GraphLowering, node: Node, positions: Sequence[Any], sizes: Sequence[int]
) -> Sequence[Any]:
    return front_positions(ctx, node, positions, sizes) if positions else []


def _first(start: Any, size: int) -> Any:
    start = start if is_static(start) else jnp.asarray(start, jnp.int64)
    if is_static(start):
        return np.int64(slice(int(start), None).indices(size)[0])
    return jnp.clip(jnp.where(start < 0, start + size, start), 0, size)


def _static_count(at: Sequence[Any], size: int) -> int | None:
    if not all(is_static(x) for x in at):
        return None
    return len(range(*slice(int(at[0]), int(at[1])).indices(size)))


def _cut_sizes(ctx: GraphLowering, node: Node) -> list[int | None]:
    """Return the sizes of the cut axes that the types state."""
    if "cuts" in node.attrs:
        return [ctx.size(dim) for dim in node.attrs["cuts"]]
    remaining = [entry for entry in node.attrs["entries"] if entry != parts.AT]
    dims = node.operands[1].tensor.dims
    return [ctx.size(dim) for dim, e in zip(dims, remaining, strict=True) if e == parts.CUT]


def _is_empty(x: Any, part: _PartPlace) -> bool:
    return any(size > whole for size, whole in zip(part.sizes, x.shape, strict=True))


def _take(ctx: GraphLowering, node: Node, operands: Sequence[Any]) -> Any:
    x, *positions = operands
    x = array(x, node)
    part = _PartPlace(ctx, node, x.shape, positions)
    if _is_empty(x, part):
        sizes = [size for k, size in enumerate(part.sizes) if k not in part.dropped]
        return jnp.zeros(sizes, x.dtype)
    block = part.cut(x)[tuple(part.key)]
    return jnp.squeeze(block, tuple(part.dropped))


def _put(ctx: GraphLowering, node: Node, operands: Sequence[Any], *, adds: bool) -> Any:
    into, x, *positions = operands
    into, x = array(into, node), array(x, node, 1)
    part = _PartPlace(ctx, node, into.shape, positions)
    if _is_empty(into, part):
        return into
    block = part.cut(into)
    x = part.whole(x, block)
    target = block.at[tuple(part.key)]
    return part.replace(into, target.add(x) if adds else target.set(x))


EMITTERS: dict[Op, Emitter] = {
    parts.take_part: _take,
    parts.set_part: lambda ctx, node, operands: _put(ctx, node, operands, adds=False),
    parts.add_part: lambda ctx, node, operands: _put(ctx, node, operands, adds=True),
}
