"""Writing into arrays: in place where nobody else refers to them."""

from __future__ import annotations

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.codegen.traps import BAD_SHAPE
from wend.ir.graph import Node


def writable(low: Lowering, node: Node, index: int) -> Array:
    """An operand to be changed: itself at its last use if nobody else has it, else a copy."""
    value, array, w = node.operands[index], low.array(node, index), low.w
    if not low.may_move(value):
        return low.arrays.copied(array)
    low.memory.move(value)
    shared, done, here = w.new_label("shared"), w.new_label("own"), w.block
    w.branch(low.arrays.is_unique(array.pointer), done, shared)
    w.start(shared)
    copy = low.arrays.copied(array)
    low.arrays.release(array.pointer)
    there = w.block
    w.jump(done)
    w.start(done)
    pointer = w.phi("ptr", (array.pointer, here), (copy.pointer, there))
    return Array(pointer, array.dtype, array.dims)


def overwritable(low: Lowering, node: Node, index: int, array: Array) -> tuple[Array, str]:
    """Room for an array of as many bytes as an operand that is taken over: its own if nobody else

    has it. Also what is to be released when the operand has been read.
    """
    value, mine, w = node.operands[index], low.array(node, index), low.w
    low.memory.move(value)
    shared, done, here = w.new_label("shared"), w.new_label("own"), w.block
    w.branch(low.arrays.is_unique(mine.pointer), done, shared)
    w.start(shared)
    made = low.arrays.new(array.dtype, array.dims)
    there = w.block
    w.jump(done)
    w.start(done)
    pointer = w.phi("ptr", (mine.pointer, here), (made.pointer, there))
    left = w.phi("ptr", ("null", here), (mine.pointer, there))
    return Array(pointer, array.dtype, array.dims), left


def add_into(low: Lowering, target: Array, index: str, value: str) -> None:
    """Add a number to an element."""
    kind, address = target.kind, low.arrays.address(target, index)
    opcode = "fadd" if kind.is_real else "or" if kind.is_bool else "add"
    old = low.arrays.load_at(kind, address)
    low.arrays.store_at(kind, address, low.w.define(f"{opcode} {kind.text} {old}, {value}"))


def repeated(low: Lowering, size: str, stride: str, wanted: str) -> str:
    """The stride of an axis; 0 where it has one element, to be repeated."""
    if size == wanted:
        return stride
    if size == "1":
        return "0"
    is_one = low.sizes.equal(size, "1")
    fits = low.w.define(f"or i1 {is_one}, {low.sizes.equal(size, wanted)}")
    low.traps.check(fits, BAD_SHAPE)
    return low.w.define(f"select i1 {is_one}, i64 0, i64 {stride}")
