"""Index maps of a loop nest: how the elements of each array follow from the axes of its loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TypeAlias

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.codegen.traps import BAD_SHAPE
from wend.backends.native.emit.array.shaping import check_nonnegative, target_dims
from wend.backends.native.emit.array.subviews import AxisSlice, axis_slices
from wend.backends.native.emit.scalar.casting import emit_cast
from wend.backends.native.emit.scalar.pairs import PAIR_ELEMENTS
from wend.backends.native.fusion.subview_alias import SUBVIEW_LOADS, SUBVIEW_STORES
from wend.backends.native.fusion.symbolic_strides import (
    ONE_EXTENT,
    ZERO_EXTENT,
    Extent,
    add_extents,
    materialize,
    multiply,
    strides,
)
from wend.backends.native.target.kinds import WORD, Kind
from wend.backends.native.target.value_layout import is_scalar
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import Dim, Symbol
from wend.ops import creating, indexing, shaping


@dataclass(frozen=True, slots=True)
class AffineIndex:
    """An affine index along one axis of an array: start + step · i.

    Here i is the index along `axis` of the iteration space or the position that a gather yields;
    without an axis the index is `start`.
    """

    start: str = "0"
    axis: int | Gather | None = None
    step: int = 0


AffineIndices: TypeAlias = Sequence[AffineIndex]
# Their dims are computed even if all symbols of the result are known, to find their subviews.
_DIMS_FROM_OPERANDS = {*SUBVIEW_LOADS, shaping.concat, shaping.pad}


@dataclass(frozen=True, slots=True)
class IndexMap:
    """The linearized index map of an array over the iteration space.

    Attributes:
        array: The array; None if the indices themselves are the elements.
        kind: The kind of its elements.
        start: The offset of the first element.
        steps: The stride along each axis of the iteration space.
        gathers: The gathered positions, with the stride of the axis that each one indexes.
    """

    array: Array | None
    kind: Kind
    start: str
    steps: tuple[Extent, ...]
    gathers: tuple[tuple[Gather, Extent], ...] = ()


@dataclass(frozen=True, slots=True)
class Gather:
    """A position from an integer array, along an axis of `size`; negative ones count from the end.

    Attributes:
        node: The node that gathers.
        operand_index: Which of its operands holds the positions.
        size: The size of the indexed axis.
        index_map: Where the positions are; None if the nest computes them.
    """

    node: Node
    operand_index: int
    size: str
    index_map: IndexMap | None


@dataclass(eq=False, repr=False, slots=True)
class IndexMaps:
    """Emits, in front of the loops, the index maps of a nest.

    Attributes:
        low: The lowering of the function; the params of the body have their slots.
        rank: The rank of the iteration space.
        dims: The dims of each array of the body.
    """

    low: Lowering
    rank: int
    dims: dict[Value, tuple[str, ...]] = field(default_factory=dict)
    _symbol_sizes: dict[Symbol, str] = field(default_factory=dict)
    _subviews: dict[Node, Sequence[AxisSlice]] = field(default_factory=dict)

    def infer_dims(self, body: Graph) -> None:
        """Emit the dims of all values, and checks that equal symbols are equal sizes."""
        for param in body.params:
            if is_scalar(param.type):
                continue
            self._bind_dims(param, self.low.arrays.of(param.tensor, self.low.values[param]).dims)
        for node in body.nodes:
            (result,) = node.results
            if not is_scalar(result.type):
                self._bind_dims(result, self._result_dims(node))
            if node.op in SUBVIEW_STORES:
                self._infer_stored_subview(node)

    def _infer_stored_subview(self, store: Node) -> None:
        """Find the subview of a store, and check that it has the dims of the stored value."""
        target, value, *positions = store.operands
        position_slots = [self.low.values[v] for v in positions]
        self._subviews[store], counts = axis_slices(
            self.low, store, self.dims[target], position_slots
        )
        self.low.check_equal_dims(counts, self.dims[value])

    def _bind_dims(self, value: Value, dims: Sequence[str]) -> None:
        """Record the dims of a value, with one register per symbol."""
        bound = []
        for dim, size in zip(value.tensor.dims, dims, strict=True):
            expected = (
                self._symbol_sizes.setdefault(dim, size) if isinstance(dim, Symbol) else str(dim)
            )
            self.low.traps.check(self.low.sizes.equal(size, expected), BAD_SHAPE)
            bound.append(expected)
        self.dims[value] = tuple(bound)

    def _result_dims(self, node: Node) -> Sequence[str]:
        """Return the dims of the result of a node."""
        result = node.results[0].tensor
        if all(not isinstance(dim, Symbol) or dim in self._symbol_sizes for dim in result.dims):
            dims_of_symbols = [self._dim_size(dim) for dim in result.dims]
            if node.op not in _DIMS_FROM_OPERANDS:
                return dims_of_symbols
        low = self.low
        if node.op is indexing.gather and not is_scalar(node.operands[1].type):
            x, *indices = node.operands
            return (*self.dims[indices[0]], *self.dims[x][len(indices) :])
        if node.op in SUBVIEW_LOADS:
            position_slots = [low.values[v] for v in node.operands[1:]]
            slices, dims = axis_slices(low, node, self.dims[node.operands[0]], position_slots)
            self._subviews[node] = slices
            return dims
        match node.op:
            case shaping.concat:
                sizes, axis = [*self.dims[node.operands[0]]], node.attrs["axis"]
                for other in node.operands[1:]:
                    low.check_equal_dims(sizes, self.dims[other], axis)
                    sizes[axis] = low.sizes.add(sizes[axis], self.dims[other][axis])
                return sizes
            case shaping.pad:
                pairs = zip(self.dims[node.operands[0]], node.attrs["widths"], strict=True)
                return [low.sizes.add(size, str(sum(widths))) for size, widths in pairs]
            case creating.iota:
                kind = Kind(node.operands[0].tensor.dtype)
                size = emit_cast(low.w, kind, WORD, low.values[node.operands[0]][0])
                return [low.sizes.max(size, "0")]
            case shaping.broadcast_to:
                broadcast_dims = target_dims(
                    low, node, [low.values.get(v, ()) for v in node.operands], result
                )
                assert broadcast_dims is not None
                check_nonnegative(low, broadcast_dims)
                return broadcast_dims
        if node.op in PAIR_ELEMENTS:  # whose operand may have its sizes under other names
            return self.dims[node.operands[0]]
        raise AssertionError(f"the sizes of {node.op.name} follow from its operands")

    def _dim_size(self, dim: Dim) -> str:
        """Return the size of a static dim or of a symbol that has one."""
        return self._symbol_sizes[dim] if isinstance(dim, Symbol) else str(dim)

    def identity_indices(self, dims: Sequence[Dim], rank: int | None = None) -> AffineIndices:
        """Return the indices of an array over the first `rank` axes of the space, or over all.

        Its other axes have one element.
        """
        rank = self.rank if rank is None else rank
        ones = [AffineIndex() for _ in range(len(dims) - rank)]
        return [*(AffineIndex("0", axis, 1) for axis in range(rank)), *ones]

    def look_through(self, value: Value, indices: AffineIndices) -> tuple[Value, AffineIndices]:
        """Return the value that layout operations read a value from, and its indices."""
        while (
            value.node is not None
            and (operand_indices := self._operand_indices(value.node, indices)) is not None
        ):
            value, indices = value.node.operands[0], operand_indices
        return value, indices

    def _operand_indices(self, node: Node, indices: AffineIndices) -> AffineIndices | None:
        """Return the indices of the operand if a node is a layout operation, else None."""
        if node.op is shaping.transpose:
            return [indices[node.attrs["perm"].index(k)] for k in range(len(indices))]
        if node.op is shaping.broadcast_to:
            value, result = node.operands[0].tensor.dims, node.results[0].tensor.dims
            new_axes = len(result) - len(value)
            aligned = zip(indices[new_axes:], value, result[new_axes:], strict=True)
            return [
                index if operand_dim == result_dim else AffineIndex()
                for index, operand_dim, result_dim in aligned
            ]
        if node.op is shaping.reshape:
            value, result = node.operands[0].tensor.dims, node.results[0].tensor.dims
            remaining = iter(
                [index for index, dim in zip(indices, result, strict=True) if dim != 1]
            )
            return [AffineIndex() if dim == 1 else next(remaining) for dim in value]
        if node in self._subviews:
            remaining = iter(indices)
            return [
                self._subview_index(axis_slice, remaining) for axis_slice in self._subviews[node]
            ]
        return None

    def stored_subview(self, store: Node, array: Array) -> IndexMap:
        """Return the index map of the subview that a node stores to."""
        indices = iter(self.identity_indices(store.operands[1].tensor.dims, self.rank))
        return self.linearize(
            array,
            [self._subview_index(axis_slice, indices) for axis_slice in self._subviews[store]],
        )

    def _subview_index(self, axis_slice: AxisSlice, indices: Iterator[AffineIndex]) -> AffineIndex:
        """Return the index of an axis in its array, from the slice taken of it.

        The next of `indices` is that of the axis in the subview, unless the slice drops the axis.
        """
        if axis_slice.step is None:
            return AffineIndex(axis_slice.first)
        index = next(indices)
        start = self.low.sizes.add(
            axis_slice.first, self.low.sizes.mul(str(axis_slice.step), index.start)
        )
        return AffineIndex(start, index.axis, axis_slice.step * index.step)

    def read_through(self, value: Value, indices: AffineIndices) -> tuple[Value, IndexMap | None]:
        """Return the value that a value is read from, and its index map.

        Without a map it is a scalar or an element that the loops compute.
        """
        value, indices = self.look_through(value, indices)
        is_computed = value.node is not None and value.node.op is not creating.iota
        return value, None if is_scalar(value.type) or is_computed else self._index_map(
            value, indices
        )

    def _index_map(self, value: Value, indices: AffineIndices) -> IndexMap:
        """Return the index map of a param or of a range."""
        low = self.low
        if value.node is not None:
            (index,) = indices
            return IndexMap(
                None,
                Kind(value.tensor.dtype),
                index.start,
                *self._linear_steps(indices, [ONE_EXTENT]),
            )
        array = low.arrays.of(value.tensor, low.values[value])
        return self.linearize(Array(array.pointer, array.dtype, self.dims[value]), indices)

    def linearize(self, array: Array, indices: AffineIndices) -> IndexMap:
        """Return the index map of an array from one index per axis."""
        array_strides = strides(array.dims)
        start = "0"
        for index, stride in zip(indices, array_strides, strict=True):
            if index.start != "0":
                offset = self.low.sizes.mul(index.start, materialize(self.low.sizes, stride))
                start = self.low.sizes.add(start, offset)
        return IndexMap(array, array.kind, start, *self._linear_steps(indices, array_strides))

    def _linear_steps(
        self, indices: AffineIndices, array_strides: Sequence[Extent]
    ) -> tuple[tuple[Extent, ...], tuple[tuple[Gather, Extent], ...]]:
        """Return the strides along the axes of the iteration space and those of the gathers."""
        steps, gathers = [ZERO_EXTENT] * self.rank, []
        for index, stride in zip(indices, array_strides, strict=True):
            step = multiply((index.step, ()), stride)
            if isinstance(index.axis, Gather):
                gathers.append((index.axis, step))
            elif index.axis is not None:
                # In a diagonal, two axes of the array follow the same axis of the space.
                steps[index.axis] = add_extents(self.low.sizes, steps[index.axis], step)
        return tuple(steps), tuple(gathers)


def coalesced_axes(
    axes: Sequence[tuple[Extent, Sequence[Extent]]],
) -> list[tuple[Extent, Sequence[Extent]]]:
    """Merge adjacent axes that are contiguous in all arrays.

    An axis is its size and the step of each array along it.
    """
    coalesced: list[tuple[Extent, Sequence[Extent]]] = []
    for size, steps in axes:
        if size == (1, ()):
            continue
        if coalesced:
            outer_size, outer_steps = coalesced[-1]
            if all(
                multiply(step, size) == outer_step
                for step, outer_step in zip(steps, outer_steps, strict=True)
            ):
                coalesced[-1] = multiply(outer_size, size), steps
                continue
        coalesced.append((size, steps))
    return coalesced
