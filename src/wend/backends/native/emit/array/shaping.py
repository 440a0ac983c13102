"""Changes of shape: the same elements under other sizes, or moved to other places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from wend.backends.native.codegen.arrays import Array, Steps
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.codegen.traps import BAD_SHAPE, FAILED
from wend.backends.native.emit.array.in_place import repeated
from wend.backends.native.target.sizes import known
from wend.backends.native.target.value_layout import Registers, is_scalar, references
from wend.ir.graph import Node
from wend.ir.op import Op
from wend.ir.types import MaybeType, Symbol, TensorType
from wend.ops import elementwise, shaping


def emit_same(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """The operand itself, its sizes under other names."""
    value, (result,) = node.operands[0], node.results
    slots = low.coerce(node, operands[0], value.type, result.type)
    if isinstance(value.type, (TensorType, MaybeType)):
        share(low, node, slots)
    return [slots]


def emit_keep_shape(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """The operand itself, if its sizes are those of a vector."""
    given = low.array(node, 1)
    for k, size in enumerate(low.array(node, 0).dims):
        wanted = low.arrays.load(given, str(k))
        is_any = low.w.define(f"icmp slt i64 {wanted}, 0")
        same = low.w.define(f"icmp eq i64 {wanted}, {size}")
        low.traps.check(low.w.define(f"or i1 {is_any}, {same}"), FAILED)
    return emit_same(low, node, operands)


def share(low: Lowering, node: Node, slots: Registers) -> None:
    """The result is the memory of the first operand."""
    for k in references(node.results[0].type):
        low.memory.share(node.results[0], node.operands[0], slots[k])


def emit_reshape(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """The same elements under other sizes, if these make as many."""
    value, result = node.operands[0].tensor, node.results[0].tensor
    if is_scalar(value) and is_scalar(result):
        return [operands[0]]
    sizes = low.sizes
    dims = target_dims(low, node, operands, result)
    if dims is None:
        return NotImplemented
    count = "1" if is_scalar(value) else low.arrays.count(low.array(node, 0))
    dims = _filled(low, dims, count)
    expect_sizes(low, dims)
    low.traps.check(sizes.equal(sizes.product(dims), count), BAD_SHAPE)
    if is_scalar(value):
        made = low.new_result(node, dims)
        low.arrays.store(made, "0", operands[0][0])
        return [low.give(node, made)]
    array = low.array(node, 0)
    if is_scalar(result):
        return [(low.arrays.load(array, "0"),)]
    slots = low.give(node, Array(array.pointer, array.dtype, dims))
    share(low, node, slots)
    return [slots]


def _filled(low: Lowering, dims: Sequence[str], count: str) -> tuple[str, ...]:
    """Sizes with what is left of a number of elements in place of a negative one, or of a `?`."""
    sizes, flags, rest = low.sizes, {}, "1"
    for k, size in enumerate(dims):
        if size == "?":
            flags[k] = "true"
        elif known(size):
            rest = sizes.mul(rest, size)
        else:
            flags[k] = low.w.define(f"icmp slt i64 {size}, 0")
            rest = sizes.mul(rest, low.w.define(f"select i1 {flags[k]}, i64 1, i64 {size}"))
    if not flags:
        return tuple(dims)
    for flag, other in combinations(flags.values(), 2):
        both = sizes.both(flag, other)
        low.traps.check(low.w.define(f"xor i1 {both}, true"), BAD_SHAPE)
    # At least 1, for no number is divided by 0: the product shows then that it does not fit.
    left = sizes.div(count, sizes.most(rest, "1"))
    return tuple(
        left
        if flags.get(k) == "true"
        else low.w.define(f"select i1 {flags[k]}, i64 {left}, i64 {size}")
        if k in flags
        else size
        for k, size in enumerate(dims)
    )


def target_dims(
    low: Lowering, node: Node, operands: Sequence[Registers], result: TensorType
) -> tuple[str, ...] | None:
    """The sizes of a result: known, or given by an operand; `?` for what is left.

    None where nothing says them.
    """
    if len(operands) > 1:
        given = low.array(node, 1)
        low.traps.check(low.sizes.equal(given.dims[0], str(len(result.dims))), BAD_SHAPE)
        found = (
            low.arrays.load(given, str(k)) if isinstance(dim, Symbol) else str(dim)
            for k, dim in enumerate(result.dims)
        )
        return tuple(found)
    shape = node.attrs["shape"]
    if shape is None or sum(dim == -1 for dim in shape) > 1:
        return None
    if any(isinstance(dim, Symbol) for dim in shape):
        return None
    return tuple("?" if dim == -1 else str(dim) for dim in shape)


def expect_sizes(low: Lowering, dims: Sequence[str]) -> None:
    """Leave the function where a size that only the run knows is negative."""
    for size in dims:
        if not known(size):
            low.traps.check(low.w.define(f"icmp sge i64 {size}, 0"), BAD_SHAPE)


def emit_broadcast_to(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """The elements again and again."""
    value, result = node.operands[0].tensor, node.results[0].tensor
    if is_scalar(value) and is_scalar(result):
        return [operands[0]]
    dims = target_dims(low, node, operands, result)
    if dims is None or "?" in dims:
        return NotImplemented
    expect_sizes(low, dims)
    made = low.new_result(node, dims)
    if is_scalar(value):
        low.w.loop(low.arrays.count(made), lambda k: low.arrays.store(made, k, operands[0][0]))
        return [low.give(node, made)]
    array = low.array(node, 0)
    lead = len(dims) - len(array.dims)
    own = low.sizes.strides(array.dims)
    strides = ["0"] * lead
    for size, stride, wanted in zip(array.dims, own, dims[lead:], strict=True):
        strides.append(repeated(low, size, stride, wanted))
    source = Steps("0", tuple(strides))
    low.arrays.copy_strided(dims, made, low.arrays.whole(made), array, source)
    return [low.give(node, made)]


def emit_transpose(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """The axes in another order."""
    if is_scalar(node.operands[0].type):
        return [operands[0]]
    array, perm = low.array(node, 0), node.attrs["perm"]
    if list(perm) == sorted(perm):
        share(low, node, operands[0])
        return [operands[0]]
    dims = [array.dims[axis] for axis in perm]
    own = low.sizes.strides(array.dims)
    made = low.new_result(node, dims)
    source = Steps("0", tuple(own[axis] for axis in perm))
    low.arrays.copy_strided(dims, made, low.arrays.whole(made), array, source)
    return [low.give(node, made)]


def emit_dim_of(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """A size, as a number."""
    return [(low.array(node, 0).dims[node.attrs["axis"]],)]


def emit_shape_of(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """The sizes, as an array."""
    value = node.operands[0].tensor
    return [write_shape(low, node, () if is_scalar(value) else low.array(node, 0).dims)]


def write_shape(low: Lowering, node: Node, dims: Sequence[str]) -> Registers:
    """Sizes, as the array that a node gives."""
    made = low.new_result(node, [str(len(dims))])
    for k, size in enumerate(dims):
        low.arrays.store(made, str(k), size)
    return low.give(node, made)


def emit_broadcast_shapes(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """The sizes that two arrays have in common: an axis of size 1 takes the other's."""
    mine, theirs = low.array(node, 0), low.array(node, 1)
    if not (known(mine.dims[0]) and known(theirs.dims[0])):
        return NotImplemented
    sizes, ranks = low.sizes, (int(mine.dims[0]), int(theirs.dims[0]))
    found = []
    for k in range(-max(ranks), 0):
        a, b = (
            low.arrays.load(array, str(rank + k)) if rank + k >= 0 else "1"
            for array, rank in zip((mine, theirs), ranks, strict=True)
        )
        is_one = sizes.equal(a, "1")
        fits = low.w.define(f"or i1 {is_one}, {sizes.equal(b, '1')}")
        low.traps.check(low.w.define(f"or i1 {fits}, {sizes.equal(a, b)}"), BAD_SHAPE)
        found.append(low.w.define(f"select i1 {is_one}, i64 {b}, i64 {a}"))
    made = low.new_result(node, [str(len(found))])
    for k, size in enumerate(found):
        low.arrays.store(made, str(k), size)
    return [low.give(node, made)]


EMITTERS: Mapping[Op, Emit] = {
    shaping.broadcast_to: emit_broadcast_to,
    shaping.reshape: emit_reshape,
    shaping.refine: emit_same,
    shaping.keep_shape: emit_keep_shape,
    shaping.broadcast_shapes: emit_broadcast_shapes,
    shaping.transpose: emit_transpose,
    shaping.dim_of: emit_dim_of,
    shaping.shape_of: emit_shape_of,
    elementwise.stop_gradient: emit_same,
}
