"""Reading, adding and putting by positions that are values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import BAD_INDEX, BAD_SHAPE
from wend.backends.native.emit.array.in_place import add_into, writable
from wend.backends.native.emit.scalar.casting import write_cast
from wend.backends.native.target.kinds import REGISTERS, WORD, Kind
from wend.backends.native.target.sizes import known
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import indexing, updating


def checked(low: Lowering, position: str, size: str) -> str:
    """A position counted from the front, which is there."""
    if known(position) and known(size) and 0 <= int(position) < int(size):
        return position
    place = from_front(low, position, size)
    low.traps.check(low.w.define(f"icmp ult i64 {place}, {size}"), BAD_INDEX)
    return place


def from_front(low: Lowering, position: str, size: str) -> str:
    """A position counted from the front: a negative one counts from the end."""
    negative = low.w.define(f"icmp slt i64 {position}, 0")
    moved = low.w.define(f"add i64 {position}, {size}")
    return low.w.define(f"select i1 {negative}, i64 {moved}, i64 {position}")


def at_positions(
    low: Lowering,
    node: Node,
    indices: range,
    array: Array,
    body: Callable[[str, str], None],
) -> None:
    """Run a body for each position that operands name: its number, and where its row starts."""
    strides = low.sizes.strides(array.dims)

    def start(numbers: Sequence[str]) -> str:
        offset = "0"
        for number, k, size, stride in zip(numbers, indices, array.dims, strides, strict=False):
            kind = Kind(node.operands[k].tensor.dtype)
            place = checked(low, write_cast(low.w, kind, WORD, number), size)
            offset = low.sizes.add(offset, low.sizes.mul(place, stride))
        return offset

    first = node.operands[indices[0]]
    if is_scalar(first.type):
        body("0", start([low.values[node.operands[k]][0] for k in indices]))
        return
    given = [low.array(node, k) for k in indices]
    for other in given[1:]:
        for mine, theirs in zip(given[0].dims, other.dims, strict=True):
            low.traps.check(low.sizes.equal(mine, theirs), BAD_SHAPE)

    def each(number: str) -> None:
        body(number, start([low.arrays.load(array, number) for array in given]))

    low.w.loop(low.arrays.count(given[0]), each)


def _index_dims(low: Lowering, node: Node, indices: range) -> tuple[str, ...]:
    if is_scalar(node.operands[indices[0]].type):
        return ()
    return low.array(node, indices[0]).dims


def emit_gather(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Copies of elements or rows."""
    if len(operands) == 1 or is_scalar(node.operands[0].type):
        return NotImplemented
    array, indices = low.array(node, 0), range(1, len(operands))
    rest = array.dims[len(indices) :]
    if is_scalar(node.results[0].type):
        found: list[str] = []
        at_positions(
            low, node, indices, array, lambda k, at: found.append(low.arrays.load(array, at))
        )
        return [(found[0],)]
    made = low.new_result(node, (*_index_dims(low, node, indices), *rest))
    row = low.sizes.product(rest)

    def copy(number: str, at: str) -> None:
        put = low.sizes.mul(number, row)
        if row == "1":
            low.arrays.copy_element(made, put, array, at)
        else:
            size = low.sizes.mul(row, str(array.dtype.itemsize))
            low.arrays.move(low.arrays.address(made, put), low.arrays.address(array, at), size)

    at_positions(low, node, indices, array, copy)
    return [low.give(node, made)]


def emit_scatter_add(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Elements or rows added where they belong, in order; in place at the last use."""
    into, x = node.operands[0].tensor, node.operands[1].tensor
    if len(operands) == 2 or is_scalar(into) or into.dtype not in REGISTERS:
        return NotImplemented
    indices = range(2, len(operands))
    array = low.array(node, 0)
    rest = array.dims[len(indices) :]
    wanted, row = (*_index_dims(low, node, indices), *rest), low.sizes.product(rest)
    if not is_scalar(x):
        for mine, size in zip(low.array(node, 1).dims, wanted, strict=True):
            low.traps.check(low.sizes.equal(mine, size), BAD_SHAPE)
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

    at_positions(low, node, indices, target, add)
    return [low.give(node, target)]


def emit_scatter_set(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Elements or rows put where they belong, in order; in place at the last use."""
    x, indices, array = node.operands[1].tensor, range(2, len(operands)), low.array(node, 0)
    rest = array.dims[len(indices) :]
    wanted, row = (*_index_dims(low, node, indices), *rest), low.sizes.product(rest)
    if not is_scalar(x):
        for mine, size in zip(low.array(node, 1).dims, wanted, strict=True):
            low.traps.check(low.sizes.equal(mine, size), BAD_SHAPE)
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
            places = low.arrays.address(target, at), low.arrays.address(source, start)
            low.arrays.move(*places, size)

    at_positions(low, node, indices, target, put)
    return [low.give(node, target)]


EMITTERS: Mapping[Op, Emit] = {
    indexing.gather: emit_gather,
    indexing.scatter_add: emit_scatter_add,
    updating.scatter_set: emit_scatter_set,
}
