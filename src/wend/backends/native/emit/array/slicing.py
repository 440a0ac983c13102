"""Subviews of arrays: load, store and add; concatenation, split and padding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wend.backends.native.codegen.arrays import Array, StridedView
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.emit.array.in_place import add_element, adds, broadcast_stride, writable
from wend.backends.native.emit.array.shaping import copied_view
from wend.backends.native.emit.array.subviews import AxisSlice, axis_slices, resolve_slice
from wend.backends.native.target.kinds import REGISTERS, scalar_literal
from wend.backends.native.target.sizes import is_literal
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ops import parts, shaping, updating
from wend.ops.shapes import WHOLE

Subview = tuple[StridedView, tuple[str, ...]]  # its offset and strides in the array, and its dims


def slices_of(low: Lowering, array: Array, slices: Sequence[Sequence[int | None]]) -> Subview:
    """Return the subview that slices select."""
    pairs = zip(array.dims, slices, strict=True)
    return _subview(low, array, [resolve_slice(low, size, bounds) for size, bounds in pairs])


def _subview_operand(low: Lowering, node: Node, positions: Sequence[Registers]) -> Subview:
    """Return the subview of its first operand that a node names."""
    array = low.array(node, 0)
    slices, _ = axis_slices(low, node, array.dims, positions)
    return _subview(low, array, slices)


def _subview(low: Lowering, array: Array, slices: Sequence[AxisSlice]) -> Subview:
    """Return the subview that consists of a slice per axis."""
    start, strides, dims = "0", [], []
    for axis_slice, stride in zip(slices, low.sizes.strides(array.dims), strict=True):
        start = low.sizes.add(start, low.sizes.mul(axis_slice.first, stride))
        if axis_slice.step is not None:
            strides.append(low.sizes.mul(stride, str(axis_slice.step)))
            dims.append(axis_slice.count)
    return StridedView(start, tuple(strides)), tuple(dims)


def emit_load_subview(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit a copy of a subview."""
    if is_scalar(node.operands[0].type):
        return [operands[0]]
    array, (steps, dims) = low.array(node, 0), _subview_operand(low, node, operands[1:])
    if is_scalar(node.results[0].type):
        return [(low.arrays.load(array, steps.start),)]
    return [copied_view(low, node, dims, array, steps)]


def _emit_update(low: Lowering, node: Node, subview: Subview, *, adds: bool) -> Any:
    """Emit the first operand with the second stored in a subview of it, or added."""
    (steps, dims), x = subview, node.operands[1]
    if is_scalar(x.type):
        source = Array(low.w.allocate(REGISTERS[x.tensor.dtype]), x.tensor.dtype, ())
        low.arrays.store(source, "0", low.values[x][0])
    else:
        source = low.array(node, 1)
    strides = zip(source.dims, low.sizes.strides(source.dims), dims, strict=True)
    source_view = StridedView("0", tuple(broadcast_stride(low, *axis) for axis in strides))
    target = writable(low, node, 0)
    if not adds:
        low.arrays.copy_strided(dims, target, steps, source, source_view)
    else:

        def each(position: tuple[str, ...]) -> None:
            target_offset = low.arrays.offset(position, steps.strides, steps.start)
            source_offset = low.arrays.offset(position, source_view.strides, source_view.start)
            add_element(low, target, target_offset, source, source_offset)

        low.arrays.for_each_position(dims, each)
    return [low.array_result(node, target)]


def emit_store_subview(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit a store to a subview; in place at the last use."""
    if is_scalar(node.operands[0].type):
        return [operands[1]]
    return _emit_update(low, node, _subview_operand(low, node, operands[2:]), adds=False)


def emit_add_subview(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit an addition to a subview; in place at the last use."""
    if not adds(node.operands[0].tensor.dtype) or is_scalar(node.operands[0].type):
        return NotImplemented
    return _emit_update(low, node, _subview_operand(low, node, operands[2:]), adds=True)


def emit_concat(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit the concatenation of arrays along an axis."""
    arrays, axis = [low.array(node, k) for k in range(len(operands))], node.attrs["axis"]
    dims = list(arrays[0].dims)
    for array in arrays[1:]:
        low.check_equal_dims(dims, array.dims, axis)
        dims[axis] = low.sizes.add(dims[axis], array.dims[axis])
    out = low.new_result(node, dims)
    strides, start = tuple(low.sizes.strides(dims)), "0"
    for array in arrays:
        steps = StridedView(low.sizes.mul(start, strides[axis]), strides)
        low.arrays.copy_strided(array.dims, out, steps, array, low.arrays.full_view(array))
        start = low.sizes.add(start, array.dims[axis])
    return [low.array_result(node, out)]


def emit_split(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit copies of consecutive subviews along an axis."""
    array, axis, start, results = low.array(node, 0), node.attrs["axis"], 0, []
    if not is_literal(array.dims[axis]):
        return NotImplemented
    for index, size in enumerate(node.attrs["sizes"]):
        slices: list[Sequence[int | None]] = [WHOLE] * len(array.dims)
        slices[axis] = (start, start + size, None)
        steps, dims = slices_of(low, array, slices)
        results.append(copied_view(low, node, dims, array, steps, index))
        start += size
    return results


def emit_pad(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit an array surrounded by a constant."""
    if is_scalar(node.operands[0].type):
        return [operands[0]]
    array, widths = low.array(node, 0), node.attrs["widths"]
    if array.dtype not in REGISTERS:
        return NotImplemented
    pairs = zip(array.dims, widths, strict=True)
    dims = [low.sizes.add(size, str(before + after)) for size, (before, after) in pairs]
    out = low.new_result(node, dims)
    value = np.asarray(node.attrs["value"]).astype(array.dtype)
    fill = scalar_literal(value[()], array.dtype)
    low.w.loop(low.arrays.count(out), lambda k: low.arrays.store(out, k, fill))
    strides = low.sizes.strides(dims)
    start = low.arrays.offset([str(before) for before, _ in widths], strides)
    target = StridedView(start, tuple(strides))
    low.arrays.copy_strided(array.dims, out, target, array, low.arrays.full_view(array))
    return [low.array_result(node, out)]


EMITTERS: Mapping[Op, Emit] = {
    shaping.slice_: emit_load_subview,
    shaping.narrow: emit_load_subview,
    parts.take_part: emit_load_subview,
    shaping.add_slice: emit_add_subview,
    shaping.add_narrow: emit_add_subview,
    parts.add_part: emit_add_subview,
    parts.set_part: emit_store_subview,
    shaping.concat: emit_concat,
    shaping.split: emit_split,
    shaping.pad: emit_pad,
    updating.set_slice: emit_store_subview,
}
