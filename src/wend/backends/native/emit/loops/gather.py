"""Positions that arrays say: where a nest reads by them, and that they are there.

All positions are looked at in a loop of their own before anything is read or written, so the loops
that read have no way out: they can be vectors, go over operands, and be split among threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.codegen.traps import BAD_INDEX, BAD_SHAPE
from wend.backends.native.emit.loops.elements import Elements
from wend.backends.native.emit.loops.index_maps import (
    AffineIndex,
    Gather,
    IndexMap,
    IndexMaps,
)
from wend.backends.native.emit.loops.loops import (
    Axis,
    Offsets,
    Total,
    axes_of,
    fold,
)
from wend.backends.native.fusion.body import NestBody
from wend.backends.native.fusion.symbolic_strides import NONE, Extent, written
from wend.backends.native.target.kinds import Kind
from wend.ir.dtypes import BOOL
from wend.ir.graph import Node, Value
from wend.ops import creating, indexing

_FLAG = Kind(BOOL)


@dataclass(eq=False, repr=False, slots=True)
class Gathers:
    """Writes what nodes of a nest look up.

    Attributes:
        low: what writes.
        body: the nest's.
        at: where arrays are read.
        elements: writes elements.
    """

    low: Lowering
    body: NestBody
    at: IndexMaps
    elements: Elements
    _seen: set[tuple[IndexMap | Value, str]] = field(default_factory=set)

    def read(self, node: Node) -> None:
        """Note where a node reads its operands."""
        x, *indices = node.operands
        sizes, rank = self.at.dims[x], len(node.results[0].tensor.dims)
        lines: list[AffineIndex] = [*self.at.whole(node.results[0].tensor.dims, rank)]
        if node.op is indexing.gather:
            own = [self._line(node, k, sizes[k - 1]) for k in range(1, len(indices) + 1)]
            lines = [*own, *lines[len(indices[0].tensor.dims) :]]
        else:
            axis = node.attrs["axis"]
            for k, (mine, theirs) in enumerate(zip(sizes, self.at.dims[indices[0]], strict=True)):
                if k != axis:
                    self.low.traps.check(self.low.sizes.equal(mine, theirs), BAD_SHAPE)
            lines[axis] = self._line(node, 1, sizes[axis])
        self.elements.reads[node, 0] = self.at.read_through(x, lines)

    def _line(self, node: Node, k: int, size: str) -> AffineIndex:
        """The positions along an axis that an operand says."""
        index = node.operands[k]
        lines = self.at.whole(index.tensor.dims, len(index.tensor.dims))
        found = self.at.read_through(index, lines)
        self.elements.reads[node, k] = found
        source, own = self.at.source(index, lines)
        if source.node is not None and source.node.op is creating.iota:
            return own[0]
        return AffineIndex("0", Gather(node, k, size, found[1]), 1)

    def expect(self, node: Node, iteration_space: Sequence[Extent]) -> None:
        """Leave the function where a position of a node is not there."""
        sizes = self.at.dims[node.operands[0]]
        first = node.attrs.get("axis", 0)
        for k, size in enumerate(sizes[first : first + len(node.operands) - 1], 1):
            value, access = self.elements.reads[node, k]
            if (access or value, size) not in self._seen:
                self._seen.add((access or value, size))
                self._expect(Gather(node, k, size, access), iteration_space)

    def _expect(self, lookup: Gather, iteration_space: Sequence[Extent]) -> None:
        low, index = self.low, lookup.node.operands[lookup.number]
        value, access = self.elements.reads[lookup.node, lookup.number]
        nodes = [] if access else self.body.made_for(value)
        used = [access] if access else [*self.elements.accesses(nodes)]
        rank = len(iteration_space) if nodes else len(index.tensor.dims)
        axes = self._axes(iteration_space[:rank], used)

        def body(offsets: Offsets, so_far: Sequence[str]) -> Sequence[str]:
            values: dict[Value, str] = {}
            self.elements.compute(nodes, offsets, values)
            said = self.elements.said(lookup, offsets, values)
            # From −size to size − 1
            moved = low.sizes.add(said, lookup.size)
            limit = low.sizes.mul("2", lookup.size)
            is_out = low.w.define(f"icmp uge i64 {moved}, {limit}")
            return [low.w.define(f"or i1 {so_far[0]}, {is_out}")]

        start: Offsets = {access: access.start for access in used}
        (is_out,) = fold(low, axes, start, [Total(_FLAG, "false", is_sum=False)], body)
        low.traps.check(low.w.define(f"xor i1 {is_out}, true"), BAD_INDEX)

    def _axes(self, iteration_space: Sequence[Extent], used: Sequence[IndexMap]) -> list[Axis]:
        """Loops over all that there is to read; of what is but repeated over one, if there is."""
        moves = [
            k
            for k in range(len(iteration_space))
            if any(access.steps[k] != NONE for access in used)
        ]
        sizes = self.low.sizes
        once = [
            sizes.least(written(sizes, size), "1")
            for k, size in enumerate(iteration_space)
            if k not in moves
        ]
        guard = Axis(sizes.product(once), {})
        found = axes_of(self.low, iteration_space, moves, used)
        return found if guard.count == "1" else [guard, *found]
