"""Elements in the loops of a nest: read, looked up, computed, written."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.emit.array.indexing import from_front
from wend.backends.native.emit.loops.index_maps import Gather, IndexMap
from wend.backends.native.emit.loops.loops import Axis, Offsets, Settle
from wend.backends.native.emit.scalar.casting import write_cast
from wend.backends.native.emit.scalar.element import kind_of
from wend.backends.native.emit.scalar.elements import ELEMENTS
from wend.backends.native.fusion.op_classes import is_lookup
from wend.backends.native.fusion.symbolic_strides import written
from wend.backends.native.target.kinds import (
    REGISTERS,
    WORD,
    Kind,
    stored,
)
from wend.backends.native.target.value_layout import is_scalar
from wend.ir.graph import Node, Value

Read: TypeAlias = tuple[Value, IndexMap | None]  # without a place: a number, made here or a row's
Values: TypeAlias = MutableMapping[Value, str]


@dataclass(eq=False, repr=False, slots=True)
class Elements:
    """Writes elements.

    Attributes:
        low: what writes.
        reads: what the operands of each node are read from.
        row: what has been computed for the present row.
    """

    low: Lowering
    reads: dict[tuple[Node, int], Read] = field(default_factory=dict)
    row: dict[Value, str] = field(default_factory=dict)

    def accesses(self, nodes: Iterable[Node]) -> dict[IndexMap, None]:
        """The places that nodes read at."""
        reads = (self.reads[node, k][1] for node in nodes for k in range(len(node.operands)))
        return dict.fromkeys(access for access in reads if access is not None)

    def compute(self, nodes: Iterable[Node], offsets: Offsets, values: Values) -> None:
        """Compute an element of each of some nodes; `values` has those so far."""
        for node in nodes:
            values[node.results[0]] = self.of(node, offsets, values)

    def of(self, node: Node, offsets: Offsets, values: Values) -> str:
        """One element of what a node gives."""
        if is_lookup(node):
            return self.number(node, 0, offsets, values)
        given = [self.number(node, k, offsets, values) for k in range(len(node.operands))]
        return ELEMENTS[node.op].write(self.low, node, kind_of(node), *given)

    def number(self, node: Node, k: int, offsets: Offsets, values: Values) -> str:
        """One element of an operand."""
        value, access = self.reads[node, k]
        if access is not None:
            return self.load(access, offsets, values)
        if is_scalar(value.type) and value not in self.row:
            return self.low.values[value][0]
        return values[value] if value in values else self.row[value]

    def load(self, access: IndexMap, offsets: Offsets, values: Values) -> str:
        kind, sizes, offset = access.kind, self.low.sizes, offsets[access]
        for lookup, step in access.lookups:
            place = self.position(lookup, offsets, values)
            offset = sizes.add(offset, sizes.mul(place, written(sizes, step)))
        if access.array is None:
            return write_cast(self.low.w, WORD, kind, offset)
        address = self.low.arrays.address(access.array, offset)
        type = stored(REGISTERS[kind.dtype])
        found = self.low.w.define(f"load {type}, ptr {address}{self.low.metadata.access()}")
        return self.low.w.define(f"icmp ne i8 {found}, 0") if kind.is_bool else found

    def position(self, lookup: Gather, offsets: Offsets, values: Values) -> str:
        """What a lookup says, counted from the front."""
        if lookup in offsets:
            return offsets[lookup]
        return from_front(self.low, self.said(lookup, offsets, values), lookup.size)

    def said(self, lookup: Gather, offsets: Offsets, values: Values) -> str:
        """What a lookup says."""
        kind = Kind(lookup.node.operands[lookup.number].tensor.dtype)
        found = self.number(lookup.node, lookup.number, offsets, values)
        return write_cast(self.low.w, kind, WORD, found)

    def settled(self, accesses: Sequence[IndexMap]) -> Settle:
        """What looks up before a loop what accesses in it have in common."""
        lookups = dict.fromkeys(lookup for access in accesses for lookup, _ in access.lookups)

        def settle(axis: Axis, offsets: Offsets) -> Offsets:
            same = [x for x in lookups if x.at is not None and x.at not in axis.steps]
            return {**offsets, **{x: self.position(x, offsets, {}) for x in same}}

        return settle

    def store(self, access: IndexMap, offset: str, value: str) -> None:
        assert access.array is not None
        address = self.low.arrays.address(access.array, offset)
        if access.kind.is_bool:
            value = self.low.w.define(f"zext i1 {value} to i8")
        type = stored(REGISTERS[access.kind.dtype])
        self.low.w.do(f"store {type} {value}, ptr {address}{self.low.metadata.access()}")
