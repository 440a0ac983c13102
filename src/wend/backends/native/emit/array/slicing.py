"""Parts of arrays: cut out, put in, added; joined, split and padded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wend.backends.native.codegen.arrays import Array, Steps
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import BAD_SHAPE
from wend.backends.native.emit.array.in_place import add_into, repeated, writable
from wend.backends.native.emit.array.subviews import Cut, cuts_of, sliced
from wend.backends.native.target.kinds import REGISTERS, scalar_literal
from wend.backends.native.target.sizes import known
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import parts, shaping, updating

Part = tuple[Steps, tuple[str, ...]]  # where it lies in its array, and its sizes


def part(low: Lowering, array: Array, slices: Sequence[Sequence[int | None]]) -> Part:
    """What slices cut from an array."""
    pairs = zip(array.dims, slices, strict=True)
    return _lies(low, array, [sliced(low, size, bounds) for size, bounds in pairs])


def _named(low: Lowering, node: Node, positions: Sequence[Registers]) -> Part:
    """The part of its first operand that a node names."""
    array = low.array(node, 0)
    cuts, _ = cuts_of(low, node, array.dims, positions)
    return _lies(low, array, cuts)


def _lies(low: Lowering, array: Array, cuts: Sequence[Cut]) -> Part:
    start, strides, dims = "0", [], []
    for cut, stride in zip(cuts, low.sizes.strides(array.dims), strict=True):
        start = low.sizes.add(start, low.sizes.mul(cut.first, stride))
        if cut.step is not None:
            strides.append(low.sizes.mul(stride, str(cut.step)))
            dims.append(cut.count)
    return Steps(start, tuple(strides)), tuple(dims)


def _cut_out(low: Lowering, node: Node, array: Array, found: Part) -> Sequence[Registers]:
    steps, dims = found
    made = low.new_result(node, dims)
    low.arrays.copy_strided(dims, made, low.arrays.whole(made), array, steps)
    return [low.give(node, made)]


def emit_part(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """A copy of a part."""
    if is_scalar(node.operands[0].type):
        return [operands[0]]
    array, found = low.array(node, 0), _named(low, node, operands[1:])
    if is_scalar(node.results[0].type):
        return [(low.arrays.load(array, found[0].start),)]
    return _cut_out(low, node, array, found)


def _put(low: Lowering, node: Node, found: Part, *, adds: bool) -> Any:
    """The first operand with the second put into a part of it, or added."""
    (steps, dims), x = found, node.operands[1]
    if is_scalar(x.type):
        source = Array(low.w.allocate(REGISTERS[x.tensor.dtype]), x.tensor.dtype, ())
        low.arrays.store(source, "0", low.values[x][0])
    else:
        source = low.array(node, 1)
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


def emit_set(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """In place at the last use."""
    if is_scalar(node.operands[0].type):
        return [operands[1]]
    return _put(low, node, _named(low, node, operands[2:]), adds=False)


def emit_add(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """In place at the last use."""
    if node.operands[0].tensor.dtype not in REGISTERS or is_scalar(node.operands[0].type):
        return NotImplemented
    return _put(low, node, _named(low, node, operands[2:]), adds=True)


def emit_concat(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """One after the other along an axis."""
    arrays, axis = [low.array(node, k) for k in range(len(operands))], node.attrs["axis"]
    dims = list(arrays[0].dims)
    for array in arrays[1:]:
        for k, size in enumerate(array.dims):
            if k != axis:
                low.traps.check(low.sizes.equal(dims[k], size), BAD_SHAPE)
        dims[axis] = low.sizes.add(dims[axis], array.dims[axis])
    made = low.new_result(node, dims)
    strides, start = tuple(low.sizes.strides(dims)), "0"
    for array in arrays:
        steps = Steps(low.sizes.mul(start, strides[axis]), strides)
        low.arrays.copy_strided(array.dims, made, steps, array, low.arrays.whole(array))
        start = low.sizes.add(start, array.dims[axis])
    return [low.give(node, made)]


def emit_split(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
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


def emit_pad(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
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
    shaping.slice_: emit_part,
    shaping.narrow: emit_part,
    parts.take_part: emit_part,
    shaping.add_slice: emit_add,
    shaping.add_narrow: emit_add,
    parts.add_part: emit_add,
    parts.set_part: emit_set,
    shaping.concat: emit_concat,
    shaping.split: emit_split,
    shaping.pad: emit_pad,
    updating.set_slice: emit_set,
}
