"""Gather and scatter by index arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import BAD_INDEX
from wend.backends.native.emit.array.in_place import add_element, add_into, adds, writable
from wend.backends.native.emit.scalar.casting import emit_cast
from wend.backends.native.target.kinds import WORD, Kind
from wend.backends.native.target.sizes import is_literal
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import indexing, updating


def checked_position(low: Lowering, position: str, size: str) -> str:
    """Return a position counted from the front, after a bounds check."""
    if is_literal(position) and is_literal(size) and 0 <= int(position) < int(size):
        return position
    w, negative, inside = low.w, low.w.new_label("negative"), low.w.new_label("inside")
    before = w.block
    is_inside = w.define(f"icmp ult i64 {position}, {size}")
    w.do(f"br i1 {is_inside}, label %{inside}, label %{negative}, !prof !0")
    w.start(negative)
    # A position that is too large is so, too, with the size added to it, which cannot overflow.
    from_end = w.define(f"add i64 {position}, {size}")
    low.traps.check(w.define(f"icmp ult i64 {from_end}, {size}"), BAD_INDEX)
    after = w.block
    w.jump(inside)
    w.start(inside)
    return w.phi("i64", (position, before), (from_end, after))


def wrapped_position(low: Lowering, position: str, size: str) -> str:
    """Return a position counted from the front; a negative one counts from the end."""
    if is_literal(position):
        return low.sizes.add(position, size) if int(position) < 0 else position
    negative = low.w.define(f"icmp slt i64 {position}, 0")
    from_end = low.w.define(f"add i64 {position}, {size}")
    return low.w.define(f"select i1 {negative}, i64 {from_end}, i64 {position}")


def for_each_indexed_row(
    low: Lowering, node: Node, indices: range, array: Array, body: Callable[[str, str], None]
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
            position = emit_cast(low.w, Kind(node.operands[k].tensor.dtype), WORD, position)
            if (node, k) in low.offsets:
                wrapped = low.sizes.add(position, low.offsets[node, k])
            elif node.attrs.get("in_bounds"):
                wrapped = wrapped_position(low, position, size)
            else:
                wrapped = checked_position(low, position, size)
            offset = low.sizes.add(offset, low.sizes.mul(wrapped, stride))
        return offset

    if is_scalar(node.operands[indices[0]].type):
        body("0", row_start([low.values[node.operands[k]][0] for k in indices]))
        return
    index_arrays = [low.array(node, k) for k in indices]
    for other in index_arrays[1:]:
        low.check_equal_dims(index_arrays[0].dims, other.dims)

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
    for_each_indexed_row(
        low,
        node,
        indices,
        array,
        lambda k, at: low.arrays.copy_run(out, low.sizes.mul(k, row), array, at, row),
    )
    return [low.array_result(node, out)]


def emit_position(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit a position counted from the front."""
    words = (
        emit_cast(low.w, Kind(x.tensor.dtype), WORD, registers[0])
        for x, registers in zip(node.operands, operands, strict=True)
    )
    return [(checked_position(low, *words),)]


def emit_scatter_add(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit additions to the indexed elements or rows, in order; in place at the last use."""
    target_type = node.operands[0].tensor
    if len(operands) == 2 or is_scalar(target_type) or not adds(target_type.dtype):
        return NotImplemented

    def add_row(target: Array, at: str, source: Array, start: str, row: str) -> None:
        def each(k: str) -> None:
            add_element(low, target, low.sizes.add(at, k), source, low.sizes.add(start, k))

        if row == "1":
            each("0")
        else:
            low.w.loop(row, each)

    return _emit_scatter(low, node, operands, partial(add_into, low), add_row)


def emit_scatter_set(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit stores to the indexed elements or rows, in order; in place at the last use."""
    return _emit_scatter(low, node, operands, low.arrays.store, low.arrays.copy_run)


def _emit_scatter(
    low: Lowering,
    node: Node,
    operands: Sequence[Registers],
    update_number: Callable[[Array, str, str], None],
    update_row: Callable[[Array, str, Array, str, str], None],
) -> Any:
    """Emit an update of each indexed element or row by a number, or by a row of an operand."""
    x, indices, array = node.operands[1].tensor, range(2, len(operands)), low.array(node, 0)
    row_dims = array.dims[len(indices) :]
    expected_dims, row = (*_index_dims(low, node, indices), *row_dims), low.sizes.product(row_dims)
    if not is_scalar(x):
        low.check_equal_dims(low.array(node, 1).dims, expected_dims)
    if low.traps.state is not None and not is_scalar(node.operands[2].type):
        for_each_indexed_row(low, node, indices, array, lambda number, at: None)  # before a write
    target = writable(low, node, 0)

    def update(number: str, at: str) -> None:
        if is_scalar(x):
            update_number(target, at, operands[1][0])
        else:
            update_row(target, at, low.array(node, 1), low.sizes.mul(number, row), row)

    for_each_indexed_row(low, node, indices, target, update)
    low.add_unique_result(node.results[0])
    return [low.array_result(node, target)]


EMITTERS: Mapping[Op, Emit] = {
    indexing.gather: emit_gather,
    indexing.position: emit_position,
    indexing.scatter_add: emit_scatter_add,
    updating.scatter_set: emit_scatter_set,
}
