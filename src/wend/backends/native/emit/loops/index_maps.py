"""Where a nest reads and writes: for each array how its elements go with the axes of the space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from wend.backends.native.codegen.arrays import Array
from wend.backends.native.codegen.lowering import Lowering
from wend.backends.native.codegen.traps import BAD_SHAPE
from wend.backends.native.emit.array.shaping import expect_sizes, target_dims
from wend.backends.native.emit.array.subviews import Cut, cuts_of
from wend.backends.native.emit.scalar.casting import write_cast
from wend.backends.native.fusion.subview_alias import SUBVIEW_LOADS, SUBVIEW_STORES
from wend.backends.native.fusion.symbolic_strides import (
    NONE,
    ONE,
    Extent,
    plus,
    strides,
    times,
    written,
)
from wend.backends.native.target.kinds import WORD, Kind
from wend.backends.native.target.value_layout import is_scalar
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import Dim, Symbol
from wend.ops import creating, indexing, shaping


@dataclass(frozen=True, slots=True)
class AffineIndex:
    """Which of an axis's positions is meant: `start`, and `step` more for each along an axis.

    That is one of the space, or none: what is looked up says how many steps it is.
    """

    start: str = "0"
    axis: int | Gather | None = None
    step: int = 0


AffineIndices: TypeAlias = Sequence[AffineIndex]
# What is measured even if the sizes of its result are known: so it is found where it reads
_MEASURED = {*SUBVIEW_LOADS, shaping.concat, shaping.pad}


@dataclass(frozen=True, slots=True)
class IndexMap:
    """Elements of an array, by how far apart they lie along each axis of the space.

    Without an array the places themselves are meant.

    Attributes:
        array: where they are.
        kind: what they are.
        start: the first.
        steps: how far it is to the next along each axis.
        lookups: positions that arrays say, and how far apart what lies at these is.
    """

    array: Array | None
    kind: Kind
    start: str
    steps: tuple[Extent, ...]
    lookups: tuple[tuple[Gather, Extent], ...] = ()


@dataclass(frozen=True, slots=True)
class Gather:
    """A position that an array of integers says, under a size; negative ones count from the end.

    Attributes:
        node: what looks up, and `number` which of its operands are the positions.
        size: that of the axis.
        at: where the positions are, or None where the nest computes them.
    """

    node: Node
    number: int
    size: str
    at: IndexMap | None


@dataclass(eq=False, repr=False, slots=True)
class IndexMaps:
    """Writes, before the loops, what says where elements lie.

    Attributes:
        low: the function being written; the params of the body have their slots.
        rank: how many axes the space has.
        dims: the sizes of each array of the body.
    """

    low: Lowering
    rank: int
    dims: dict[Value, tuple[str, ...]] = field(default_factory=dict)
    _names: dict[Symbol, str] = field(default_factory=dict)
    _cuts: dict[Node, Sequence[Cut]] = field(default_factory=dict)

    def measure(self, body: Graph) -> None:
        """Find the sizes of all values; where equal symbols are not equal sizes the run ends."""
        for param in body.params:
            if is_scalar(param.type):
                continue
            array = self.low.arrays.of(param.tensor, self.low.values[param])
            self._name(param, array.dims)
        for node in body.nodes:
            (result,) = node.results
            if not is_scalar(result.type):
                self._name(result, self._dims(node))
            if node.op in SUBVIEW_STORES:
                self._measure_part(node)

    def _measure_part(self, put: Node) -> None:
        """Find where a part is put, which has to be as large as what is put there."""
        whole, value, *positions = put.operands
        given = [self.low.values[v] for v in positions]
        self._cuts[put], counts = cuts_of(self.low, put, self.dims[whole], given)
        for count, size in zip(counts, self.dims[value], strict=True):
            self.low.traps.check(self.low.sizes.equal(count, size), BAD_SHAPE)

    def _name(self, value: Value, dims: Sequence[str]) -> None:
        """Note sizes, each symbol's by one name."""
        found = []
        for dim, size in zip(value.tensor.dims, dims, strict=True):
            wanted = self._names.setdefault(dim, size) if isinstance(dim, Symbol) else str(dim)
            self.low.traps.check(self.low.sizes.equal(size, wanted), BAD_SHAPE)
            found.append(wanted)
        self.dims[value] = tuple(found)

    def _dims(self, node: Node) -> Sequence[str]:
        """The sizes of what a node gives."""
        result = node.results[0].tensor
        if all(not isinstance(dim, Symbol) or dim in self._names for dim in result.dims):
            found = [self._size(dim) for dim in result.dims]
            if node.op not in _MEASURED:
                return found
        low = self.low
        if node.op is indexing.gather and not is_scalar(node.operands[1].type):
            x, *indices = node.operands
            return (*self.dims[indices[0]], *self.dims[x][len(indices) :])
        if node.op in SUBVIEW_LOADS:
            given = [low.values[v] for v in node.operands[1:]]
            cuts, dims = cuts_of(low, node, self.dims[node.operands[0]], given)
            self._cuts[node] = cuts
            return dims
        match node.op:
            case shaping.concat:
                sizes, axis = [*self.dims[node.operands[0]]], node.attrs["axis"]
                for other in node.operands[1:]:
                    for k, size in enumerate(self.dims[other]):
                        if k != axis:
                            low.traps.check(low.sizes.equal(sizes[k], size), BAD_SHAPE)
                    sizes[axis] = low.sizes.add(sizes[axis], self.dims[other][axis])
                return sizes
            case shaping.pad:
                pairs = zip(self.dims[node.operands[0]], node.attrs["widths"], strict=True)
                return [low.sizes.add(size, str(sum(widths))) for size, widths in pairs]
            case creating.iota:
                kind = Kind(node.operands[0].tensor.dtype)
                size = write_cast(low.w, kind, WORD, low.values[node.operands[0]][0])
                return [low.sizes.most(size, "0")]
            case shaping.broadcast_to:
                found_dims = target_dims(
                    low, node, [low.values.get(v, ()) for v in node.operands], result
                )
                assert found_dims is not None
                expect_sizes(low, found_dims)
                return found_dims
        raise AssertionError(f"the sizes of {node.op.name} follow from its operands")

    def _size(self, dim: Dim) -> str:
        return self._names[dim] if isinstance(dim, Symbol) else str(dim)

    def whole(self, dims: Sequence[Dim], rank: int) -> AffineIndices:
        """The lines of what has the first `rank` axes of the space, and one element of others."""
        ones = [AffineIndex() for _ in range(len(dims) - rank)]
        return [*(AffineIndex("0", axis, 1) for axis in range(rank)), *ones]

    def source(self, value: Value, lines: AffineIndices) -> tuple[Value, AffineIndices]:
        """What a value is read from by way of what only moves elements, and where."""
        while value.node is not None and (moved := self._moved(value.node, lines)) is not None:
            value, lines = value.node.operands[0], moved
        return value, lines

    def _moved(self, node: Node, lines: AffineIndices) -> AffineIndices | None:
        """Where the operand is read, if a node only moves elements."""
        if node.op is shaping.transpose:
            return [lines[node.attrs["perm"].index(k)] for k in range(len(lines))]
        if node.op is shaping.broadcast_to:
            value, result = node.operands[0].tensor.dims, node.results[0].tensor.dims
            lead = len(result) - len(value)
            rest = zip(lines[lead:], value, result[lead:], strict=True)
            return [line if mine == wanted else AffineIndex() for line, mine, wanted in rest]
        if node.op is shaping.reshape:
            value, result = node.operands[0].tensor.dims, node.results[0].tensor.dims
            left = iter([line for line, dim in zip(lines, result, strict=True) if dim != 1])
            return [AffineIndex() if dim == 1 else next(left) for dim in value]
        if node in self._cuts:
            left = iter(lines)
            return [self._cut(cut, left) for cut in self._cuts[node]]
        return None

    def part(self, put: Node, array: Array) -> IndexMap:
        """The elements of an array that a node puts."""
        lines = iter(self.whole(put.operands[1].tensor.dims, self.rank))
        return self.of(array, [self._cut(cut, lines) for cut in self._cuts[put]])

    def _cut(self, cut: Cut, lines: Iterator[AffineIndex]) -> AffineIndex:
        """Where an axis is read of which a part is taken; the next line is that part's, if any."""
        if cut.step is None:
            return AffineIndex(cut.first)
        line = next(lines)
        start = self.low.sizes.add(cut.first, self.low.sizes.mul(str(cut.step), line.start))
        return AffineIndex(start, line.axis, cut.step * line.step)

    def read_through(self, value: Value, lines: AffineIndices) -> tuple[Value, IndexMap | None]:
        """What a value is read from, and where; without that a number or what is made here."""
        value, lines = self.source(value, lines)
        is_made = value.node is not None and value.node.op is not creating.iota
        return value, None if is_scalar(value.type) or is_made else self._read(value, lines)

    def _read(self, value: Value, lines: AffineIndices) -> IndexMap:
        """The elements of a param, or of a range."""
        low = self.low
        if value.node is not None:
            (line,) = lines
            return IndexMap(None, Kind(value.tensor.dtype), line.start, *self._along(lines, [ONE]))
        array = low.arrays.of(value.tensor, low.values[value])
        return self.of(Array(array.pointer, array.dtype, self.dims[value]), lines)

    def of(self, array: Array, lines: AffineIndices) -> IndexMap:
        """The elements of an array."""
        own = strides(array.dims)
        start = "0"
        for line, stride in zip(lines, own, strict=True):
            if line.start != "0":
                far = self.low.sizes.mul(line.start, written(self.low.sizes, stride))
                start = self.low.sizes.add(start, far)
        return IndexMap(array, array.kind, start, *self._along(lines, own))

    def _along(
        self, lines: AffineIndices, own: Sequence[Extent]
    ) -> tuple[tuple[Extent, ...], tuple[tuple[Gather, Extent], ...]]:
        """How far it is along each axis of the space, and for each step that is looked up."""
        steps, lookups = [NONE] * self.rank, []
        for line, stride in zip(lines, own, strict=True):
            far = times((line.step, ()), stride)
            if isinstance(line.axis, Gather):
                lookups.append((line.axis, far))
            elif line.axis is not None:
                # A diagonal goes along one axis of the space by two of the array.
                steps[line.axis] = plus(self.low.sizes, steps[line.axis], far)
        return tuple(steps), tuple(lookups)


def merged(
    axes: Sequence[tuple[Extent, Sequence[Extent]]],
) -> list[tuple[Extent, Sequence[Extent]]]:
    """Axes with as one what lies as one in all arrays: sizes, and the steps of each array."""
    found: list[tuple[Extent, Sequence[Extent]]] = []
    for size, steps in axes:
        if size == (1, ()):
            continue
        if found:
            before, wide = found[-1]
            if all(times(step, size) == far for step, far in zip(steps, wide, strict=True)):
                found[-1] = times(before, size), steps
                continue
        found.append((size, steps))
    return found
