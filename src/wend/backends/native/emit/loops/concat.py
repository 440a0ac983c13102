"""Arrays that are put together or padded: each part is written where it belongs.

Parts that are computed over the same sizes are computed in one loop, of which each trip writes into
several parts.
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

Into: TypeAlias = dict[Value, tuple[Array, AffineIndices]]  # where results are written


def join(
    low: Lowering, parts: LoopNestParts, at: IndexMaps, write: Callable[[LoopNestParts, Into], None]
) -> Array:
    """Write the loops of a nest that puts arrays together.

    Args:
        low: what writes.
        parts: the nest.
        at: where its arrays lie.
        write: writes a nest whose results are parts of arrays.
    """
    (result,) = parts.body.results
    node = result.node
    assert node is not None
    made = low.arrays.new(result.tensor.dtype, at.dims[result])
    if node.op is shaping.pad:
        _fill_borders(low, node, made, at.dims[node.operands[0]])
    for values in _passes(low, node, made, at):
        iteration_space = next(iter(values)).tensor.dims
        write(LoopNestParts(_body(parts.body, list(values)), iteration_space, 0), values)
    return made


def _body(body: Graph, results: Sequence[Value]) -> Graph:
    """What some values of a body need of it."""
    needed, nodes = set(results), []
    for node in reversed(body.nodes):
        if not needed.isdisjoint(node.results):
            nodes.append(node)
            needed.update(node.operands)
    return Graph(body.name, body.params, tuple(nodes[::-1]), tuple(results))


def _passes(low: Lowering, node: Node, made: Array, at: IndexMaps) -> list[Into]:
    """The values that are parts, and where they are written; together what is computed alike."""
    found: list[Into] = []
    for operand, starts in _parts(low, node, at):
        value = _computed(operand)
        axes = iter(k for k, dim in enumerate(value.tensor.dims) if dim != 1)
        lines = [
            AffineIndex(start) if dim == 1 else AffineIndex(start, next(axes), 1)
            for start, dim in zip(starts, operand.tensor.dims, strict=True)
        ]
        alike = (into for into in found if all(_are_alike(value, other) for other in into))
        into = next(alike, {})
        if not into:
            found.append(into)
        into[value] = made, lines
    return found


def _are_alike(value: Value, other: Value) -> bool:
    """Whether both are computed, over the same sizes."""
    if is_copy(value) or is_copy(other):
        return False
    return value.tensor.dims == other.tensor.dims


def _parts(low: Lowering, node: Node, at: IndexMaps) -> Iterator[tuple[Value, Sequence[str]]]:
    """Operands, and where each starts in the result."""
    if node.op is shaping.pad:
        yield node.operands[0], [str(before) for before, _ in node.attrs["widths"]]
        return
    axis, start = node.attrs["axis"], "0"
    for operand in node.operands:
        dims = at.dims[operand]
        yield operand, [start if k == axis else "0" for k in range(len(dims))]
        start = low.sizes.add(start, dims[axis])


def _computed(value: Value) -> Value:
    """What is computed where a value is that with more or fewer axes of one element; or itself."""
    found = value
    while found.node is not None and found.node.op is shaping.reshape:
        found = found.node.operands[0]
    return value if is_copy(found) else found


def _fill_borders(low: Lowering, node: Node, made: Array, inner: Sequence[str]) -> None:
    """Put the number beside an array: along each axis between what the axes before have filled."""
    sizes, widths = low.sizes, node.attrs["widths"]
    strides = sizes.strides(made.dims)
    number = np.asarray(node.attrs["value"]).astype(made.dtype)
    literal = scalar_literal(number[()], made.dtype)
    for axis, (before, after) in enumerate(widths):
        inside = [str(first) for first, _ in widths[:axis]]
        rest = ["0"] * (len(widths) - axis - 1)
        for size, first in ((before, "0"), (after, sizes.add(str(before), inner[axis]))):
            if not size:
                continue
            start = low.arrays.offset([*inside, first, *rest], strides)

            def put(position: tuple[str, ...], start: str = start) -> None:
                place = low.arrays.offset(position, strides, start)
                low.arrays.store(made, place, literal)

            low.arrays.nest([*inner[:axis], str(size), *made.dims[axis + 1 :]], put)
