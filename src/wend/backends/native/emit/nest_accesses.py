"""Where a nest reads and writes: for each array how its elements go with the axes of the space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from wend.backends.native.arrays import Array
from wend.backends.native.emit.casting import write_cast
from wend.backends.native.emit.shaping import expect_sizes, target_dims
from wend.backends.native.emit.slicing import between, cut
from wend.backends.native.exits import BAD_SHAPE
from wend.backends.native.kinds import WORD, Kind
from wend.backends.native.lowering import Lowering
from wend.backends.native.nests.extents import NONE, Extent, strides, times, written
from wend.backends.native.slots import is_scalar
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import Dim, Symbol
from wend.ops import creating, shaping


@dataclass(frozen=True, slots=True)
class Line:
    """Which of an axis's positions is meant: `start`, and `step` more for each along an axis."""

    start: str = "0"
    axis: int | None = None
    step: int = 0


Lines: TypeAlias = Sequence[Line]


@dataclass(frozen=True, slots=True)
class Access:
    """Elements of an array, by how far apart they lie along each axis of the space.

    Without an array the places themselves are meant.
    """

    array: Array | None
    kind: Kind
    start: str
    steps: tuple[Extent, ...]


@dataclass(eq=False, repr=False, slots=True)
class Accesses:
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
    _cuts: dict[Node, list[tuple[str, int]]] = field(default_factory=dict)

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

    def _name(self, value: Value, dims: Sequence[str]) -> None:
        """Note sizes, each symbol's by one name."""
        found = []
        for dim, size in zip(value.tensor.dims, dims, strict=True):
            wanted = self._names.setdefault(dim, size) if isinstance(dim, Symbol) else str(dim)
            self.low.exits.unless(self.low.sizes.equal(size, wanted), BAD_SHAPE)
            found.append(wanted)
        self.dims[value] = tuple(found)

    def _dims(self, node: Node) -> Sequence[str]:
        """The sizes of what a node gives."""
        result = node.results[0].tensor
        if all(not isinstance(dim, Symbol) or dim in self._names for dim in result.dims):
            found = [self._size(dim) for dim in result.dims]
            if node.op not in (shaping.slice_, shaping.narrow):
                return found
        low = self.low
        match node.op:
            case shaping.slice_:
                self._cuts[node], counts = [], []
                whole = self.dims[node.operands[0]]
                for size, bounds in zip(whole, node.attrs["slices"], strict=True):
                    first, count, step = cut(low, size, bounds)
                    self._cuts[node].append((first, int(step)))
                    counts.append(count)
                return counts
            case shaping.narrow:
                sizes, axis = [*self.dims[node.operands[0]]], node.attrs["axis"]
                given = [low.values[v] for v in node.operands[1:]]
                first, count = between(low, node, sizes[axis], given)
                self._cuts[node] = [(first if k == axis else "0", 1) for k in range(len(sizes))]
                sizes[axis] = count
                return sizes
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

    def whole(self, dims: Sequence[Dim], rank: int) -> Lines:
        """The lines of what has the first `rank` axes of the space, and one element of others."""
        ones = [Line() for _ in range(len(dims) - rank)]
        return [*(Line("0", axis, 1) for axis in range(rank)), *ones]

    def source(self, value: Value, lines: Lines) -> tuple[Value, Lines]:
        """What a value is read from by way of what only moves elements, and where."""
        while value.node is not None and (moved := self._moved(value.node, lines)) is not None:
            value, lines = value.node.operands[0], moved
        return value, lines

    def _moved(self, node: Node, lines: Lines) -> Lines | None:
        """Where the operand is read, if a node only moves elements."""
        if node.op is shaping.transpose:
            return [lines[node.attrs["perm"].index(k)] for k in range(len(lines))]
        if node.op is shaping.broadcast_to:
            value, result = node.operands[0].tensor.dims, node.results[0].tensor.dims
            lead = len(result) - len(value)
            rest = zip(lines[lead:], value, result[lead:], strict=True)
            return [line if mine == wanted else Line() for line, mine, wanted in rest]
        if node.op is shaping.reshape:
            value, result = node.operands[0].tensor.dims, node.results[0].tensor.dims
            left = iter([line for line, dim in zip(lines, result, strict=True) if dim != 1])
            return [Line() if dim == 1 else next(left) for dim in value]
        if node in self._cuts:
            return [
                Line(
                    self.low.sizes.add(first, self.low.sizes.mul(str(step), line.start)),
                    line.axis,
                    step * line.step,
                )
                for line, (first, step) in zip(lines, self._cuts[node], strict=True)
            ]
        return None

    def read(self, value: Value, lines: Lines) -> Access:
        """The elements of a param, or of a range."""
        low = self.low
        if value.node is not None:
            (line,) = lines
            steps = self._along(lines, [(1, ())])
            return Access(None, Kind(value.tensor.dtype), line.start, steps)
        array = low.arrays.of(value.tensor, low.values[value])
        return self.of(Array(array.pointer, array.dtype, self.dims[value]), lines)

    def of(self, array: Array, lines: Lines) -> Access:
        """The elements of an array."""
        own = strides(array.dims)
        start = "0"
        for line, stride in zip(lines, own, strict=True):
            if line.start != "0":
                far = self.low.sizes.mul(line.start, written(self.low.sizes, stride))
                start = self.low.sizes.add(start, far)
        return Access(array, array.kind, start, self._along(lines, own))

    def _along(self, lines: Lines, own: Sequence[Extent]) -> tuple[Extent, ...]:
        steps = [NONE] * self.rank
        for line, stride in zip(lines, own, strict=True):
            if line.axis is not None:
                steps[line.axis] = times((line.step, ()), stride)
        return tuple(steps)


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
