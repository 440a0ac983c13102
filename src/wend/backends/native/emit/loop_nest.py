"""Loop nests: a loop over rows, which contains the sections of the body one after the other.

Every array is accessed with fixed strides, so axes can be coalesced and the most contiguous one be
innermost. The innermost loop may run in any order, which its metadata tells LLVM: it vectorizes the
loop without checks for overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.emit.array.creating import emit_constant
from wend.backends.native.emit.array.in_place import overwritable, writable
from wend.backends.native.emit.array.reducing import COMBINERS, check_nonempty, identity_of, row_sum
from wend.backends.native.emit.array.shaping import new_array
from wend.backends.native.emit.contracting import emit_dot_of_subviews
from wend.backends.native.emit.loops.concat import Destinations, emit_concat
from wend.backends.native.emit.loops.elements import Elements, ElementSource, Values
from wend.backends.native.emit.loops.gather import Gathers
from wend.backends.native.emit.loops.index_maps import (
    AffineIndex,
    AffineIndices,
    IndexMap,
    IndexMaps,
)
from wend.backends.native.emit.loops.loops import (
    Accumulator,
    Axis,
    Offsets,
    fold,
    for_each_index,
    loop_axes,
)
from wend.backends.native.emit.loops.outline_parallel import ParallelOutline
from wend.backends.native.emit.loops.short_rows import (
    column_axes,
    column_offsets,
    has_vector_of_rows,
    short_sum,
    unrolls_rows,
)
from wend.backends.native.emit.scalar.element import kind_of
from wend.backends.native.fusion.body import NestBody, Section, is_copy, is_subview_store
from wend.backends.native.fusion.op_classes import (
    EXTREMES,
    READS_SUBVIEWS,
    SUMS,
    cost,
    is_constant,
    is_fusible_concat,
    is_lookup,
)
from wend.backends.native.fusion.symbolic_strides import Extent, extent, materialize
from wend.backends.native.target.kinds import Kind
from wend.backends.native.target.loop_nest import LoopNestParts, loop_nest
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Node, Value
from wend.ir.op import Op
from wend.ops import contracting, reducing, shaping


def emit_loop_nest(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """Emit the loops of a nest, or an operation that reads subviews without a copy."""
    body = LoopNestParts.of(node).body
    low.values.update(zip(body.params, operands, strict=True))
    for inner in body.nodes:
        if is_constant(inner):
            low.values.update(zip(inner.results, emit_constant(low, inner, ()), strict=True))
    parts = LoopNestParts.of(node)
    (*_, last) = (None, *body.nodes)
    if last is not None and last.op in READS_SUBVIEWS:
        return _emit_subview_reader(low, node, last)
    index_maps = IndexMaps(low, len(parts.iteration_space))
    index_maps.infer_dims(body)
    if last is None or not is_fusible_concat(last):
        return _NestEmitter(low, node, parts, index_maps).emit()

    def emit_nest(part: LoopNestParts, destinations: Destinations) -> None:
        _NestEmitter(
            low, node, part, replace(index_maps, rank=len(part.iteration_space)), destinations
        ).emit_loops()

    return [low.array_result(node, emit_concat(low, parts, index_maps, emit_nest))]


def _emit_subview_reader(low: Lowering, loop_nest: Node, node: Node) -> Any:
    """Emit an operation that reads subviews of arrays without a copy."""
    index_maps = IndexMaps(low, max(len(value.tensor.dims) for value in node.operands))
    index_maps.infer_dims(LoopNestParts.of(loop_nest).body)
    if node.op is contracting.dot_general:
        return emit_dot_of_subviews(low, loop_nest, node, index_maps)
    dims = index_maps.dims[node.operands[0]]
    if node.op is shaping.dim_of:
        return [(dims[node.attrs["axis"]],)]
    return [new_array(low, loop_nest, dims)]


@dataclass(eq=False, repr=False, slots=True)
class _NestEmitter:
    """Emits the loops of one nest.

    Attributes:
        low: The lowering of the function.
        node: The `loop_nest` node.
        parts: Its parts.
        index_maps: The index maps of its arrays.
        destinations: Where to store the results that are subviews of existing arrays.
        body: The body, by sections.
        sizes: The sizes of the iteration space.
        elements: Emits elements.
        targets: Where the loops store values.
        arrays: The arrays of the results.
        copies: What the results that are only copied are read from.
        deferred_releases: The pointers to release after the loops.
        outline: Outlines the outermost loop.
        thread_strides: The index maps of per-thread buffers, and how far these are apart.
        unrolled_axes: The loops over rows that are unrolled, the innermost to be vectorized; None
            if rows are loops.
    """

    low: Lowering
    node: Node
    parts: LoopNestParts
    index_maps: IndexMaps
    destinations: Destinations = field(default_factory=dict)
    body: NestBody = field(init=False)
    sizes: list[Extent] = field(default_factory=list)
    elements: Elements = field(init=False)
    targets: dict[Value, IndexMap] = field(default_factory=dict)
    arrays: dict[Value, Array] = field(default_factory=dict)
    copies: dict[Value, ElementSource] = field(default_factory=dict)
    deferred_releases: list[str] = field(default_factory=list)
    outline: ParallelOutline = field(init=False)
    thread_strides: dict[IndexMap, str] = field(default_factory=dict)
    unrolled_axes: Sequence[Axis] | None = None

    def __post_init__(self) -> None:
        self.body = NestBody(self.parts)
        self.elements = Elements(self.low)

    def emit(self) -> list[Registers]:
        """Emit the loops; return the results."""
        self.emit_loops()
        return [
            (self.elements.row_values[value],)
            if is_scalar(value.type)
            else self.low.array_result(self.node, self.arrays[value], k)
            for k, value in enumerate(self.parts.body.results)
        ]

    def emit_loops(self) -> None:
        """Emit the loops, with the allocations before and the releases after them."""
        self._own_updated_arrays()
        self.sizes = self._space_sizes()
        self._bind_operands()
        self.outline = ParallelOutline(self.low, self._element_cost(), self.sizes)
        for value in dict.fromkeys(self.parts.body.results):
            if not is_subview_store(value):
                self._allocate_result(value)
        self.unrolled_axes = self._unrolled_axes()
        if self.unrolled_axes is None:
            for value in self.body.row_buffers:
                self._allocate_row_buffer(value)
        self._emit_outer_loops()
        for pointer in self.deferred_releases:
            self.low.arrays.release(pointer)

    # Before the loops
    def _element_cost(self) -> int:
        """Return the estimated cost of an element."""
        nodes = [node for section in self.body.sections for node in section.nodes]
        return 1 + len(self.body.reductions) + sum(map(cost, nodes))

    def _space_sizes(self) -> list[Extent]:
        """Return the sizes of the iteration space, from a value that has its shape."""
        for values in (self.parts.body.params, *(n.results for n in self.parts.body.nodes)):
            for value in values:
                if not is_scalar(value.type) and value.tensor.dims == self.parts.iteration_space:
                    return [extent(size) for size in self.index_maps.dims[value]]
        raise AssertionError("a nest goes over what is there")

    def _updated_params(self) -> set[Value]:
        """Return the params of which subviews are updated in place."""
        stores = filter(is_subview_store, self.parts.body.results)
        return {value.node.operands[0] for value in stores if value.node is not None}

    def _own_updated_arrays(self) -> None:
        """Make the arrays that are updated in place uniquely owned; the loops read those."""
        for value in filter(is_subview_store, dict.fromkeys(self.parts.body.results)):
            store = value.node
            assert store is not None
            param = store.operands[0]
            array = writable(self.low, self.node, self.parts.body.params.index(param))
            self.low.values[param] = self.low.arrays.slots(param.tensor, array)
            self.arrays[value] = Array(array.pointer, array.dtype, self.index_maps.dims[param])
            self.targets[value] = self.index_maps.stored_subview(store, self.arrays[value])

    def _operand_indices(self, node: Node, value: Value) -> AffineIndices:
        """Return the indices at which a node reads an operand."""
        is_row = node.results[0] in self.body.row_values and node not in self.body.reductions
        rank = self.parts.outer_rank if is_row else None
        return self.index_maps.identity_indices(value.tensor.dims, rank)

    def _bind_operands(self) -> None:
        """Record what the nodes read their operands from; emit the checks before the loops."""
        nodes = [*(n for section in self.body.sections for n in section.nodes)]
        nodes += self.body.reductions
        nodes += [n for row_nodes in self.body.row_nodes for n in row_nodes]
        gathers = Gathers(self.low, self.body, self.index_maps, self.elements)
        gathering_nodes = [node for node in dict.fromkeys(nodes) if is_lookup(node)]
        for node in dict.fromkeys(nodes):
            if is_lookup(node):
                gathers.bind_operands(node)
                continue
            if node in self.body.reductions and node.op in EXTREMES:
                dims = self.index_maps.dims[node.operands[0]]
                check_nonempty(self.low, [dims[k] for k in self.body.reductions[node].axes])
            for k, operand in enumerate(node.operands):
                indices = () if is_scalar(operand.type) else self._operand_indices(node, operand)
                self.elements.sources[node, k] = self.index_maps.read_through(operand, indices)
        for value in filter(is_subview_store, self.parts.body.results):
            assert value.node is not None
            stored = value.node.operands[1]
            indices = self._operand_indices(value.node, stored)
            self.elements.sources[value.node, 1] = self.index_maps.read_through(stored, indices)
        for node in gathering_nodes:
            gathers.check_bounds(node, self.sizes)
        for value in self.parts.body.results:
            if is_copy(value):
                indices = self.index_maps.identity_indices(value.tensor.dims)
                self.copies[value] = self.index_maps.read_through(value, indices)

    def _allocate_result(self, value: Value) -> None:
        """Allocate the array of a result, and record its index map."""
        if value in self.destinations:
            self.targets[value] = self.index_maps.linearize(*self.destinations[value])
            return
        dims = self.index_maps.dims.get(value, ())
        if is_scalar(value.type):
            return
        self.arrays[value] = array = self._result_array(value, dims)
        if value in self.body.memory_reductions:
            assert value.node is not None
            self._initialize(value.node, array)
            axes = self.body.reductions[value.node].operand_axes
            indices: AffineIndices = [_axis_index(axis) for axis in axes]
        else:
            rank = self.parts.outer_rank if value in self.body.row_values else None
            indices = self.index_maps.identity_indices(value.tensor.dims, rank)
        self.targets[value] = self.index_maps.linearize(array, indices)

    def _result_array(self, value: Value, dims: tuple[str, ...]) -> Array:
        """Return memory for a result: that of an operand at its last use if possible."""
        prototype = Array("null", value.tensor.dtype, dims)
        for index, param in enumerate(self.parts.body.params):
            if self._can_overwrite(index, param, value):
                array, deferred_release = overwritable(self.low, self.node, index, prototype)
                self.deferred_releases.append(deferred_release)
                return array
        return self.low.arrays.new(prototype.dtype, dims)

    def _can_overwrite(self, index: int, param: Value, value: Value) -> bool:
        """Return whether a result may overwrite a param.

        Each element must have been read before the same element of the result is stored.
        """
        if not self.low.may_move(self.node.operands[index]) or is_scalar(param.type):
            return False
        if param in self._updated_params():
            return False
        if (
            param.tensor.dims != self.parts.iteration_space
            or value.tensor.dims != self.parts.iteration_space
        ):
            return False
        if param.tensor.dtype.itemsize != value.tensor.dtype.itemsize:
            return False
        return self.body.is_read_elementwise(param) and self.body.last_reading_section(param) <= (
            self.body.storing_section(value)
        )

    def _initialize(self, node: Node, array: Array) -> None:
        """Fill the array of a reduction in memory with the identity."""
        identity = identity_of(node, array.kind)
        if node.op in SUMS:
            self.low.arrays.clear(array)
        else:
            self.low.w.loop(
                self.low.arrays.count(array), lambda k: self.low.arrays.store(array, k, identity)
            )

    def _allocate_row_buffer(self, value: Value) -> None:
        """Allocate a buffer for a row of values that a later section reads."""
        outer_rank = self.parts.outer_rank
        dims = self.index_maps.dims[value][outer_rank:]
        indices = self.index_maps.identity_indices(value.tensor.dims)[outer_rank:]
        if outer_rank and self.outline.is_profitable:
            buffer, stride = self.outline.thread_buffer(value.tensor.dtype, dims)
            array = Array(buffer.pointer, buffer.dtype, dims)
            self.targets[value] = self.index_maps.linearize(array, indices)
            self.thread_strides[self.targets[value]] = stride
        else:
            array = self.low.arrays.new(value.tensor.dtype, dims)
            self.targets[value] = self.index_maps.linearize(array, indices)
        self.deferred_releases.append(array.pointer)

    # Loops
    def _index_maps(self) -> list[IndexMap]:
        """Return all index maps that the loops read and write."""
        sources = (*self.elements.sources.values(), *self.copies.values())
        index_maps = dict.fromkeys(index_map for _, index_map in sources if index_map)
        return [*(index_maps | dict.fromkeys(self.targets.values()))]

    def _unrolled_axes(self) -> Sequence[Axis] | None:
        """Return the loops over rows that are so short that vectors hold elements of many rows."""
        if not unrolls_rows(self.body, self.sizes):
            return None
        outer, sums = range(self.parts.outer_rank), self.body.memory_reductions
        must_advance = [self.targets[value] for value in self.targets if value in sums]
        axes = loop_axes(self.low, self.sizes, outer, self._index_maps(), must_advance)
        if not axes or not all(index_map in axes[-1].steps for index_map in must_advance):
            return None
        return axes if has_vector_of_rows(axes[-1]) else None

    def _emit_outer_loops(self) -> None:
        """Emit the loops over rows."""
        index_maps = self._index_maps()
        start: Offsets = {index_map: index_map.start for index_map in index_maps}
        if self.unrolled_axes is not None:
            self._emit_unrolled_rows(self.unrolled_axes, index_maps, start)
            return
        outer_axes = loop_axes(self.low, self.sizes, range(self.parts.outer_rank), index_maps)
        section_axes = [self._section_axes(section) for section in self.body.sections]

        def each(offsets: Offsets, _: Sequence[str]) -> Sequence[str]:
            for number, nodes in enumerate(self.body.row_nodes):
                for node in nodes:
                    self._emit_row_node(node, offsets)
                if number < len(section_axes):
                    self._emit_section(self.body.sections[number], section_axes[number], offsets)
            return ()

        self._emit_row_loops(
            outer_axes, start, lambda axes, at: for_each_index(self.low, axes, at, each)
        )

    def _emit_row_loops(
        self,
        axes: Sequence[Axis],
        start: Offsets,
        emit_loops: Callable[[Sequence[Axis], Offsets], object],
    ) -> None:
        """Emit the loops over rows, on several threads if rows share no sum in memory."""
        if self.body.memory_reductions or not axes:
            emit_loops(axes, start)
            return
        inner_dims = [
            materialize(self.low.sizes, size) for size in self.sizes[self.parts.outer_rank :]
        ]
        self.outline.emit(axes, start, inner_dims, self.thread_strides, emit_loops)

    def _emit_unrolled_rows(
        self, axes: Sequence[Axis], index_maps: Sequence[IndexMap], start: Offsets
    ) -> None:
        """Emit loops over rows whose elements are unrolled: the innermost is over rows."""
        columns = column_axes(self.low, self.sizes, self.parts.outer_rank, index_maps)

        def each(offsets: Offsets, _: Sequence[str]) -> Sequence[str]:
            elements = [
                (column_offsets(self.low, columns, offsets, position), dict[Value, str]())
                for position in np.ndindex(*(int(axis.count) for axis in columns))
            ]
            for number, nodes in enumerate(self.body.row_nodes):
                for node in nodes:
                    self._emit_row_node(node, offsets, [at for at, _ in elements])
                if number < len(self.body.sections):
                    self._emit_unrolled_section(self.body.sections[number], elements, offsets)
            return ()

        self._emit_row_loops(axes, start, lambda axes, at: fold(self.low, axes, at, (), each))

    def _emit_unrolled_section(
        self, section: Section, elements: Sequence[tuple[Offsets, Values]], row: Offsets
    ) -> None:
        """Emit a section for each element of a row, of which all values are in registers."""
        totals = [self._accumulator(node).initial for node in section.reductions]
        for at, values in elements:
            missing = [node for node in section.nodes if node.results[0] not in values]
            self._compute_element(section, missing, at, values)
            totals = [
                self._combine(
                    node, old, self.elements.operand_element(node, 0, at, values), in_order=True
                )
                for node, old in zip(section.reductions, totals, strict=True)
            ]
            self._store_element([v for v in section.stored if v in self.targets], at, values)
        self._finish_row(section, totals, row)

    def _section_maps(self, section: Section) -> list[IndexMap]:
        """Return the index maps that a section reads and writes."""
        used = self.elements.index_maps(
            (*section.nodes, *section.reductions, *section.memory_reductions)
        )
        for value in (*section.stored, *section.loaded, *self._memory_results(section)):
            used[self.targets[value]] = None
            source_map = self.copies[value][1] if value in self.copies else None
            if is_subview_store(value):
                assert value.node is not None
                source_map = self.elements.sources[value.node, 1][1]
            if source_map is not None:
                used[source_map] = None
        return [*used]

    def _memory_results(self, section: Section) -> list[Value]:
        """Return the results of the memory reductions of a section."""
        return [node.results[0] for node in section.memory_reductions]

    def _section_axes(self, section: Section) -> list[Axis]:
        """Return the loops of a section."""
        axes = range(self.parts.outer_rank, len(self.parts.iteration_space))
        must_advance = [self.targets[value] for value in self._memory_results(section)]
        return loop_axes(self.low, self.sizes, axes, self._section_maps(section), must_advance)

    def _emit_row_node(
        self, node: Node, offsets: Offsets, columns: Sequence[Offsets] | None = None
    ) -> None:
        """Emit a node that is computed once per row.

        `columns` are the offsets of the elements of an unrolled row.
        """
        (result,) = node.results
        if self.body.is_row_sum(node) and columns is not None:
            terms = [self.elements.operand_element(node, 0, at, {}) for at in columns]
            self.elements.row_values[result] = short_sum(self.low, kind_of(node), terms)
        elif self.body.is_row_sum(node):
            self.elements.row_values[result] = self._row_sum(node, offsets)
        else:
            self.elements.row_values[result] = self.elements.result_element(node, offsets, {})
        self._store_row(result, offsets)

    def _store_row(self, value: Value, offsets: Offsets) -> None:
        """Store a value of the current row if it is a result."""
        if value in self.targets:
            target = self.targets[value]
            self.elements.store(target, offsets[target], self.elements.row_values[value])

    def _row_sum(self, node: Node, offsets: Offsets) -> str:
        """Emit the sum of the current row, which is contiguous in memory."""
        index_map = self.elements.sources[node, 0][1]
        assert index_map is not None
        assert index_map.array is not None
        dims = self.index_maps.dims[node.operands[0]][self.parts.outer_rank :]
        count = self.low.sizes.product(dims)
        address = self.low.arrays.address(index_map.array, offsets[index_map])
        return row_sum(self.low, index_map.kind, address, count)

    def _emit_section(self, section: Section, axes: Sequence[Axis], offsets: Offsets) -> None:
        """Emit the loops of a section."""
        accumulators = [self._accumulator(node) for node in section.reductions]
        elements, hoist = self.elements, self.elements.gather_hoister(self._section_maps(section))

        def body(at: Offsets, so_far: Sequence[str]) -> Sequence[str]:
            values: dict[Value, str] = {}
            for value in section.loaded:
                target = self.targets[value]
                values[value] = elements.load(target, at, values)
            self._compute_element(section, section.nodes, at, values)
            next_values = [
                self._combine(
                    node, old, elements.operand_element(node, 0, at, values), in_order=False
                )
                for node, old in zip(section.reductions, so_far, strict=True)
            ]
            self._store_element(section.stored, at, values)
            return next_values

        if not (accumulators or section.memory_reductions or self.parts.outer_rank):
            self.outline.emit(
                axes, offsets, [], {}, lambda axes, at: fold(self.low, axes, at, (), body, hoist)
            )
            return
        self._finish_row(section, fold(self.low, axes, offsets, accumulators, body, hoist), offsets)

    def _compute_element(
        self, section: Section, nodes: Sequence[Node], at: Offsets, values: Values
    ) -> None:
        """Emit nodes of a section for one element, and its additions to sums in memory."""
        elements = self.elements
        elements.compute(nodes, at, values)
        for value in section.stored:
            if value in self.copies:
                values[value] = self._load_copied(value, at)
            if is_subview_store(value):
                assert value.node is not None
                values[value] = elements.operand_element(value.node, 1, at, values)
        for node in section.memory_reductions:
            target = self.targets[node.results[0]]
            element = elements.operand_element(node, 0, at, values)
            old = elements.load(target, at, values)
            elements.store(target, at[target], self._combine(node, old, element, in_order=True))

    def _store_element(self, stored: Sequence[Value], at: Offsets, values: Values) -> None:
        """Store an element of results; this comes last because it may overwrite operands."""
        for value in stored:
            self.elements.store(self.targets[value], at[self.targets[value]], values[value])

    def _finish_row(self, section: Section, totals: Sequence[str], offsets: Offsets) -> None:
        """Record the totals of the reductions of a section, and store those that are results."""
        for node, total in zip(section.reductions, totals, strict=True):
            (result,) = node.results
            self.elements.row_values[result] = total
            self._store_row(result, offsets)

    def _accumulator(self, node: Node) -> Accumulator:
        """Return the accumulator of a reduction."""
        kind = Kind(node.operands[0].tensor.dtype)
        return Accumulator(kind, identity_of(node, kind), node.op in SUMS and kind.is_real)

    def _combine(self, node: Node, x: str, y: str, *, in_order: bool) -> str:
        """Emit the combination of two elements of a reduction."""
        kind = Kind(node.operands[0].tensor.dtype)
        type = kind.text
        if kind.is_real and not in_order:
            if node.op in SUMS:
                return self.low.w.define(f"fadd reassoc {type} {x}, {y}")
            if node.op is reducing.reduce_prod:
                return self.low.w.define(f"fmul reassoc {type} {x}, {y}")
            intrinsic = "maximum" if node.op is reducing.reduce_max else "minimum"
            # nsz: the extreme of 0.0 and −0.0 may be either.
            call = f"call nsz {type} @llvm.{intrinsic}.{kind.suffix}({type} {x}, {type} {y})"
            return self.low.w.define(call)
        return COMBINERS[node.op](self.low, node, kind, x, y)

    def _load_copied(self, value: Value, offsets: Offsets) -> str:
        """Load an element of a result that is a copy."""
        source, index_map = self.copies[value]
        if index_map is None:
            return self.low.values[source][0]
        return self.elements.load(index_map, offsets, {})


def _axis_index(axis: int | None) -> AffineIndex:
    """Return the index along an axis of the iteration space, or of a single element."""
    return AffineIndex() if axis is None else AffineIndex("0", axis, 1)


EMITTERS: Mapping[Op, Emit] = {loop_nest: emit_loop_nest}
