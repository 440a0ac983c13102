"""Changes of shape: views of the same elements under other sizes, broadcasts and transposes."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from wend.backends.native.codegen.arrays import Array, StridedView
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import BAD_SHAPE, FAILED
from wend.backends.native.emit.array.in_place import broadcast_stride
from wend.backends.native.target.sizes import is_literal
from wend.backends.native.target.value_layout import Registers, is_scalar, references
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ir.types import MaybeType, Symbol, TensorType
from wend.ops import elementwise, shaping


def emit_identity(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Forward the operand under the type of the result."""
    value, (result,) = node.operands[0], node.results
    slots = low.coerce(node, operands[0], value.type, result.type)
    if isinstance(value.type, (TensorType, MaybeType)):
        share_operand(low, node, slots)
    return [slots]


def emit_keep_shape(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Forward the operand, after a check of its sizes against a vector; negative ones match any."""
    expected_shape = low.array(node, 1)
    for k, size in enumerate(low.array(node, 0).dims):
        expected = low.arrays.load(expected_shape, str(k))
        is_any = low.w.define(f"icmp slt i64 {expected}, 0")
        is_same = low.w.define(f"icmp eq i64 {expected}, {size}")
        low.traps.check(low.w.define(f"or i1 {is_any}, {is_same}"), FAILED)
    return emit_identity(low, node, operands)


def share_operand(low: Lowering, node: Node, slots: Registers, index: int = 0) -> None:
    """Make the result refer to the memory of an operand."""
    for k in references(node.results[0].type):
        low.refcounts.share(node.results[0], node.operands[index], slots[k])


def copied_view(
    low: Lowering,
    node: Node,
    dims: Sequence[str],
    array: Array,
    view: StridedView,
    index: int = 0,
) -> Registers:
    """Emit a contiguous copy of a view of an array as a result of a node."""
    out = low.new_result(node, dims, index)
    low.arrays.copy_strided(dims, out, low.arrays.full_view(out), array, view)
    return low.array_result(node, out, index)


def emit_reshape(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit the same elements under other sizes, after a check of their number."""
    value, result = node.operands[0].tensor, node.results[0].tensor
    if is_scalar(value) and is_scalar(result):
        return [operands[0]]
    sizes = low.sizes
    dims = target_dims(low, node, operands, result)
    if dims is None:
        return NotImplemented
    count = "1" if is_scalar(value) else low.arrays.count(low.array(node, 0))
    dims = _infer_size(low, dims, count)
    check_nonnegative(low, dims)
    low.traps.check(sizes.equal(sizes.product(dims), count), BAD_SHAPE)
    if is_scalar(value):
        out = low.new_result(node, dims)
        low.arrays.store(out, "0", operands[0][0])
        return [low.array_result(node, out)]
    array = low.array(node, 0)
    if is_scalar(result):
        return [(low.arrays.load(array, "0"),)]
    slots = low.array_result(node, Array(array.pointer, array.dtype, dims))
    share_operand(low, node, slots)
    return [slots]


def _infer_size(low: Lowering, dims: Sequence[str], count: str) -> tuple[str, ...]:
    """Return dims with the size that follows from `count` in place of a negative one or of `?`."""
    sizes, is_missing, known_product = low.sizes, {}, "1"
    for k, size in enumerate(dims):
        if size == "?":
            is_missing[k] = "true"
        elif is_literal(size):
            known_product = sizes.mul(known_product, size)
        else:
            is_missing[k] = low.w.define(f"icmp slt i64 {size}, 0")
            known_product = sizes.mul(
                known_product, low.w.define(f"select i1 {is_missing[k]}, i64 1, i64 {size}")
            )
    if not is_missing:
        return tuple(dims)
    for flag, other_flag in combinations(is_missing.values(), 2):
        are_both_inferred = sizes.logical_and(flag, other_flag)
        low.traps.check(low.w.define(f"xor i1 {are_both_inferred}, true"), BAD_SHAPE)
    # The divisor is at least 1; if that replaced a 0, the check of the product fails.
    inferred = sizes.div(count, sizes.max(known_product, "1"))
    return tuple(
        inferred
        if is_missing.get(k) == "true"
        else low.w.define(f"select i1 {is_missing[k]}, i64 {inferred}, i64 {size}")
        if k in is_missing
        else size
        for k, size in enumerate(dims)
    )


def target_dims(
    low: Lowering, node: Node, operands: Sequence[Registers], result: TensorType
) -> tuple[str, ...] | None:
    """Return the dims of a result, static or from an operand; `?` marks the one to be inferred.

    None if neither determines them.
    """
    if len(operands) > 1:
        target_shape = low.array(node, 1)
        low.traps.check(low.sizes.equal(target_shape.dims[0], str(len(result.dims))), BAD_SHAPE)
        dims = (
            low.arrays.load(target_shape, str(k)) if isinstance(dim, Symbol) else str(dim)
            for k, dim in enumerate(result.dims)
        )
        return tuple(dims)
    shape = node.attrs["shape"]
    if shape is None or sum(dim == -1 for dim in shape) > 1:
        return None
    if any(isinstance(dim, Symbol) for dim in shape):
        return None
    return tuple("?" if dim == -1 else str(dim) for dim in shape)


def check_nonnegative(low: Lowering, dims: Sequence[str]) -> None:
    """Emit a check that no dynamic size is negative."""
    for size in dims:
        if not is_literal(size):
            low.traps.check(low.w.define(f"icmp sge i64 {size}, 0"), BAD_SHAPE)


def emit_broadcast_to(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit a broadcast as a copy."""
    value, result = node.operands[0].tensor, node.results[0].tensor
    if is_scalar(value) and is_scalar(result):
        return [operands[0]]
    dims = target_dims(low, node, operands, result)
    if dims is None or "?" in dims:
        return NotImplemented
    check_nonnegative(low, dims)
    if is_scalar(value):
        return [low.computed_result(node, dims, lambda k: operands[0][0])]
    out, array = low.new_result(node, dims), low.array(node, 0)
    new_axes = len(dims) - len(array.dims)
    operand_strides = low.sizes.strides(array.dims)
    strides = ["0"] * new_axes
    for size, stride, target_size in zip(array.dims, operand_strides, dims[new_axes:], strict=True):
        strides.append(broadcast_stride(low, size, stride, target_size))
    source = StridedView("0", tuple(strides))
    low.arrays.copy_strided(dims, out, low.arrays.full_view(out), array, source)
    return [low.array_result(node, out)]


def emit_transpose(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit a permutation of the axes as a copy, unless it is the identity."""
    if is_scalar(node.operands[0].type):
        return [operands[0]]
    array, perm = low.array(node, 0), node.attrs["perm"]
    if list(perm) == sorted(perm):
        share_operand(low, node, operands[0])
        return [operands[0]]
    dims = [array.dims[axis] for axis in perm]
    operand_strides = low.sizes.strides(array.dims)
    source = StridedView("0", tuple(operand_strides[axis] for axis in perm))
    return [copied_view(low, node, dims, array, source)]


def emit_dim_of(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Return one size as a scalar."""
    return [(low.array(node, 0).dims[node.attrs["axis"]],)]


def emit_shape_of(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit the shape as a vector."""
    value = node.operands[0].tensor
    return [new_array(low, node, () if is_scalar(value) else low.array(node, 0).dims)]


def new_array(
    low: Lowering, node: Node, numbers: Sequence[str], dims: Sequence[str] | None = None
) -> Registers:
    """Emit an array of numbers, by default a vector, as the result of a node."""
    out = low.new_result(node, [str(len(numbers))] if dims is None else dims)
    for k, number in enumerate(numbers):
        low.arrays.store(out, str(k), number)
    return low.array_result(node, out)


def emit_broadcast_shapes(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit the broadcast of shapes: a size of 1 gives way to the others."""
    shapes = [low.array(node, k) for k in range(len(operands))]
    if not all(is_literal(shape.dims[0]) for shape in shapes):
        return NotImplemented
    ranks = [int(shape.dims[0]) for shape in shapes]
    dims = []
    for k in range(-max(ranks), 0):
        column = [
            low.arrays.load(shape, str(rank + k))
            for shape, rank in zip(shapes, ranks, strict=True)
            if rank + k >= 0
        ]
        dims.append(functools.reduce(lambda a, b: _common_size(low, a, b), column))
    return [new_array(low, node, dims)]


def _common_size(low: Lowering, a: str, b: str) -> str:
    """Return the size to which two are broadcast, after a check that there is one."""
    is_one = low.sizes.equal(a, "1")
    fits = low.w.define(f"or i1 {is_one}, {low.sizes.equal(b, '1')}")
    low.traps.check(low.w.define(f"or i1 {fits}, {low.sizes.equal(a, b)}"), BAD_SHAPE)
    return low.w.define(f"select i1 {is_one}, i64 {b}, i64 {a}")


EMITTERS: Mapping[Op, Emit] = {
    shaping.broadcast_to: emit_broadcast_to,
    shaping.reshape: emit_reshape,
    shaping.refine: emit_identity,
    shaping.keep_shape: emit_keep_shape,
    shaping.broadcast_shapes: emit_broadcast_shapes,
    shaping.transpose: emit_transpose,
    shaping.dim_of: emit_dim_of,
    shaping.shape_of: emit_shape_of,
    elementwise.stop_gradient: emit_identity,
}
