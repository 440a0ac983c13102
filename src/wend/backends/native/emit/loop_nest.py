"""Writes loop nests: one loop over rows, in it the sections of the body after each other.

Every array is read and written along axes with fixed steps, so that axes can be as one and the
fastest be chosen. In the innermost loop elements have no order: LLVM is told so, and makes vectors
without looking which arrays overlap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Emit, Lowering
from wend.backends.native.emit.array.creating import emit_constant
from wend.backends.native.emit.array.in_place import overwritable, writable
from wend.backends.native.emit.array.reducing import (
    WAYS,
    expect_some,
    identity_of,
    sum_of_row,
)
from wend.backends.native.emit.array.shaping import write_shape
from wend.backends.native.emit.contracting import emit_of_parts
from wend.backends.native.emit.loops.concat import Into, join
from wend.backends.native.emit.loops.elements import Elements, Read
from wend.backends.native.emit.loops.gather import Gathers
from wend.backends.native.emit.loops.index_maps import (
    AffineIndex,
    AffineIndices,
    IndexMap,
    IndexMaps,
)
from wend.backends.native.emit.loops.loops import (
    Axis,
    Offsets,
    Total,
    axes_of,
    fold,
    over,
)
from wend.backends.native.emit.loops.outline_parallel import ParallelOutline
from wend.backends.native.fusion.body import (
    NestBody,
    Section,
    is_copy,
    is_put,
)
from wend.backends.native.fusion.op_classes import (
    EXTREMES,
    READS_PARTS,
    SUMS,
    cost,
    is_constant,
    is_join,
    is_lookup,
)
from wend.backends.native.fusion.symbolic_strides import Extent, extent, written
from wend.backends.native.target.kinds import Kind
from wend.backends.native.target.loop_nest import LoopNestParts, loop_nest
from wend.backends.native.target.value_layout import Registers, is_scalar
from wend.ir.graph import Node, Value
from wend.ir.op import Op
from wend.ops import contracting, reducing, shaping


def emit_nest(low: Lowering, node: Node, operands: Sequence[Registers]) -> Any:
    """The loops of a nest; or what reads parts of arrays where they lie."""
    body = LoopNestParts.of(node).body
    low.values.update(zip(body.params, operands, strict=True))
    for inner in body.nodes:
        if is_constant(inner):
            low.values.update(zip(inner.results, emit_constant(low, inner, ()), strict=True))
    parts = LoopNestParts.of(node)
    (*_, last) = (None, *body.nodes)
    if last is not None and last.op in READS_PARTS:
        return _of_parts(low, node, last)
    at = IndexMaps(low, len(parts.iteration_space))
    at.measure(body)
    if last is None or not is_join(last):
        return _Nest(low, node, parts, at).write()

    def write(part: LoopNestParts, into: Into) -> None:
        _Nest(low, node, part, replace(at, rank=len(part.iteration_space)), into).run()

    return [low.give(node, join(low, parts, at, write))]


def _of_parts(low: Lowering, loop_nest: Node, node: Node) -> Any:
    """What reads parts of arrays where they lie."""
    accesses = IndexMaps(low, max(len(value.tensor.dims) for value in node.operands))
    accesses.measure(LoopNestParts.of(loop_nest).body)
    if node.op is contracting.dot_general:
        return emit_of_parts(low, loop_nest, node, accesses)
    dims = accesses.dims[node.operands[0]]
    if node.op is shaping.dim_of:
        return [(dims[node.attrs["axis"]],)]
    return [write_shape(low, loop_nest, dims)]


@dataclass(eq=False, repr=False, slots=True)
class _Nest:
    """One nest being written; `into` says which results are parts of arrays that there are."""

    low: Lowering
    node: Node
    parts: LoopNestParts
    accesses: IndexMaps
    into: Into = field(default_factory=dict)
    body: NestBody = field(init=False)
    sizes: list[Extent] = field(default_factory=list)
    elements: Elements = field(init=False)
    targets: dict[Value, IndexMap] = field(default_factory=dict)
    made: dict[Value, Array] = field(default_factory=dict)
    copies: dict[Value, Read] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    split: ParallelOutline = field(init=False)
    apart: dict[IndexMap, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.body = NestBody(self.parts)
        self.elements = Elements(self.low)

    def write(self) -> list[Registers]:
        """The loops; return the results."""
        self.run()
        return [
            (self.elements.row[value],)
            if is_scalar(value.type)
            else self.low.give(self.node, self.made[value], k)
            for k, value in enumerate(self.parts.body.results)
        ]

    def run(self) -> None:
        """The loops."""
        self._own()
        self.sizes = self._space()
        self._find_reads()
        self.split = ParallelOutline(self.low, self._work(), self.sizes)
        for value in dict.fromkeys(self.parts.body.results):
            if not is_put(value):
                self._make(value)
        for value in self.body.kept:
            self._keep(value)
        self._rows()
        for pointer in self.left:
            self.low.arrays.release(pointer)

    # Before the loops
    def _work(self) -> int:
        """What an element costs."""
        sections = self.body.sections
        nodes = [node for section in sections for node in section.nodes]
        return 1 + len(self.body.reductions) + sum(map(cost, nodes))

    def _space(self) -> list[Extent]:
        """The sizes of the space, by whatever has them."""
        for values in (self.parts.body.params, *(n.results for n in self.parts.body.nodes)):
            for value in values:
                if not is_scalar(value.type) and value.tensor.dims == self.parts.iteration_space:
                    return [extent(size) for size in self.accesses.dims[value]]
        raise AssertionError("a nest goes over what is there")

    def _changed(self) -> set[Value]:
        """The params of which parts are changed in place."""
        puts = filter(is_put, self.parts.body.results)
        return {value.node.operands[0] for value in puts if value.node is not None}

    def _own(self) -> None:
        """Have the arrays that are changed for oneself; they are read as they then lie."""
        for value in filter(is_put, dict.fromkeys(self.parts.body.results)):
            put = value.node
            assert put is not None
            whole = put.operands[0]
            array = writable(self.low, self.node, self.parts.body.params.index(whole))
            self.low.values[whole] = self.low.arrays.slots(whole.tensor, array)
            self.made[value] = Array(array.pointer, array.dtype, self.accesses.dims[whole])
            self.targets[value] = self.accesses.part(put, self.made[value])

    def _lines(self, node: Node, value: Value) -> AffineIndices:
        """Where a node reads an operand."""
        dims, rank = value.tensor.dims, len(self.parts.iteration_space)
        is_row = node.results[0] in self.body.outer_rank and node not in self.body.reductions
        return self.accesses.whole(dims, self.parts.outer_rank if is_row else rank)

    def _find_reads(self) -> None:
        needed = [*(n for section in self.body.sections for n in section.nodes)]
        needed += self.body.reductions
        needed += [n for nodes in self.body.row_nodes for n in nodes]
        lookups = Gathers(self.low, self.body, self.accesses, self.elements)
        looking = [node for node in dict.fromkeys(needed) if is_lookup(node)]
        for node in dict.fromkeys(needed):
            if is_lookup(node):
                lookups.read(node)
                continue
            if node in self.body.reductions and node.op in EXTREMES:
                dims = self.accesses.dims[node.operands[0]]
                expect_some(self.low, [dims[k] for k in self.body.reductions[node].axes])
            for k, operand in enumerate(node.operands):
                lines = () if is_scalar(operand.type) else self._lines(node, operand)
                self.elements.reads[node, k] = self.accesses.read_through(operand, lines)
        for value in filter(is_put, self.parts.body.results):
            assert value.node is not None
            given = value.node.operands[1]
            lines = self._lines(value.node, given)
            self.elements.reads[value.node, 1] = self.accesses.read_through(given, lines)
        for node in looking:
            lookups.expect(node, self.sizes)
        for value in self.parts.body.results:
            if is_copy(value):
                lines = self.accesses.whole(value.tensor.dims, len(self.parts.iteration_space))
                self.copies[value] = self.accesses.read_through(value, lines)

    def _make(self, value: Value) -> None:
        """Room for a result, and how it is gone along."""
        if value in self.into:
            self.targets[value] = self.accesses.of(*self.into[value])
            return
        dims = self.accesses.dims.get(value, ())
        if is_scalar(value.type):
            return
        self.made[value] = array = self._room(value, dims)
        node = value.node
        if value in self.body.memory_reductions:
            assert node is not None
            self._start(node, array)
        if value in self.body.outer_rank:
            lines = self.accesses.whole(value.tensor.dims, self.parts.outer_rank)
        elif value in self.body.memory_reductions:
            assert node is not None
            kept = self.body.reductions[node].kept
            lines = [_line(axis) for axis in kept]
        else:
            lines = self.accesses.whole(value.tensor.dims, len(self.parts.iteration_space))
        self.targets[value] = self.accesses.of(array, lines)

    def _room(self, value: Value, dims: tuple[str, ...]) -> Array:
        """Memory for a result: that of an operand that is read there for the last time."""
        wanted = Array("null", value.tensor.dtype, dims)
        for index, param in enumerate(self.parts.body.params):
            if self._can_take(index, param, value):
                array, left = overwritable(self.low, self.node, index, wanted)
                self.left.append(left)
                return array
        return self.low.arrays.new(wanted.dtype, dims)

    def _can_take(self, index: int, param: Value, value: Value) -> bool:
        """Whether a result may be written over a param: place by place, when that has been read."""
        if not self.low.may_move(self.node.operands[index]) or is_scalar(param.type):
            return False
        if param in self._changed():
            return False
        if (
            param.tensor.dims != self.parts.iteration_space
            or value.tensor.dims != self.parts.iteration_space
        ):
            return False
        if param.tensor.dtype.itemsize != value.tensor.dtype.itemsize:
            return False
        return self.body.is_read_as_it_lies(param) and self.body.last_read(param) <= (
            self.body.stored_in(value)
        )

    def _start(self, node: Node, array: Array) -> None:
        """What adds up in memory starts at nothing."""
        identity = identity_of(node, array.kind)
        if node.op in SUMS:
            self.low.arrays.clear(array)
        else:
            count = self.low.arrays.count(array)
            self.low.w.loop(count, lambda k: self.low.arrays.store(array, k, identity))

    def _keep(self, value: Value) -> None:
        """Room for a row of values that a later section reads again."""
        outer_rank = self.parts.outer_rank
        dims = self.accesses.dims[value][outer_rank:]
        lines = self.accesses.whole(value.tensor.dims, len(self.parts.iteration_space))[outer_rank:]
        if outer_rank and self.split.is_wanted:
            room, apart = self.split.room(value.tensor.dtype, dims)
            array = Array(room.pointer, room.dtype, dims)
            self.targets[value] = self.accesses.of(array, lines)
            self.apart[self.targets[value]] = apart
        else:
            array = self.low.arrays.new(value.tensor.dtype, dims)
            self.targets[value] = self.accesses.of(array, lines)
        self.left.append(array.pointer)

    # Loops
    def _rows(self) -> None:
        reads = (*self.elements.reads.values(), *self.copies.values())
        accesses = dict.fromkeys(access for _, access in reads if access)
        accesses |= dict.fromkeys(self.targets.values())
        outer = axes_of(self.low, self.sizes, range(self.parts.outer_rank), [*accesses])
        inner = [self._axes_of(section) for section in self.body.sections]
        start: Offsets = {access: access.start for access in accesses}

        def each(offsets: Offsets, _: Sequence[str]) -> Sequence[str]:
            for number, nodes in enumerate(self.body.row_nodes):
                for node in nodes:
                    self._row_node(node, offsets)
                if number < len(inner):
                    self._section(self.body.sections[number], inner[number], offsets)
            return ()

        if self.body.memory_reductions or not outer:
            over(self.low, outer, start, each)
            return
        inside = [written(self.low.sizes, size) for size in self.sizes[self.parts.outer_rank :]]
        self.split.write(
            outer,
            start,
            inside,
            self.apart,
            lambda axes, offsets: over(self.low, axes, offsets, each),
        )

    def _used(self, section: Section) -> list[IndexMap]:
        used = self.elements.accesses(
            (*section.nodes, *section.reductions, *section.memory_reductions)
        )
        for value in (*section.stored, *section.loaded, *self._ends(section)):
            used[self.targets[value]] = None
            access = self.copies[value][1] if value in self.copies else None
            if is_put(value):
                assert value.node is not None
                access = self.elements.reads[value.node, 1][1]
            if access is not None:
                used[access] = None
        return [*used]

    def _ends(self, section: Section) -> list[Value]:
        return [node.results[0] for node in section.memory_reductions]

    def _axes_of(self, section: Section) -> list[Axis]:
        axes = range(self.parts.outer_rank, len(self.parts.iteration_space))
        fixed = [self.targets[value] for value in self._ends(section)]
        return axes_of(self.low, self.sizes, axes, self._used(section), fixed)

    def _row_node(self, node: Node, offsets: Offsets) -> None:
        (result,) = node.results
        if self.body.is_row_sum(node):
            self.elements.row[result] = self._row_sum(node, offsets)
        else:
            self.elements.row[result] = self.elements.of(node, offsets, {})
        self._store_row(result, offsets)

    def _store_row(self, value: Value, offsets: Offsets) -> None:
        if value in self.targets:
            target = self.targets[value]
            self.elements.store(target, offsets[target], self.elements.row[value])

    def _row_sum(self, node: Node, offsets: Offsets) -> str:
        access = self.elements.reads[node, 0][1]
        assert access is not None
        assert access.array is not None
        dims = self.accesses.dims[node.operands[0]][self.parts.outer_rank :]
        count = self.low.sizes.product(dims)
        address = self.low.arrays.address(access.array, offsets[access])
        return sum_of_row(self.low, access.kind, address, count)

    def _section(self, section: Section, axes: Sequence[Axis], offsets: Offsets) -> None:
        totals = [self._total(node) for node in section.reductions]
        elements, settle = self.elements, self.elements.settled(self._used(section))

        def body(at: Offsets, so_far: Sequence[str]) -> Sequence[str]:
            values: dict[Value, str] = {}
            for value in section.loaded:
                target = self.targets[value]
                values[value] = elements.load(target, at, values)
            elements.compute(section.nodes, at, values)
            for value in section.stored:
                if value in self.copies:
                    values[value] = self._copied(value, at)
                if is_put(value):
                    assert value.node is not None
                    values[value] = elements.number(value.node, 1, at, values)
            for node in section.memory_reductions:
                target, x = self.targets[node.results[0]], elements.number(node, 0, at, values)
                old = elements.load(target, at, values)
                elements.store(target, at[target], self._combined(node, old, x, in_order=True))
            following = [
                self._combined(node, old, elements.number(node, 0, at, values), in_order=False)
                for node, old in zip(section.reductions, so_far, strict=True)
            ]
            # The last: it may be written over what is read.
            for value in section.stored:
                elements.store(self.targets[value], at[self.targets[value]], values[value])
            return following

        if not (totals or section.memory_reductions or self.parts.outer_rank):
            self.split.write(
                axes, offsets, [], {}, lambda axes, at: fold(self.low, axes, at, (), body, settle)
            )
            return
        found = fold(self.low, axes, offsets, totals, body, settle)
        for node, total in zip(section.reductions, found, strict=True):
            (result,) = node.results
            self.elements.row[result] = total
            self._store_row(result, offsets)

    def _total(self, node: Node) -> Total:
        kind = Kind(node.operands[0].tensor.dtype)
        is_sum = node.op in SUMS and kind.is_real
        return Total(kind, identity_of(node, kind), is_sum)

    def _combined(self, node: Node, x: str, y: str, *, in_order: bool) -> str:
        kind = Kind(node.operands[0].tensor.dtype)
        type = kind.text
        if kind.is_real and not in_order:
            if node.op in SUMS:
                return self.low.w.define(f"fadd reassoc {type} {x}, {y}")
            if node.op is reducing.reduce_prod:
                return self.low.w.define(f"fmul reassoc {type} {x}, {y}")
            how = "maximum" if node.op is reducing.reduce_max else "minimum"
            # Of 0.0 and −0.0 either may be the result.
            call = f"call nsz {type} @llvm.{how}.{kind.suffix}({type} {x}, {type} {y})"
            return self.low.w.define(call)
        return WAYS[node.op](self.low, node, kind, x, y)

    def _copied(self, value: Value, offsets: Offsets) -> str:
        source, access = self.copies[value]
        if access is None:
            return self.low.values[source][0]
        return self.elements.load(access, offsets, {})


def _line(axis: int | None) -> AffineIndex:
    return AffineIndex() if axis is None else AffineIndex("0", axis, 1)


EMITTERS: Mapping[Op, Emit] = {loop_nest: emit_nest}
