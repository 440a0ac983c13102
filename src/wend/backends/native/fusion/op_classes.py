"""What an operation is to a nest: it moves elements, looks them up, computes, or reduces them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wend.backends.native.fusion.subview_alias import SUBVIEW_LOADS
from wend.backends.native.target.kinds import REGISTERS
from wend.backends.native.target.small_arrays import is_small, size
from wend.backends.native.target.value_layout import is_scalar
from wend.ir.graph import Node, Value
from wend.ir.types import Dim, Symbol, TensorType
from wend.ops import (
    contracting,
    creating,
    elementwise,
    indexing,
    parts,
    reducing,
    searching,
    shaping,
    updating,
)

_LAYOUT = {
    *(shaping.broadcast_to, shaping.transpose, shaping.reshape),
    *(creating.iota, *SUBVIEW_LOADS),
}
# What is no nest, but reads parts in place: it is the last node of a body that only moves elements
READS_PARTS = {contracting.dot_general, shaping.shape_of, shaping.dim_of}
_REDUCTIONS = {
    *(reducing.reduce_sum, reducing.reduce_prod, reducing.reduce_max, reducing.reduce_min),
    *(reducing.reduce_any, reducing.reduce_all, shaping.sum_to),
}
SUMS = {reducing.reduce_sum, shaping.sum_to}
EXTREMES = {reducing.reduce_max, reducing.reduce_min}
SEARCHES = {reducing.reduce_any, reducing.reduce_all}
_LOOKUPS = {indexing.gather, indexing.take_along}

# What changes an array in place where it can; nodes with regions hand arrays on to such.
WRITERS = {
    *(shaping.add_slice, shaping.add_narrow, indexing.scatter_add, indexing.add_along),
    *(updating.set_slice, updating.scatter_set, searching.set_along),
    *(parts.set_part, parts.add_part),
}

# What one operation costs that is computed again, beside a number that is written and read again
_DEAR = 8
_CHEAP = {
    *(elementwise.add, elementwise.sub, elementwise.mul, elementwise.neg, elementwise.abs),
    *(elementwise.select, elementwise.cast, elementwise.maximum, elementwise.minimum),
    *(elementwise.bit_and, elementwise.bit_or, elementwise.bit_xor, elementwise.bit_not),
    *(elementwise.eq, elementwise.ne, elementwise.lt, elementwise.le, elementwise.gt),
    *(elementwise.ge, elementwise.isnan, elementwise.isinf, elementwise.isfinite),
}
# What is done in some instructions without branches
_SHORT = {
    *(*_CHEAP, elementwise.div, elementwise.reciprocal, elementwise.sqrt, elementwise.sign),
    *(elementwise.floor, elementwise.ceil, elementwise.trunc, elementwise.rint),
}
# An array of so many numbers stays in the cache from one loop to the next.
_NEAR = 2**15
# What may be computed again by a later loop over the same row; more is kept in memory meanwhile.
MOST_AGAIN = 4


def cost(node: Node) -> int:
    """What it costs to compute an element again."""
    return 1 if node.op in _CHEAP else _DEAR


def is_join(node: Node) -> bool:
    """Whether it puts arrays together, or pads one, so that each can be made in its place."""
    if node.op not in (shaping.concat, shaping.pad) or is_small(node.results[0].type):
        return False
    if node.op is shaping.pad and any(min(widths) < 0 for widths in node.attrs["widths"]):
        return False
    return all(map(_fits, node.operands))


def may_miss_cache(node: Node) -> bool:
    """Whether it looks up in an array that may not be in the cache, so that it has to wait.

    A loop that does nothing else waits for many at once, one that computes functions for few.
    """
    return is_lookup(node) and operand_may_miss_cache(node.operands[0])


def operand_may_miss_cache(value: Value) -> bool:
    """Whether an array may not be in the cache when it is read."""
    return not value.tensor.is_static or size(value.type) > _NEAR


def is_compute_bound(node: Node) -> bool:
    """Whether so much is computed for each element, or with branches, that nothing is to wait."""
    return not is_lookup(node) and reduction_of(node) is None and node.op not in _SHORT


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction over axes of its operand.

    Attributes:
        axes: those that are gone.
        kept: for each axis of the result the one of the operand that it is; None: one element.
    """

    axes: tuple[int, ...]
    kept: tuple[int | None, ...]

    def outer_rank(self, rank: int) -> int | None:
        """How many axes stay, if those that go are the last."""
        first = rank - len(self.axes)
        return first if self.axes == tuple(range(first, rank)) else None


def is_layout(node: Node) -> bool:
    """Whether it gives elements of its operand, and where they are is known by their positions."""
    if node.op not in _LAYOUT or not _fits(node.results[0]):
        return False
    result_type = node.results[0].tensor
    result = result_type.dims
    if node.op is creating.iota:
        return result_type.dtype.kind != "b"
    if node.operands[0].tensor.shape is None:
        return False
    value = node.operands[0].tensor.dims
    match node.op:
        case shaping.broadcast_to:
            if len(node.operands) == 1 and any(isinstance(dim, Symbol) for dim in result):
                return False
            pairs = zip(value, result[len(result) - len(value) :], strict=True)
            return all(mine in (1, wanted) for mine, wanted in pairs)
        case shaping.reshape:
            return without_ones(value) == without_ones(result)
        case indexing.gather:  # a row, at positions that are numbers
            return len(node.operands) > 1 and is_scalar(node.operands[1].type)
    return True


def is_lookup(node: Node) -> bool:
    """Whether it gives elements at positions that arrays hold, and native code can."""
    if node.op not in _LOOKUPS or len(node.operands) == 1:
        return False
    if not all(map(_fits, (*node.operands, *node.results))):
        return False
    if node.op is indexing.gather:
        return True
    pairs = zip(*(value.tensor.dims for value in node.operands), strict=True)
    return all(
        mine == theirs
        for axis, (mine, theirs) in enumerate(pairs)
        if axis != node.attrs["axis"] and isinstance(mine, int) and isinstance(theirs, int)
    )


def may_fail(node: Node) -> bool:
    """Whether what only moves elements may be refused for what the run finds."""
    return node.op is indexing.gather or (
        node.op is parts.take_part and parts.AT in node.attrs["entries"]
    )


def without_ones(dims: Sequence[Dim]) -> list[Dim]:
    """The sizes of the axes that have more than one element, or may have."""
    return [dim for dim in dims if dim != 1]


def is_constant(node: Node) -> bool:
    """Whether it is a number that is known."""
    return node.op is creating.constant and is_scalar(node.results[0].type)


def reduction_of(node: Node) -> Reduction | None:
    """What a node reduces, if it does and native code can."""
    if node.op not in _REDUCTIONS or not _fits(node.operands[0]):
        return None
    value, result = node.operands[0].tensor, node.results[0].tensor
    if node.op is shaping.sum_to:
        return _sum_to(value, result)
    axes = tuple(sorted(node.attrs["axes"]))
    if not axes:
        return None
    rank = range(len(value.dims))
    kept: list[int | None] = [k for k in rank if k not in axes]
    if node.attrs["keepdims"]:
        kept = [None if k in axes else k for k in rank]
    return Reduction(axes, tuple(kept))


def _sum_to(value: TensorType, result: TensorType) -> Reduction | None:
    if not (value.is_static and result.is_static):
        return None
    lead = len(value.dims) - len(result.dims)
    kept: list[int | None] = []
    for axis, wanted in enumerate(result.dims, lead):
        kept.append(None if wanted == 1 and value.dims[axis] != 1 else axis)
    axes = tuple(k for k in range(len(value.dims)) if k not in kept)
    return Reduction(axes, tuple(kept)) if axes else None


def _fits(value: Value) -> bool:
    """Whether it is an array of known rank whose elements are registers' numbers."""
    type = value.type
    if not isinstance(type, TensorType) or not type.shape:
        return False
    return type.dtype in REGISTERS
