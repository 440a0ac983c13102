"""Concatenation and padding in a loop nest: each operand is computed where it belongs.

Operands over equal sizes are computed by one loop, each trip of which stores to several subviews.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.emit.loops.index_maps import AffineIndex, AffineIndices, IndexMaps
from wend.backends.native.fusion.body import is_copy
from wend.backends.native.target.kinds import scalar_literal
from wend.backends.native.target.loop_nest import LoopNestParts
from wend.ir.graph import Graph, Node, Value
from wend.ops import shaping

Destinations: TypeAlias = dict[Value, tuple[Array, AffineIndices]]  # where results are written


def emit_concat(
    low: Lowering,
    parts: LoopNestParts,
    index_maps: IndexMaps,
    emit_nest: Callable[[LoopNestParts, Destinations], None],
) -> Array:
    """Emit the loops of a nest that ends in a concatenation or a pad.

    Args:
        low: The lowering of the function.
        parts: The nest.
        index_maps: The index maps of its arrays.
        emit_nest: Emits a nest whose results are subviews of existing arrays.
    """
    (result,) = parts.body.results
    node = result.node
    assert node is not None
    out = low.arrays.new(result.tensor.dtype, index_maps.dims[result])
    if node.op is shaping.pad:
        _fill_borders(low, node, out, index_maps.dims[node.operands[0]])
    for destinations in _loop_groups(low, node, out, index_maps):
        iteration_space = next(iter(destinations)).tensor.dims
        emit_nest(
            LoopNestParts(_body_slice(parts.body, list(destinations)), iteration_space, 0),
            destinations,
        )
    return out


def _body_slice(body: Graph, results: Sequence[Value]) -> Graph:
    """Return the part of a body that some of its values depend on."""
    live, nodes = set(results), []
    for node in reversed(body.nodes):
        if not live.isdisjoint(node.results):
            nodes.append(node)
            live.update(node.operands)
    return Graph(body.name, body.params, tuple(nodes[::-1]), tuple(results))


def _loop_groups(
    low: Lowering, node: Node, out: Array, index_maps: IndexMaps
) -> list[Destinations]:
    """Return the operands with their destinations, grouped by those that share a loop."""
    groups: list[Destinations] = []
    for operand, starts in _operand_starts(low, node, index_maps):
        value = _look_through_reshapes(operand)
        axes = iter(k for k, dim in enumerate(value.tensor.dims) if dim != 1)
        indices = [
            AffineIndex(start) if dim == 1 else AffineIndex(start, next(axes), 1)
            for start, dim in zip(starts, operand.tensor.dims, strict=True)
        ]
        matching_groups = (
            destinations
            for destinations in groups
            if all(_can_share_loop(value, other) for other in destinations)
        )
        destinations = next(matching_groups, {})
        if not destinations:
            groups.append(destinations)
        destinations[value] = out, indices
    return groups


def _can_share_loop(value: Value, other: Value) -> bool:
    """Return whether two values are both computed, over the same sizes."""
    if is_copy(value) or is_copy(other):
        return False
    return value.tensor.dims == other.tensor.dims


def _operand_starts(
    low: Lowering, node: Node, index_maps: IndexMaps
) -> Iterator[tuple[Value, Sequence[str]]]:
    """Yield the operands, and the position where each starts in the result."""
    if node.op is shaping.pad:
        yield node.operands[0], [str(before) for before, _ in node.attrs["widths"]]
        return
    axis, start = node.attrs["axis"], "0"
    for operand in node.operands:
        dims = index_maps.dims[operand]
        yield operand, [start if k == axis else "0" for k in range(len(dims))]
        start = low.sizes.add(start, dims[axis])


def _look_through_reshapes(value: Value) -> Value:
    """Return the computed value behind reshapes that add or drop unit axes, or the value itself."""
    source = value
    while source.node is not None and source.node.op is shaping.reshape:
        source = source.node.operands[0]
    return value if is_copy(source) else source


def _fill_borders(low: Lowering, node: Node, out: Array, inner: Sequence[str]) -> None:
    """Fill the border of a padded array, an axis at a time."""
    sizes, widths = low.sizes, node.attrs["widths"]
    strides = sizes.strides(out.dims)
    fill = np.asarray(node.attrs["value"]).astype(out.dtype)
    literal = scalar_literal(fill[()], out.dtype)
    for axis, (before, after) in enumerate(widths):
        before_axis = [str(first) for first, _ in widths[:axis]]
        after_axis = ["0"] * (len(widths) - axis - 1)
        for size, first in ((before, "0"), (after, sizes.add(str(before), inner[axis]))):
            if not size:
                continue
            start = low.arrays.offset([*before_axis, first, *after_axis], strides)

            def store(position: tuple[str, ...], start: str = start) -> None:
                offset = low.arrays.offset(position, strides, start)
                low.arrays.store(out, offset, literal)

            low.arrays.for_each_position([*inner[:axis], str(size), *out.dims[axis + 1 :]], store)
