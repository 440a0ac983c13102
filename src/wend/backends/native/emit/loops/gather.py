"""Gathers of a loop nest: their index maps, and the bounds checks of their positions.

All positions are checked by loops of their own before anything is read or written. The loops that
read have no exits, so they can be vectorized, overwrite operands, and be split among threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.codegen.traps import BAD_INDEX
from wend.backends.native.emit.loops.elements import Elements
from wend.backends.native.emit.loops.index_maps import AffineIndex, Gather, IndexMap, IndexMaps
from wend.backends.native.emit.loops.loops import Accumulator, Axis, Offsets, fold, loop_axes
from wend.backends.native.fusion.body import NestBody
from wend.backends.native.fusion.symbolic_strides import ZERO_EXTENT, Extent, materialize
from wend.backends.native.target.kinds import Kind
from wend.base.lazy.dataclass import dataclass
from wend.ir.dtypes import BOOL
from wend.ir.graph import Node, Value
from wend.ops import creating, indexing

_FLAG = Kind(BOOL)


@dataclass(eq=False, repr=False, slots=True)
class Gathers:
    """Emits the gathers of a nest.

    Attributes:
        low: The lowering of the function.
        body: The body of the nest.
        index_maps: Its index maps.
        elements: Emits elements.
    """

    low: Lowering
    body: NestBody
    index_maps: IndexMaps
    elements: Elements
    _checked: set[tuple[IndexMap | Value, str]] = field(default_factory=set)

    def bind_operands(self, node: Node) -> None:
        """Record what a gathering node reads its operands from."""
        x, *indices = node.operands
        sizes, rank = self.index_maps.dims[x], len(node.results[0].tensor.dims)
        affine_indices: list[AffineIndex] = [
            *self.index_maps.identity_indices(node.results[0].tensor.dims, rank)
        ]
        if node.op is indexing.gather:
            gathered = [
                self._gathered_index(node, k, sizes[k - 1]) for k in range(1, len(indices) + 1)
            ]
            affine_indices = [*gathered, *affine_indices[len(indices[0].tensor.dims) :]]
        else:
            axis = node.attrs["axis"]
            self.low.check_equal_dims(sizes, self.index_maps.dims[indices[0]], axis)
            affine_indices[axis] = self._gathered_index(node, 1, sizes[axis])
        self.elements.sources[node, 0] = self.index_maps.read_through(x, affine_indices)

    def _gathered_index(self, node: Node, k: int, size: str) -> AffineIndex:
        """Return the index along an axis that an operand holds the positions of."""
        index = node.operands[k]
        affine_indices = self.index_maps.identity_indices(index.tensor.dims, len(index.tensor.dims))
        element_source = self.index_maps.read_through(index, affine_indices)
        self.elements.sources[node, k] = element_source
        source, source_indices = self.index_maps.look_through(index, affine_indices)
        if source.node is not None and source.node.op is creating.iota:
            return source_indices[0]
        return AffineIndex("0", Gather(node, k, size, element_source[1]), 1)

    def check_bounds(self, node: Node, iteration_space: Sequence[Extent]) -> None:
        """Emit bounds checks of the positions of a node."""
        sizes = self.index_maps.dims[node.operands[0]]
        first = node.attrs.get("axis", 0)
        for k, size in enumerate(sizes[first : first + len(node.operands) - 1], 1):
            value, index_map = self.elements.sources[node, k]
            if (index_map or value, size) not in self._checked:
                self._checked.add((index_map or value, size))
                self._emit_bounds_check(Gather(node, k, size, index_map), iteration_space)

    def _emit_bounds_check(self, gather: Gather, iteration_space: Sequence[Extent]) -> None:
        """Emit a loop that checks the bounds of the positions of one operand."""
        low, index = self.low, gather.node.operands[gather.operand_index]
        value, index_map = self.elements.sources[gather.node, gather.operand_index]
        nodes = [] if index_map else self.body.producers_of(value)
        used = [index_map] if index_map else [*self.elements.index_maps(nodes)]
        rank = len(iteration_space) if nodes else len(index.tensor.dims)
        axes = self._check_axes(iteration_space[:rank], used)

        def body(offsets: Offsets, so_far: Sequence[str]) -> Sequence[str]:
            values: dict[Value, str] = {}
            self.elements.compute(nodes, offsets, values)
            position = self.elements.raw_position(gather, offsets, values)
            # Valid positions are −size to size − 1.
            shifted = low.sizes.add(position, gather.size)
            limit = low.sizes.mul("2", gather.size)
            is_out = low.w.define(f"icmp uge i64 {shifted}, {limit}")
            return [low.w.define(f"or i1 {so_far[0]}, {is_out}")]

        start: Offsets = {index_map: index_map.start for index_map in used}
        (is_out,) = fold(low, axes, start, [Accumulator(_FLAG, "false", is_sum=False)], body)
        low.traps.check(low.w.define(f"xor i1 {is_out}, true"), BAD_INDEX)

    def _check_axes(
        self, iteration_space: Sequence[Extent], used: Sequence[IndexMap]
    ) -> list[Axis]:
        """Return loops over all distinct positions.

        Axes along which positions only repeat become one loop of at most one trip.
        """
        advancing = [
            k
            for k in range(len(iteration_space))
            if any(index_map.steps[k] != ZERO_EXTENT for index_map in used)
        ]
        sizes = self.low.sizes
        nonempty_flags = [
            sizes.min(materialize(sizes, size), "1")
            for k, size in enumerate(iteration_space)
            if k not in advancing
        ]
        guard = Axis(sizes.product(nonempty_flags), {})
        loops = loop_axes(self.low, iteration_space, advancing, used)
        return loops if guard.count == "1" else [guard, *loops]
