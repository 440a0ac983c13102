"""Gather and scatter along one axis, with a position for each element; positions of nonzeros."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.emit.array.in_place import add_element, adds, writable
from wend.backends.native.emit.array.indexing import checked_position
from wend.backends.native.emit.scalar.casting import emit_cast
from wend.backends.native.target.kinds import WORD
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.ir.dtypes import INT64
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import indexing, searching

# Emits the work on an element: (offset among the positions, offset in the array)
Body = Callable[[str, str], None]


def emit_take_along(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit copies of the elements at positions along an axis."""
    if not _has_matching_dims(node, 1):
        return NotImplemented
    array, positions = low.array(node, 0), low.array(node, 1)
    low.check_equal_dims(array.dims, positions.dims, node.attrs["axis"])
    out = low.new_result(node, positions.dims)
    _for_each_position(
        low, node, array, positions, lambda k, at: low.arrays.copy_element(out, k, array, at)
    )
    return [low.array_result(node, out)]


def emit_add_along(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit additions at positions along an axis, in order; in place at the last use."""
    if not adds(node.operands[0].tensor.dtype):
        return NotImplemented
    return _scatter_along(low, node, partial(add_element, low))


def emit_set_along(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit stores at positions along an axis, in order; in place at the last use."""
    return _scatter_along(low, node, low.arrays.copy_element)


def _scatter_along(
    low: Lowering, node: Node, update: Callable[[Array, str, Array, str], None]
) -> Any:
    """Emit an update of each element at a position along an axis."""
    if not _has_matching_dims(node, 2):
        return NotImplemented
    source, positions = low.array(node, 1), low.array(node, 2)
    low.check_equal_dims(low.array(node, 0).dims, positions.dims, node.attrs["axis"])
    low.check_equal_dims(source.dims, positions.dims)
    if low.traps.state is not None:
        _for_each_position(low, node, low.array(node, 0), positions, lambda k, at: None)
    target = writable(low, node, 0)
    _for_each_position(low, node, target, positions, lambda k, at: update(target, at, source, k))
    return [low.array_result(node, target)]


def _has_matching_dims(node: Node, index: int) -> bool:
    """Return whether the positions have the dims of the array, except along the axis.

    The NumPy kernels accept other positions too, but no caller passes them.
    """
    axis = node.attrs["axis"]
    if any(is_scalar(value.type) for value in node.operands):
        return False
    pairs = zip(node.operands[0].tensor.dims, node.operands[index].tensor.dims, strict=True)
    static_pairs = [
        p for k, p in enumerate(pairs) if k != axis and all(isinstance(d, int) for d in p)
    ]
    return all(dim == position_dim for dim, position_dim in static_pairs)


def _for_each_position(
    low: Lowering, node: Node, array: Array, positions: Array, body: Body
) -> None:
    """Emit a body for each position."""
    axis, sizes = node.attrs["axis"], low.sizes
    strides, position_strides = sizes.strides(array.dims), sizes.strides(positions.dims)

    def each(index: tuple[str, ...]) -> None:
        k = low.arrays.offset(index, position_strides)
        position = emit_cast(low.w, positions.kind, WORD, low.arrays.load(positions, k))
        wrapped = checked_position(low, position, array.dims[axis])
        body(k, low.arrays.offset((*index[:axis], wrapped, *index[axis + 1 :]), strides))

    low.arrays.for_each_position(positions.dims, each)


def emit_nonzero(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit the coordinates of nonzeros, one vector per axis.

    A first loop counts them. A second one stores the coordinates of each element without branches,
    and moves on only after a nonzero.
    """
    if is_scalar(node.operands[0].type):
        return NotImplemented
    mask, w = low.array(node, 0), low.w

    def flag(k: str) -> str:
        return w.define(f"zext i1 {low.arrays.load(mask, k)} to i64")

    (count,) = w.fold(
        low.arrays.count(mask),
        ["i64"],
        ["0"],
        lambda k, total: [w.define(f"add i64 {total[0]}, {flag(k)}")],
    )
    # The elements behind the last nonzero are stored, too.
    capacity = low.sizes.add(count, "1")
    out = [low.arrays.new(INT64, (capacity,)) for _ in node.results]
    cursor = w.allocate("i64")
    w.do(f"store i64 0, ptr {cursor}")
    strides = low.sizes.strides(mask.dims)

    def each(index: tuple[str, ...]) -> None:
        at = w.define(f"load i64, ptr {cursor}")
        for array, coordinate in zip(out, index, strict=True):
            low.arrays.store(array, at, coordinate)
        following = w.define(f"add i64 {at}, {flag(low.arrays.offset(index, strides))}")
        w.do(f"store i64 {following}, ptr {cursor}")

    low.arrays.for_each_position(mask.dims, each)
    return [
        low.array_result(node, Array(array.pointer, INT64, (count,)), k)
        for k, array in enumerate(out)
    ]


EMITTERS: Mapping[Op, Emit] = {
    indexing.take_along: emit_take_along,
    indexing.add_along: emit_add_along,
    searching.set_along: emit_set_along,
    indexing.nonzero: emit_nonzero,
}
