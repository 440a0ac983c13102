"""The elements in the loops of a nest: loads, gathers, computation, stores."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from dataclasses import field
from typing import TypeAlias

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.emit.array.indexing import wrapped_position
from wend.backends.native.emit.loops.index_maps import Gather, IndexMap
from wend.backends.native.emit.loops.loops import Axis, HoistGathers, Offsets
from wend.backends.native.emit.scalar.casting import emit_cast
from wend.backends.native.emit.scalar.element import kind_of
from wend.backends.native.emit.scalar.elements import ELEMENTS
from wend.backends.native.emit.scalar.pairs import PAIR_ELEMENTS, load_pair, store_pair
from wend.backends.native.fusion.op_classes import is_lookup
from wend.backends.native.fusion.symbolic_strides import materialize
from wend.backends.native.target.kinds import PARTS, WORD, Kind
from wend.backends.native.target.value_layout import is_scalar
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Node, Value

ElementSource: TypeAlias = tuple[Value, IndexMap | None]  # no map: a scalar, or computed before
Values: TypeAlias = MutableMapping[Value, str]


@dataclass(eq=False, repr=False, slots=True)
class Elements:
    """Emits elements of the values of a nest.

    Attributes:
        low: The lowering of the function.
        sources: What each operand of each node is read from.
        row_values: The values computed for the current row.
    """

    low: Lowering
    sources: dict[tuple[Node, int], ElementSource] = field(default_factory=dict)
    row_values: dict[Value, str] = field(default_factory=dict)

    def index_maps(self, nodes: Iterable[Node]) -> dict[IndexMap, None]:
        """Return the index maps that nodes read."""
        index_maps = (self.sources[node, k][1] for node in nodes for k in range(len(node.operands)))
        return dict.fromkeys(index_map for index_map in index_maps if index_map is not None)

    def compute(self, nodes: Iterable[Node], offsets: Offsets, values: Values) -> None:
        """Emit an element of the result of each node; `values` has the elements so far."""
        for node in nodes:
            values[node.results[0]] = self.result_element(node, offsets, values)

    def result_element(self, node: Node, offsets: Offsets, values: Values) -> str:
        """Emit one element of the result of a node."""
        if is_lookup(node):
            return self.operand_element(node, 0, offsets, values)
        operands = [
            self.operand_element(node, k, offsets, values) for k in range(len(node.operands))
        ]
        if node.op in PAIR_ELEMENTS:
            return PAIR_ELEMENTS[node.op](self.low, node, *operands)
        return ELEMENTS[node.op].emit(self.low, node, kind_of(node), *operands)

    def operand_element(self, node: Node, k: int, offsets: Offsets, values: Values) -> str:
        """Emit one element of an operand of a node."""
        value, index_map = self.sources[node, k]
        if index_map is not None:
            return self.load(index_map, offsets, values)
        if is_scalar(value.type) and value not in self.row_values:
            return self.low.values[value][0]
        return values[value] if value in values else self.row_values[value]

    def load(self, index_map: IndexMap, offsets: Offsets, values: Values) -> str:
        """Emit a load of the current element of an index map."""
        kind, sizes, offset = index_map.kind, self.low.sizes, offsets[index_map]
        for gather, step in index_map.gathers:
            position = self.position(gather, offsets, values)
            offset = sizes.add(offset, sizes.mul(position, materialize(sizes, step)))
        if index_map.array is None:
            return emit_cast(self.low.w, WORD, kind, offset)
        address = self.low.arrays.address(index_map.array, offset)
        access = self.low.metadata.access()
        if kind.dtype in PARTS:
            return load_pair(self.low, kind.dtype, address, access)
        return self.low.w.load(kind.element, address, access)

    def position(self, gather: Gather, offsets: Offsets, values: Values) -> str:
        """Return a gathered position, counted from the front."""
        if gather in offsets:
            return offsets[gather]
        return wrapped_position(self.low, self.raw_position(gather, offsets, values), gather.size)

    def raw_position(self, gather: Gather, offsets: Offsets, values: Values) -> str:
        """Return a gathered position as it is in its array."""
        kind = Kind(gather.node.operands[gather.operand_index].tensor.dtype)
        element = self.operand_element(gather.node, gather.operand_index, offsets, values)
        return emit_cast(self.low.w, kind, WORD, element)

    def gather_hoister(self, index_maps: Sequence[IndexMap]) -> HoistGathers:
        """Return a function that emits the loop-invariant gathers in front of a loop."""
        gathers = dict.fromkeys(
            gather for index_map in index_maps for gather, _ in index_map.gathers
        )

        def hoist(axis: Axis, offsets: Offsets) -> Offsets:
            invariant = [
                x for x in gathers if x.index_map is not None and x.index_map not in axis.steps
            ]
            return {**offsets, **{x: self.position(x, offsets, {}) for x in invariant}}

        return hoist

    def store(self, index_map: IndexMap, offset: str, value: str) -> None:
        """Emit a store to an element of an index map."""
        assert index_map.array is not None
        address = self.low.arrays.address(index_map.array, offset)
        access = self.low.metadata.access()
        if index_map.kind.dtype in PARTS:
            store_pair(self.low, index_map.kind.dtype, value, address, access)
        else:
            self.low.w.store(index_map.kind.element, value, address, access)
