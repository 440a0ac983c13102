"""Gather and scatter by index arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import BAD_INDEX, BAD_SHAPE
from wend.backends.native.emit.array.in_place import add_into, writable
from wend.backends.native.emit.scalar.casting import emit_cast
from wend.backends.native.target.kinds import REGISTERS, WORD, Kind
from wend.backends.native.target.sizes import is_literal
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import indexing, updating


def checked_position(low: Lowering, position: str, size: str) -> str:
    """Return a position counted from the front, after a bounds check."""
    if is_literal(position) and is_literal(size) and 0 <= int(position) < int(size):
        return position
    wrapped = wrapped_position(low, position, size)
    low.traps.check(low.w.define(f"icmp ult i64 {wrapped}, {size}"), BAD_INDEX)
    return wrapped


def wrapped_position(low: Lowering, position: str, size: str) -> str:
    """Return a position counted from the front; a negative one counts from the end."""
    negative = low.w.define(f"icmp slt i64 {position}, 0")
    from_end = low.w.define(f"add i64 {position}, {size}")
    return low.w.define(f"select i1 {negative}, i64 {from_end}, i64 {position}")


def for_each_indexed_row(
    low: Lowering,
    node: Node,
    indices: range,
    array: Array,
    body: Callable[[str, str], None],
) -> None:
    """Emit a body for each element of the index operands.

    Args:
        low: The lowering of the function.
        node: The node that gathers or scatters.
        indices: The numbers of its index operands, one for each leading axis of `array`.
        array: The array that is indexed.
        body: Takes the number of the element and the offset of its row in `array`.
    """
    strides = low.sizes.strides(array.dims)

    def row_start(positions: Sequence[str]) -> str:
        offset = "0"
        for position, k, size, stride in zip(positions, indices, array.dims, strides, strict=False):
            kind = Kind(node.operands[k].tensor.dtype)
            wrapped = checked_position(low, emit_cast(low.w, kind, WORD, position), size)
            offset = low.sizes.add(offset, low.sizes.mul(wrapped, stride))
        return offset

    first = node.operands[indices[0]]
    if is_scalar(first.type):
        body("0", row_start([low.values[node.operands[k]][0] for k in indices]))
        return
    index_arrays = [low.array(node, k) for k in indices]
    for other in index_arrays[1:]:
        for lhs_dim, rhs_dim in zip(index_arrays[0].dims, other.dims, strict=True):
            low.traps.check(low.sizes.equal(lhs_dim, rhs_dim), BAD_SHAPE)

    def each(element: str) -> None:
        body(element, row_start([low.arrays.load(array, element) for array in index_arrays]))

    low.w.loop(low.arrays.count(index_arrays[0]), each)


def _index_dims(low: Lowering, node: Node, indices: range) -> tuple[str, ...]:
    """Return the dims of the index operands."""
    if is_scalar(node.operands[indices[0]].type):
        return ()
    return low.array(node, indices[0]).dims


def emit_gather(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit copies of the indexed elements or rows."""
    if len(operands) == 1 or is_scalar(node.operands[0].type):
        return NotImplemented
    array, indices = low.array(node, 0), range(1, len(operands))
    row_dims = array.dims[len(indices) :]
    if is_scalar(node.results[0].type):
        elements: list[str] = []
        for_each_indexed_row(
            low, node, indices, array, lambda k, at: elements.append(low.arrays.load(array, at))
        )
        return [(elements[0],)]
    out = low.new_result(node, (*_index_dims(low, node, indices), *row_dims))
    row = low.sizes.product(row_dims)

    def copy(number: str, at: str) -> None:
        out_offset = low.sizes.mul(number, row)
        if row == "1":
            low.arrays.copy_element(out, out_offset, array, at)
        else:
            size = low.sizes.mul(row, str(array.dtype.itemsize))
            low.arrays.memcpy(
                low.arrays.address(out, out_offset), low.arrays.address(array, at), size
            )

    for_each_indexed_row(low, node, indices, array, copy)
    return [low.array_result(node, out)]


def emit_scatter_add(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit additions to the indexed elements or rows, in order; in place at the last use."""
    target_type, x = node.operands[0].tensor, node.operands[1].tensor
    if len(operands) == 2 or is_scalar(target_type) or target_type.dtype not in REGISTERS:
        return NotImplemented
    indices = range(2, len(operands))
    array = low.array(node, 0)
    row_dims = array.dims[len(indices) :]
    expected_dims, row = (*_index_dims(low, node, indices), *row_dims), low.sizes.product(row_dims)
    if not is_scalar(x):
        for dim, expected in zip(low.array(node, 1).dims, expected_dims, strict=True):
            low.traps.check(low.sizes.equal(dim, expected), BAD_SHAPE)
    target = writable(low, node, 0)

    def add(number: str, at: str) -> None:
        if is_scalar(x):
            add_into(low, target, at, operands[1][0])
            return
        source, start = low.array(node, 1), low.sizes.mul(number, row)

        def each(k: str) -> None:
            value = low.arrays.load(source, low.sizes.add(start, k))
            add_into(low, target, low.sizes.add(at, k), value)

        if row == "1":
            each("0")
        else:
            low.w.loop(row, each)

    for_each_indexed_row(low, node, indices, target, add)
    return [low.array_result(node, target)]


def emit_scatter_set(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit stores to the indexed elements or rows, in order; in place at the last use."""
    x, indices, array = node.operands[1].tensor, range(2, len(operands)), low.array(node, 0)
    row_dims = array.dims[len(indices) :]
    expected_dims, row = (*_index_dims(low, node, indices), *row_dims), low.sizes.product(row_dims)
    if not is_scalar(x):
        for dim, size in zip(low.array(node, 1).dims, expected_dims, strict=True):
            low.traps.check(low.sizes.equal(dim, size), BAD_SHAPE)
    target = writable(low, node, 0)

    def put(number: str, at: str) -> None:
        if is_scalar(x):
            low.arrays.store(target, at, operands[1][0])
            return
        source, start = low.array(node, 1), low.sizes.mul(number, row)
        if row == "1":
            low.arrays.copy_element(target, at, source, start)
        else:
            size = low.sizes.mul(row, str(array.dtype.itemsize))
            addresses = low.arrays.address(target, at), low.arrays.address(source, start)
            low.arrays.memcpy(*addresses, size)

    for_each_indexed_row(low, node, indices, target, put)
    return [low.array_result(node, target)]


EMITTERS: Mapping[Op, Emit] = {
    indexing.gather: emit_gather,
    indexing.scatter_add: emit_scatter_add,
    updating.scatter_set: emit_scatter_set,
}
