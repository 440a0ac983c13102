"""Operation classes for fusion: layout operations, lookups, computations and reductions."""

from __future__ import annotations

from collections.abc import Sequence

from wend.backends.native.fusion.subview_alias import SUBVIEW_LOADS
from wend.backends.native.target.kinds import PARTS, REGISTERS
from wend.backends.native.target.small_arrays import is_small, size
from wend.backends.native.target.value_layout import is_scalar
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Node, Value
from wend.ir.op import TABLE
from wend.ir.types import Dim, Symbol, TensorType
from wend.ops import contracting, creating, elementwise, indexing, parts, shaping

_LAYOUT = {
    *(shaping.broadcast_to, shaping.transpose, shaping.reshape),
    *(creating.iota, *SUBVIEW_LOADS),
}
# Operations that are not loops over elements but read subviews in place. In a nest, such a node is
# the last one, and all others are layout operations.
READS_SUBVIEWS = {contracting.dot_general, shaping.shape_of, shaping.dim_of}
SUMS = {op for op in TABLE.values() if op.step is elementwise.add}
EXTREMES = {op for op in TABLE.values() if op.step is not None and op.identity is None}
SEARCHES = {op for op in TABLE.values() if op.step in (elementwise.bit_or, elementwise.bit_and)}
_LOOKUPS = {indexing.gather, indexing.take_along}

# Cost of recomputing one operation, relative to storing and reloading an element, and the time for
# which it counts as one
_EXPENSIVE_OP_COST = 8
_UNIT_COST_NS = 0.1
# A few instructions without branches
_BRANCH_FREE_NS = 0.5
# An array of up to this many elements stays in the cache from one loop to the next.
_MAX_CACHED_ELEMENTS = 2**15
# Recomputation budget of a later loop over the same row; costlier values are stored in between.
MAX_RECOMPUTE_COST = 4


def cost(node: Node) -> int:
    """Return the cost of recomputing an element."""
    return 1 if node.op.cost < _UNIT_COST_NS else _EXPENSIVE_OP_COST


def is_fusible_concat(node: Node) -> bool:
    """Return whether a node is a concat or pad whose operands can be computed in place."""
    if node.op not in (shaping.concat, shaping.pad) or is_small(node.results[0].type):
        return False
    if node.op is shaping.pad and any(min(widths) < 0 for widths in node.attrs["widths"]):
        return False
    return all(map(_is_register_array, node.operands))


def may_miss_cache(node: Node) -> bool:
    """Return whether a node looks up elements of an array that may not be in the cache.

    A loop that does nothing else keeps many such loads in flight; one that computes functions, few.
    """
    return is_lookup(node) and operand_may_miss_cache(node.operands[0])


def operand_may_miss_cache(value: Value) -> bool:
    """Return whether an array may not be in the cache when it is read."""
    return not value.tensor.is_static or size(value.type) > _MAX_CACHED_ELEMENTS


def is_compute_bound(node: Node) -> bool:
    """Return whether a node computes so long per element, or branches, that it must not wait."""
    return not is_lookup(node) and reduction_of(node) is None and node.op.cost > _BRANCH_FREE_NS


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction over axes of its operand.

    Attributes:
        axes: the reduced axes.
        operand_axes: for each axis of the result, the axis of the operand, or None for an axis of
            size one.
    """

    axes: tuple[int, ...]
    operand_axes: tuple[int | None, ...]

    def outer_rank(self, rank: int) -> int | None:
        """Return the number of remaining axes if the reduced axes are the last ones, else None."""
        first = rank - len(self.axes)
        return first if self.axes == tuple(range(first, rank)) else None


def is_layout(node: Node) -> bool:
    """Return whether a node only moves elements, by a static index map (or from scalar indices)."""
    if node.op not in _LAYOUT or not _is_element_array(node.results[0]):
        return False
    result_type = node.results[0].tensor
    result_dims = result_type.dims
    if node.op is creating.iota:
        return result_type.dtype.kind != "b"
    if node.operands[0].tensor.shape is None:
        return False
    operand_dims = node.operands[0].tensor.dims
    match node.op:
        case shaping.broadcast_to:
            if len(node.operands) == 1 and any(isinstance(dim, Symbol) for dim in result_dims):
                return False
            pairs = zip(
                operand_dims, result_dims[len(result_dims) - len(operand_dims) :], strict=True
            )
            return all(operand_dim in (1, result_dim) for operand_dim, result_dim in pairs)
        case shaping.reshape:
            return non_unit_dims(operand_dims) == non_unit_dims(result_dims)
        case indexing.gather:  # a row at scalar positions
            return len(node.operands) > 1 and is_scalar(node.operands[1].type)
    return True


def is_lookup(node: Node) -> bool:
    """Return whether a node is a gather by index arrays that native code supports."""
    if node.op not in _LOOKUPS or len(node.operands) == 1:
        return False
    if not all(map(_is_element_array, (*node.operands, *node.results))):
        return False
    if node.op is indexing.gather:
        return True
    pairs = zip(*(value.tensor.dims for value in node.operands), strict=True)
    return all(
        operand_dim == index_dim
        for axis, (operand_dim, index_dim) in enumerate(pairs)
        if axis != node.attrs["axis"]
        and isinstance(operand_dim, int)
        and isinstance(index_dim, int)
    )


def may_trap(node: Node) -> bool:
    """Return whether a layout operation may fail at run time."""
    return node.op is indexing.gather or (
        node.op is parts.take_part and parts.AT in node.attrs["entries"]
    )


def non_unit_dims(dims: Sequence[Dim]) -> list[Dim]:
    """Return the sizes other than one."""
    return [dim for dim in dims if dim != 1]


def is_constant(node: Node) -> bool:
    """Return whether a node is a scalar constant."""
    return node.op is creating.constant and is_scalar(node.results[0].type)


def reduction_of(node: Node) -> Reduction | None:
    """Return the reduction that a node does, if native code supports it."""
    if node.op.step is None or not _is_register_array(node.operands[0]):
        return None
    operand, result = node.operands[0].tensor, node.results[0].tensor
    if node.op is shaping.sum_to:
        return _sum_to(operand, result)
    axes = tuple(sorted(node.attrs["axes"]))
    if not axes:
        return None
    all_axes = range(len(operand.dims))
    operand_axes: list[int | None] = [k for k in all_axes if k not in axes]
    if node.attrs["keepdims"]:
        operand_axes = [None if k in axes else k for k in all_axes]
    return Reduction(axes, tuple(operand_axes))


def _sum_to(operand: TensorType, result: TensorType) -> Reduction | None:
    if not (operand.is_static and result.is_static):
        return None
    num_leading = len(operand.dims) - len(result.dims)
    operand_axes: list[int | None] = []
    for axis, result_dim in enumerate(result.dims, num_leading):
        operand_axes.append(None if result_dim == 1 and operand.dims[axis] != 1 else axis)
    axes = tuple(k for k in range(len(operand.dims)) if k not in operand_axes)
    return Reduction(axes, tuple(operand_axes)) if axes else None


def _is_register_array(value: Value) -> bool:
    """Return whether a value is an array of known rank with elements of a register type."""
    type = value.type
    if not isinstance(type, TensorType) or not type.shape:
        return False
    return type.dtype in REGISTERS


def _is_element_array(value: Value) -> bool:
    """Return whether a value is an array of known rank whose elements loop nests can hold."""
    type = value.type
    is_complex = isinstance(type, TensorType) and bool(type.shape) and type.dtype in PARTS
    return is_complex or _is_register_array(value)
