"""Updates of arrays: in place if there is one reference, else in a copy."""

from __future__ import annotations

import numpy as np

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.codegen.traps import BAD_SHAPE
from wend.backends.native.target.kinds import REGISTERS
from wend.ir.dtypes import real_of
from wend.ir.graph import Node


def writable(low: Lowering, node: Node, index: int) -> Array:
    """Return an operand that may be written: itself if this is its only reference, else a copy."""
    value, array = node.operands[index], low.array(node, index)
    if not low.may_move(value):
        return low.arrays.copy(array)
    low.refcounts.move(value)
    if value in low.unique_references.unique:
        return array
    pointer = unique_pointer(low, array)
    return Array(pointer, array.dtype, array.dims)


def unique_pointer(low: Lowering, array: Array) -> str:
    """Return an array that is held here if this is its only reference, else a copy."""
    w = low.w

    def copy_shared() -> Array:
        copy = low.arrays.copy(array)
        low.arrays.release(array.pointer)
        return copy

    copy, before, copy_block = w.when(
        ("shared", "own"), lambda: low.arrays.is_unique(array.pointer), copy_shared, unless=True
    )
    return w.phi("ptr", (array.pointer, before), (copy.pointer, copy_block))


def overwritable(low: Lowering, node: Node, index: int, array: Array) -> tuple[Array, str]:
    """Return memory for an array of as many bytes as an operand at its last use.

    It is the operand's own memory if this is the only reference. The second result is what must be
    released once the operand has been read, or null.
    """
    value, operand, w = node.operands[index], low.array(node, index), low.w
    low.refcounts.move(value)
    if low.instrumentation:
        low.instrumentation.count_bytes(low.arrays.bytes(array))
    fresh, before, allocation = w.when(
        ("shared", "own"),
        lambda: low.arrays.is_unique(operand.pointer),
        lambda: low.arrays.new(array.dtype, array.dims),
        unless=True,
    )
    pointer = w.phi("ptr", (operand.pointer, before), (fresh.pointer, allocation))
    deferred_release = w.phi("ptr", ("null", before), (operand.pointer, allocation))
    return Array(pointer, array.dtype, array.dims), deferred_release


def add_into(low: Lowering, target: Array, index: str, value: str) -> None:
    """Emit the addition of a number to an element."""
    kind, address = target.kind, low.arrays.address(target, index)
    opcode = "fadd" if kind.is_real else "or" if kind.is_bool else "add"
    old = low.arrays.load_at(kind, address)
    low.arrays.store_at(kind, address, low.w.define(f"{opcode} {kind.text} {old}, {value}"))


def adds(dtype: np.dtype) -> bool:
    """Return whether there are additions to elements of a dtype."""
    return real_of(dtype) in REGISTERS


def add_element(low: Lowering, target: Array, index: str, source: Array, source_index: str) -> None:
    """Emit the addition of an element of an array to one of another of the same dtype."""
    if target.dtype.kind != "c":
        add_into(low, target, index, low.arrays.load(source, source_index))
        return
    real = real_of(target.dtype)
    into, x = Array(target.pointer, real, ()), Array(source.pointer, real, ())
    at, source_at = low.sizes.mul(index, "2"), low.sizes.mul(source_index, "2")
    for part in "01":
        value = low.arrays.load(x, low.sizes.add(source_at, part))
        add_into(low, into, low.sizes.add(at, part), value)


def broadcast_stride(low: Lowering, size: str, stride: str, target_size: str) -> str:
    """Return the stride of an axis, or 0 if its one element is broadcast to `target_size`."""
    if size == target_size:
        return stride
    if size == "1":
        return "0"
    is_one = low.sizes.equal(size, "1")
    fits = low.w.define(f"or i1 {is_one}, {low.sizes.equal(size, target_size)}")
    low.traps.check(fits, BAD_SHAPE)
    return low.w.define(f"select i1 {is_one}, i64 0, i64 {stride}")
