"""Writes loop nests: one loop over rows, in it the sections of the body after each other.

Every array is read and written along axes with fixed steps, so that axes can be as one and the
fastest be chosen. In the innermost loop elements have no order: LLVM is told so, and makes vectors
without looking which arrays overlap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wend.backends.native.arrays import Array
from wend.backends.native.emit.casting import write_cast
from wend.backends.native.emit.creating import emit_constant
from wend.backends.native.emit.element import kind_of
from wend.backends.native.emit.elements import ELEMENTS
from wend.backends.native.emit.nest_accesses import Access, Accesses, Line, Lines
from wend.backends.native.emit.nest_loops import Axis, Offsets, Total, axes_of, fold, over
from wend.backends.native.emit.reducing import WAYS, expect_some, identity_of, sum_of_row
from wend.backends.native.emit.splitting import Split
from wend.backends.native.emit.writing import overwritable
from wend.backends.native.kinds import REGISTERS, WORD, Kind, stored
from wend.backends.native.lowering import Emit, Lowering
from wend.backends.native.nests.body import Body, Section, is_copy
from wend.backends.native.nests.extents import Extent, extent, written
from wend.backends.native.nests.nest import NestParts, nest
from wend.backends.native.nests.roles import EXTREMES, SUMS, cost, is_constant
from wend.backends.native.slots import Slots, is_scalar
from wend.ir.graph import Node, Value
from wend.ir.op import Op
from wend.ops import creating, reducing

Read = tuple[Value, Access | None]  # what is read, and where; without that a number or a row's


def emit_nest(low: Lowering, node: Node, operands: Sequence[Slots]) -> Sequence[Slots]:
    """The loops of a nest."""
    body = NestParts.of(node).body
    low.values.update(zip(body.params, operands, strict=True))
    for inner in body.nodes:
        if is_constant(inner):
            low.values.update(zip(inner.results, emit_constant(low, inner, ()), strict=True))
    return _Nest(low, node).write()


@dataclass(eq=False, repr=False, slots=True)
class _Nest:
    """One nest being written."""

    low: Lowering
    node: Node
    parts: NestParts = field(init=False)
    body: Body = field(init=False)
    accesses: Accesses = field(init=False)
    sizes: list[Extent] = field(default_factory=list)
    reads: dict[tuple[Node, int], Read] = field(default_factory=dict)
    targets: dict[Value, Access] = field(default_factory=dict)
    made: dict[Value, Array] = field(default_factory=dict)
    row: dict[Value, str] = field(default_factory=dict)
    copies: dict[Value, Read] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    split: Split = field(init=False)
    apart: dict[Access, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.parts = NestParts.of(self.node)
        self.body = Body(self.parts)
        self.accesses = Accesses(self.low, len(self.parts.space))

    def write(self) -> list[Slots]:
        self.accesses.measure(self.parts.body)
        self._find_reads()
        self.sizes = self._space()
        self.split = Split(self.low, self._work(), self.sizes)
        for value in dict.fromkeys(self.parts.body.results):
            self._make(value)
        for value in self.body.kept:
            self._keep(value)
        self._rows()
        for pointer in self.left:
            self.low.arrays.release(pointer)
        return [
            (self.row[value],)
            if is_scalar(value.type)
            else self.low.give(self.node, self.made[value], k)
            for k, value in enumerate(self.parts.body.results)
        ]

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
                if not is_scalar(value.type) and value.tensor.dims == self.parts.space:
                    return [extent(size) for size in self.accesses.dims[value]]
        raise AssertionError("a nest goes over what is there")

    def _lines(self, node: Node, value: Value) -> Lines:
        """Where a node reads an operand."""
        dims, rank = value.tensor.dims, len(self.parts.space)
        is_row = node.results[0] in self.body.rows and node not in self.body.reductions
        return self.accesses.whole(dims, self.parts.rows if is_row else rank)

    def _find_reads(self) -> None:
        needed = [*(n for section in self.body.sections for n in section.nodes)]
        needed += self.body.reductions
        needed += [n for nodes in self.body.row_nodes for n in nodes]
        for node in dict.fromkeys(needed):
            if node in self.body.reductions and node.op in EXTREMES:
                dims = self.accesses.dims[node.operands[0]]
                expect_some(self.low, [dims[k] for k in self.body.reductions[node].axes])
            for k, operand in enumerate(node.operands):
                if not is_scalar(operand.type):
                    self.reads[node, k] = self._read(operand, self._lines(node, operand))
                else:
                    self.reads[node, k] = operand, None

        for value in self.parts.body.results:
            if is_copy(value):
                lines = self.accesses.whole(value.tensor.dims, len(self.parts.space))
                self.copies[value] = self._read(value, lines)

    def _read(self, operand: Value, lines: Lines) -> Read:
        value, at = self.accesses.source(operand, lines)
        is_made = value.node is not None and value.node.op is not creating.iota
        if is_scalar(value.type) or is_made:
            return value, None
        return value, self.accesses.read(value, at)

    def _make(self, value: Value) -> None:
        """Room for a result, and how it is gone along."""
        dims = self.accesses.dims.get(value, ())
        if is_scalar(value.type):
            return
        self.made[value] = array = self._room(value, dims)
        node = value.node
        if value in self.body.ends:
            assert node is not None
            self._start(node, array)
        if value in self.body.rows:
            lines = self.accesses.whole(value.tensor.dims, self.parts.rows)
        elif value in self.body.ends:
            assert node is not None
            kept = self.body.reductions[node].kept
            lines = [_line(axis) for axis in kept]
        else:
            lines = self.accesses.whole(value.tensor.dims, len(self.parts.space))
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
        if param.tensor.dims != self.parts.space or value.tensor.dims != self.parts.space:
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
        rows = self.parts.rows
        dims = self.accesses.dims[value][rows:]
        lines = self.accesses.whole(value.tensor.dims, len(self.parts.space))[rows:]
        if rows and self.split.is_wanted:
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
        reads = (*self.reads.values(), *self.copies.values())
        accesses = dict.fromkeys(access for _, access in reads if access)
        accesses |= dict.fromkeys(self.targets.values())
        outer = axes_of(self.low, self.sizes, range(self.parts.rows), [*accesses])
        inner = [self._axes_of(section) for section in self.body.sections]
        start = {access: access.start for access in accesses}

        def each(offsets: Offsets, _: Sequence[str]) -> Sequence[str]:
            for number, nodes in enumerate(self.body.row_nodes):
                for node in nodes:
                    self._row_node(node, offsets)
                if number < len(inner):
                    self._section(self.body.sections[number], inner[number], offsets)
            return ()

        if self.body.ends or not outer:
            over(self.low, outer, start, each)
            return
        inside = [written(self.low.sizes, size) for size in self.sizes[self.parts.rows :]]
        self.split.write(
            outer,
            start,
            inside,
            self.apart,
            lambda axes, offsets: over(self.low, axes, offsets, each),
        )

    def _used(self, section: Section) -> list[Access]:
        used: dict[Access, None] = {}
        for node in (*section.nodes, *section.reductions, *section.ends):
            for k in range(len(node.operands)):
                access = self.reads[node, k][1]
                if access is not None:
                    used[access] = None
        for value in (*section.stored, *section.loaded, *self._ends(section)):
            used[self.targets[value]] = None
            access = self.copies[value][1] if value in self.copies else None
            if access is not None:
                used[access] = None
        return [*used]

    def _ends(self, section: Section) -> list[Value]:
        return [node.results[0] for node in section.ends]

    def _axes_of(self, section: Section) -> list[Axis]:
        axes = range(self.parts.rows, len(self.parts.space))
        fixed = [self.targets[value] for value in self._ends(section)]
        return axes_of(self.low, self.sizes, axes, self._used(section), fixed)

    def _row_node(self, node: Node, offsets: Offsets) -> None:
        (result,) = node.results
        if self.body.is_row_sum(node):
            self.row[result] = self._row_sum(node, offsets)
        else:
            given = [self._number(node, k, offsets, {}) for k in range(len(node.operands))]
            found = ELEMENTS[node.op].write(self.low, node, kind_of(node), *given)
            self.row[result] = found
        self._store_row(result, offsets)

    def _store_row(self, value: Value, offsets: Offsets) -> None:
        if value in self.targets:
            target = self.targets[value]
            self._store(target, offsets[target], self.row[value])

    def _row_sum(self, node: Node, offsets: Offsets) -> str:
        access = self.reads[node, 0][1]
        assert access is not None
        assert access.array is not None
        dims = self.accesses.dims[node.operands[0]][self.parts.rows :]
        count = self.low.sizes.product(dims)
        address = self.low.arrays.address(access.array, offsets[access])
        return sum_of_row(self.low, access.kind, address, count)

    def _section(self, section: Section, axes: Sequence[Axis], offsets: Offsets) -> None:
        totals = [self._total(node) for node in section.reductions]

        def body(at: Offsets, so_far: Sequence[str]) -> Sequence[str]:
            values: dict[Value, str] = {}
            for value in section.loaded:
                target = self.targets[value]
                values[value] = self._load(target, at[target])
            for node in section.nodes:
                given = [self._number(node, k, at, values) for k in range(len(node.operands))]
                found = ELEMENTS[node.op].write(self.low, node, kind_of(node), *given)
                values[node.results[0]] = found
            for value in section.stored:
                if value in self.copies:
                    values[value] = self._copied(value, at)
            for node in section.ends:
                target, x = self.targets[node.results[0]], self._number(node, 0, at, values)
                old = self._load(target, at[target])
                self._store(target, at[target], self._combined(node, old, x, in_order=True))
            following = [
                self._combined(node, old, self._number(node, 0, at, values), in_order=False)
                for node, old in zip(section.reductions, so_far, strict=True)
            ]
            # The last: it may be written over what is read.
            for value in section.stored:
                self._store(self.targets[value], at[self.targets[value]], values[value])
            return following

        if not (totals or section.ends or self.parts.rows):
            self.split.write(
                axes, offsets, [], {}, lambda axes, at: fold(self.low, axes, at, (), body)
            )
            return
        found = fold(self.low, axes, offsets, totals, body)
        for node, total in zip(section.reductions, found, strict=True):
            (result,) = node.results
            self.row[result] = total
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

    # Elements
    def _number(self, node: Node, k: int, offsets: Offsets, values: Mapping[Value, str]) -> str:
        value, access = self.reads[node, k]
        if access is not None:
            return self._load(access, offsets[access])
        if is_scalar(value.type) and value not in self.row:
            return self.low.values[value][0]
        return values[value] if value in values else self.row[value]

    def _copied(self, value: Value, offsets: Offsets) -> str:
        source, access = self.copies[value]
        if access is None:
            return self.low.values[source][0]
        return self._load(access, offsets[access])

    def _load(self, access: Access, offset: str) -> str:
        kind = access.kind
        if access.array is None:
            return write_cast(self.low.w, WORD, kind, offset)
        address = self.low.arrays.address(access.array, offset)
        type = stored(REGISTERS[kind.dtype])
        found = self.low.w.define(f"load {type}, ptr {address}{self.low.notes.access()}")
        return self.low.w.define(f"icmp ne i8 {found}, 0") if kind.is_bool else found

    def _store(self, access: Access, offset: str, value: str) -> None:
        assert access.array is not None
        address = self.low.arrays.address(access.array, offset)
        if access.kind.is_bool:
            value = self.low.w.define(f"zext i1 {value} to i8")
        type = stored(REGISTERS[access.kind.dtype])
        self.low.w.do(f"store {type} {value}, ptr {address}{self.low.notes.access()}")


def _line(axis: int | None) -> Line:
    return Line() if axis is None else Line("0", axis, 1)


EMITTERS: Mapping[Op, Emit] = {nest: emit_nest}
