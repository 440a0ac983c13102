"""Parts of arrays: cut out, put in, added; joined, split and padded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wend.backends.native.arrays import Array, Steps
from wend.backends.native.emit.casting import write_cast
from wend.backends.native.emit.writing import add_into, repeated, writable
from wend.backends.native.exits import BAD_SHAPE
from wend.backends.native.kinds import REGISTERS, WORD, Kind, scalar_literal
from wend.backends.native.lowering import Emit, Lowering
from wend.backends.native.sizes import known
from wend.backends.native.slots import Slots, is_scalar
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import shaping, updating

Part = tuple[Steps, tuple[str, ...]]  # where it lies in its array, and its sizes


def cut(low: Lowering, size: str, bounds: Sequence[int | None]) -> tuple[str, str, str]:
    """Where a slice of an axis starts, how many elements it has, and the step between them."""
    first, last, given_step = bounds
    step = 1 if given_step is None else given_step
    sizes = low.sizes
    if known(size):
        known_bounds = slice(first, last, step).indices(int(size))
        return str(known_bounds[0]), str(len(range(*known_bounds))), str(step)
    end = size if step > 0 else sizes.sub(size, "1")
    least = "0" if step > 0 else "-1"

    def clipped(bound: int | None, default: str) -> str:
        if bound is None:
            return default
        if bound >= 0:
            return sizes.least(str(bound), end)
        return sizes.most(sizes.add(size, str(bound)), least)

    start = clipped(first, "0" if step > 0 else end)
    stop = clipped(last, end if step > 0 else "-1")
    far = sizes.most(sizes.sub(stop, start) if step > 0 else sizes.sub(start, stop), "0")
    count = sizes.div(sizes.add(far, str(abs(step) - 1)), str(abs(step)))
    return start, count, str(step)


def part(low: Lowering, array: Array, slices: Sequence[Sequence[int | None]]) -> Part:
    """What slices cut from an array."""
    own = low.sizes.strides(array.dims)
    start, strides, dims = "0", [], []
    for size, stride, bounds in zip(array.dims, own, slices, strict=True):
        first, count, step = cut(low, size, bounds)
        start = low.sizes.add(start, low.sizes.mul(first, stride))
        strides.append(low.sizes.mul(stride, step))
        dims.append(count)
    return Steps(start, tuple(strides)), tuple(dims)


def along(low: Lowering, node: Node, array: Array, given: Sequence[Slots]) -> Part:
    """What two positions cut from an array, along the axis of a node."""
    axis, own = node.attrs["axis"], low.sizes.strides(array.dims)
    first, count = between(low, node, array.dims[axis], given)
    start = low.sizes.mul(first, own[axis])
    return Steps(start, tuple(own)), (*array.dims[:axis], count, *array.dims[axis + 1 :])


def between(low: Lowering, node: Node, size: str, given: Sequence[Slots]) -> tuple[str, str]:
    """Where two positions, a node's last operands, cut an axis, and how much they cut out."""
    sizes, bounds = low.sizes, []
    for value, slots in zip(node.operands[-2:], given, strict=True):
        bound = write_cast(low.w, Kind(value.tensor.dtype), WORD, slots[0])
        if not known(bound):
            negative = low.w.define(f"icmp slt i64 {bound}, 0")
            moved = low.w.define(f"add i64 {bound}, {size}")
            bound = low.w.define(f"select i1 {negative}, i64 {moved}, i64 {bound}")
        elif int(bound) < 0:
            bound = sizes.add(size, bound)
        bounds.append(sizes.most(sizes.least(bound, size), "0"))
    return bounds[0], sizes.most(sizes.sub(bounds[1], bounds[0]), "0")


def _cut_out(low: Lowering, node: Node, array: Array, found: Part) -> Sequence[Slots]:
    steps, dims = found
    made = low.new_result(node, dims)
    low.arrays.copy_strided(dims, made, low.arrays.whole(made), array, steps)
    return [low.give(node, made)]


def emit_slice(low: Lowering, node: Node, operands: Sequence[Slots]) -> Any:
    """A copy of a part."""
    if is_scalar(node.operands[0].type):
        return [operands[0]]
    array = low.array(node, 0)
    return _cut_out(low, node, array, part(low, array, node.attrs["slices"]))


def emit_narrow(low: Lowering, node: Node, operands: Sequence[Slots]) -> Any:
    """A copy of what lies between two positions of an axis."""
    array = low.array(node, 0)
    return _cut_out(low, node, array, along(low, node, array, operands[-2:]))


def _put(low: Lowering, node: Node, found: Part, *, adds: bool) -> Any:
    """The first operand with the second put into a part of it, or added."""
    (steps, dims), source = found, low.array(node, 1)
    strides = zip(source.dims, low.sizes.strides(source.dims), dims, strict=True)
    at = Steps("0", tuple(repeated(low, *three) for three in strides))
    target = writable(low, node, 0)
    if not adds:
        low.arrays.copy_strided(dims, target, steps, source, at)
    else:

        def each(position: tuple[str, ...]) -> None:
            put = low.arrays.offset(position, steps.strides, steps.start)
            get = low.arrays.offset(position, at.strides, at.start)
            add_into(low, target, put, low.arrays.load(source, get))

        low.arrays.nest(dims, each)
    return [low.give(node, target)]


def _adds(node: Node) -> bool:
    """Whether native code can add numbers of this dtype in memory."""
    return node.operands[0].tensor.dtype in REGISTERS and not is_scalar(node.operands[0].type)


def emit_set_slice(low: Lowering, node: Node, operands: Sequence[Slots]) -> Any:
    """In place at the last use."""
    if is_scalar(node.operands[0].type):
        return [operands[1]]
    return _put(low, node, part(low, low.array(node, 0), node.attrs["slices"]), adds=False)


def emit_add_slice(low: Lowering, node: Node, operands: Sequence[Slots]) -> Any:
    """In place at the last use."""
    if not _adds(node):
        return NotImplemented
    return _put(low, node, part(low, low.array(node, 0), node.attrs["slices"]), adds=True)


def emit_add_narrow(low: Lowering, node: Node, operands: Sequence[Slots]) -> Any:
    """In place at the last use."""
    if not _adds(node):
        return NotImplemented
    return _put(low, node, along(low, node, low.array(node, 0), operands[-2:]), adds=True)


def emit_concat(low: Lowering, node: Node, operands: Sequence[Slots]) -> Any:
    """One after the other along an axis."""
    arrays, axis = [low.array(node, k) for k in range(len(operands))], node.attrs["axis"]
    dims = list(arrays[0].dims)
    for array in arrays[1:]:
        for k, size in enumerate(array.dims):
            if k != axis:
                low.exits.unless(low.sizes.equal(dims[k], size), BAD_SHAPE)
        dims[axis] = low.sizes.add(dims[axis], array.dims[axis])
    made = low.new_result(node, dims)
    strides, start = tuple(low.sizes.strides(dims)), "0"
    for array in arrays:
        steps = Steps(low.sizes.mul(start, strides[axis]), strides)
        low.arrays.copy_strided(array.dims, made, steps, array, low.arrays.whole(array))
        start = low.sizes.add(start, array.dims[axis])
    return [low.give(node, made)]


def emit_split(low: Lowering, node: Node, operands: Sequence[Slots]) -> Any:
    """Copies of parts along an axis."""
    array, axis, start, results = low.array(node, 0), node.attrs["axis"], 0, []
    if not known(array.dims[axis]):
        return NotImplemented
    for index, size in enumerate(node.attrs["sizes"]):
        slices: list[Sequence[int | None]] = [(None, None, None)] * len(array.dims)
        slices[axis] = (start, start + size, None)
        steps, dims = part(low, array, slices)
        made = low.new_result(node, dims, index)
        low.arrays.copy_strided(dims, made, low.arrays.whole(made), array, steps)
        results.append(low.give(node, made, index))
        start += size
    return results


def emit_pad(low: Lowering, node: Node, operands: Sequence[Slots]) -> Any:
    """The array in the middle of one number."""
    if is_scalar(node.operands[0].type):
        return [operands[0]]
    array, widths = low.array(node, 0), node.attrs["widths"]
    if array.dtype not in REGISTERS:
        return NotImplemented
    pairs = zip(array.dims, widths, strict=True)
    dims = [low.sizes.add(size, str(before + after)) for size, (before, after) in pairs]
    made = low.new_result(node, dims)
    value = np.asarray(node.attrs["value"]).astype(array.dtype)
    number = scalar_literal(value[()], array.dtype)
    low.w.loop(low.arrays.count(made), lambda k: low.arrays.store(made, k, number))
    strides = low.sizes.strides(dims)
    start = low.arrays.offset([str(before) for before, _ in widths], strides)
    target = Steps(start, tuple(strides))
    low.arrays.copy_strided(array.dims, made, target, array, low.arrays.whole(array))
    return [low.give(node, made)]


EMITTERS: Mapping[Op, Emit] = {
    shaping.slice_: emit_slice,
    shaping.narrow: emit_narrow,
    shaping.add_slice: emit_add_slice,
    shaping.add_narrow: emit_add_narrow,
    shaping.concat: emit_concat,
    shaping.split: emit_split,
    shaping.pad: emit_pad,
    updating.set_slice: emit_set_slice,
}
