"""Along one axis, by a position for each element: reading, adding, putting. Where masks hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import BAD_SHAPE
from wend.backends.native.emit.array.in_place import add_into, writable
from wend.backends.native.emit.array.indexing import checked
from wend.backends.native.emit.scalar.casting import write_cast
from wend.backends.native.target.kinds import REGISTERS, WORD
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.ir.dtypes import INT64
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import indexing, searching

# Writes what is done with an element: (index among the positions, index in the array)
Body = Callable[[str, str], None]


def emit_take_along(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Copies of elements."""
    if not _fits(node, 1):
        return NotImplemented
    array, positions = low.array(node, 0), low.array(node, 1)
    _check_others(low, node, array, positions)
    made = low.new_result(node, positions.dims)
    _each(low, node, array, positions, lambda k, at: low.arrays.copy_element(made, k, array, at))
    return [low.give(node, made)]


def emit_add_along(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Elements added where they belong, in order; in place at the last use."""
    if node.operands[0].tensor.dtype not in REGISTERS:
        return NotImplemented
    return _change(
        low,
        node,
        lambda target, at, source, k: add_into(low, target, at, low.arrays.load(source, k)),
    )


def emit_set_along(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Elements put where they belong, in order; in place at the last use."""
    return _change(low, node, low.arrays.copy_element)


def _change(low: Lowering, node: Node, put: Callable[[Array, str, Array, str], None]) -> Any:
    if not _fits(node, 2):
        return NotImplemented
    source, positions = low.array(node, 1), low.array(node, 2)
    _check_others(low, node, low.array(node, 0), positions)
    for mine, theirs in zip(source.dims, positions.dims, strict=True):
        low.traps.check(low.sizes.equal(mine, theirs), BAD_SHAPE)
    target = writable(low, node, 0)
    _each(low, node, target, positions, lambda k, at: put(target, at, source, k))
    return [low.give(node, target)]


def _fits(node: Node, index: int) -> bool:
    """Whether the positions have the sizes of the array, but for those of the axis.

    NumPy's kernels take others, too, which nobody gives them.
    """
    axis = node.attrs["axis"]
    if any(is_scalar(value.type) for value in node.operands):
        return False
    pairs = zip(node.operands[0].tensor.dims, node.operands[index].tensor.dims, strict=True)
    known = [p for k, p in enumerate(pairs) if k != axis and all(isinstance(d, int) for d in p)]
    return all(mine == theirs for mine, theirs in known)


def _check_others(low: Lowering, node: Node, array: Array, positions: Array) -> None:
    for k, (mine, theirs) in enumerate(zip(array.dims, positions.dims, strict=True)):
        if k != node.attrs["axis"]:
            low.traps.check(low.sizes.equal(mine, theirs), BAD_SHAPE)


def _each(low: Lowering, node: Node, array: Array, positions: Array, body: Body) -> None:
    """Run a body for each position."""
    axis, sizes = node.attrs["axis"], low.sizes
    strides, own = sizes.strides(array.dims), sizes.strides(positions.dims)

    def each(where: tuple[str, ...]) -> None:
        k = low.arrays.offset(where, own)
        given = write_cast(low.w, positions.kind, WORD, low.arrays.load(positions, k))
        number = checked(low, given, array.dims[axis])
        at = low.arrays.offset((*where[:axis], number, *where[axis + 1 :]), strides)
        body(k, at)

    low.arrays.nest(positions.dims, each)


def emit_nonzero(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Where a mask holds, a vector for each axis: counted first, then written without branches."""
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
    # What comes after the last is written, too.
    room = low.sizes.add(count, "1")
    made = [low.arrays.new(INT64, (room,)) for _ in node.results]
    place = w.allocate("i64")
    w.do(f"store i64 0, ptr {place}")
    strides = low.sizes.strides(mask.dims)

    def each(where: tuple[str, ...]) -> None:
        at = w.define(f"load i64, ptr {place}")
        for array, number in zip(made, where, strict=True):
            low.arrays.store(array, at, number)
        following = w.define(f"add i64 {at}, {flag(low.arrays.offset(where, strides))}")
        w.do(f"store i64 {following}, ptr {place}")

    low.arrays.nest(mask.dims, each)
    return [
        low.give(node, Array(array.pointer, INT64, (count,)), k) for k, array in enumerate(made)
    ]


EMITTERS: Mapping[Op, Emit] = {
    indexing.take_along: emit_take_along,
    indexing.add_along: emit_add_along,
    searching.set_along: emit_set_along,
    indexing.nonzero: emit_nonzero,
}
