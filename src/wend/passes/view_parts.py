"""Parts of views, some of whose axes are cut, as parts of the array."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from wend.base.lazy.dataclass import dataclass
from wend.ir.builder import new_symbol
from wend.ir.graph import Node, Value
from wend.ir.types import Dim
from wend.ops import elementwise, indexing, parts, shaping, updating
from wend.ops.build import Build
from wend.ops.loop_counters import as_integer
from wend.ops.shapes import WHOLE, Bounds
from wend.passes.view_positions import AccessesOfViews, Coordinate, has_other_shape


@dataclass(slots=True)
class PartAxis:
    """An axis of a part.

    Attributes:
        entry: its entry, as of `take_part`.
        values: the positions that the entry takes; that of `"at"` has been checked.
        origin: its number in the view that the program indexes.
        step: the distance of the elements that the part has of those between two positions; in
            the opposite order if it is negative.
    """

    entry: parts.Entry
    values: list[Value]
    origin: int
    step: int = 1

    @property
    def is_first(self) -> bool:
        """Whether it takes the first element, as is known."""
        return self.entry == parts.AT and as_integer(self.values[0]) == 0

    @property
    def is_all_of_1(self) -> bool:
        """Whether it takes an axis of size 1 as a whole, as is known."""
        return isinstance(self.entry, tuple) and len(range(1)[slice(*self.entry)]) == 1


@dataclass(slots=True)
class ViewPart:
    """A part of an array, which the program reads or writes through a view.

    Attributes:
        array: the array.
        axes: what is taken along each of its axes.
        new_axes: the numbers of axes of size 1 that only the view has, and that remain in the part.
    """

    array: Value
    axes: Sequence[PartAxis]
    new_axes: Sequence[int] = ()

    @property
    def values(self) -> Sequence[Value]:
        return [value for axis in self.axes for value in axis.values]

    @property
    def entries(self) -> parts.Entries:
        return tuple(axis.entry for axis in self.axes)

    @property
    def is_rows(self) -> bool:
        """Whether this is an element, or a row of leading axes."""
        count = sum(entry == parts.AT for entry in self.entries)
        are_positions = {*self.entries[:count]} == {parts.AT}
        return are_positions and {*self.entries[count:]} <= {WHOLE}

    def read(self, b: Build, dims: Sequence[Dim]) -> Value:
        """Return the part as the program reads it; `dims` are its sizes there."""
        remaining, order = self._remaining, self._order
        sizes = tuple(dims[order.index(axis)] for axis in remaining)
        taken = self._taken(b, sizes)
        if any(step != 1 for step in self._steps):
            taken = b.slice(taken, slices=self._slices)
            taken = b.refine(taken, taken.tensor.with_shape(sizes))
        old = [axis for axis in order if axis not in self.new_axes]
        part = b.transpose(taken, perm=tuple(map(remaining.index, old)))
        new = tuple(map(order.index, self.new_axes))
        return b.insert_axes(part, axes=new) if new else part

    def written(self, b: Build, x: Value, *, adds: bool) -> Value:
        """Return the array in which the part is what the program writes to it."""
        order, new = self._order, tuple(map(self._order.index, self.new_axes))
        x = without_axes(b, x, new) if new else x
        old = [axis for axis in order if axis not in self.new_axes]
        x = b.transpose(x, perm=tuple(map(old.index, self._remaining)))
        if any(abs(step) != 1 for step in self._steps):
            put, adds = (b.add_slice if adds else b.set_slice), False
            x = put(self._taken(b, x.tensor.dims), x, slices=self._slices)
        elif -1 in self._steps:
            x = b.slice(x, slices=self._slices)
        if self.is_rows:
            op = indexing.scatter_add if adds else updating.scatter_set
            return b.emit(op, self.array, x, *self.values, in_bounds=True)
        op = parts.add_part if adds else parts.set_part
        return b.emit(op, self.array, x, *self.values, entries=self.entries)

    def _taken(self, b: Build, sizes: Sequence[Dim]) -> Value:
        """Return the elements of the array between the positions; `sizes` are those of the part."""
        if self.is_rows:
            return b.emit(indexing.gather, self.array, *self.values, in_bounds=True)
        remaining = [axis for axis in self.axes if axis.entry != parts.AT]
        cuts = tuple(
            size if abs(axis.step) == 1 else new_symbol()
            for axis, size in zip(remaining, sizes, strict=True)
            if axis.entry == parts.CUT
        )
        return b.take_part(self.array, *self.values, entries=self.entries, cuts=cuts)

    @property
    def _remaining(self) -> Sequence[int]:
        return [axis.origin for axis in self.axes if axis.entry != parts.AT]

    @property
    def _order(self) -> Sequence[int]:
        return sorted((*self._remaining, *self.new_axes))

    @property
    def _steps(self) -> Sequence[int]:
        return [axis.step for axis in self.axes if axis.entry != parts.AT]

    @property
    def _slices(self) -> tuple[Bounds, ...]:
        return tuple(WHOLE if step == 1 else (None, None, step) for step in self._steps)


class PartsOfViews(AccessesOfViews):
    """Finds the parts of arrays that are parts of views of them."""

    def part(
        self,
        x: Value,
        entries: parts.Entries,
        positions: Sequence[Value],
        *,
        until: Value | None = None,
    ) -> ViewPart | None:
        """Return the part of an array that is this part of a view of it; None: no view."""
        if not self.can_move(x, positions):
            return None
        axes = []
        for k, (entry, at) in enumerate(parts.by_axis(entries, positions)):
            is_at = entry == parts.AT
            values = [self.positions.checked(Coordinate(at[0], x, k)).value] if is_at else [*at]
            axes.append(PartAxis(entry, values, k))
        part = ViewPart(x, axes)
        while part.array is not until and part.array.node is not None:
            moved = self._through(part.array.node, part)
            if moved is None:
                break
            part = moved
        return None if part.array is x else part

    def _through(self, node: Node, part: ViewPart) -> ViewPart | None:
        """Return the part of the operand of a node that makes a view."""
        x, axes = part.array, part.axes
        match node.op:
            case shaping.transpose:
                by_axis = dict(zip(node.attrs["perm"], axes, strict=True))
                moved = [by_axis[k] for k in range(len(axes))]
            case shaping.slice_:
                before = [
                    axis if bounds == WHOLE else self._axis_before_slice(node, x, k, bounds, axis)
                    for k, (bounds, axis) in enumerate(zip(node.attrs["slices"], axes, strict=True))
                ]
                moved = [axis for axis in before if axis is not None]
                if len(moved) != len(before):
                    return None
            case shaping.reshape if not has_other_shape(node):
                return self._before_axes_of_size_1(node, part)
            case indexing.gather if node in self.rows:
                rows = [PartAxis(parts.AT, [row.value], -1) for row in self.rows[node]]
                moved = [*rows, *axes]
            case _:
                return None
        return replace(part, array=node.operands[0], axes=moved)

    def _before_axes_of_size_1(self, node: Node, part: ViewPart) -> ViewPart | None:
        """Return the part where axes of size 1 come and go; None if a position must be checked."""
        pairs = [*zip(part.array.tensor.dims, part.axes, strict=True)]
        if any(dim == 1 and not (axis.is_first or axis.is_all_of_1) for dim, axis in pairs):
            return None
        new = [axis.origin for dim, axis in pairs if dim == 1 and axis.is_all_of_1]
        pending = [axis for dim, axis in pairs if dim != 1]
        first = PartAxis(parts.AT, [self.b.integer(0)], -1)
        array = node.operands[0]
        axes = [first if dim == 1 else pending.pop(0) for dim in array.tensor.dims]
        return ViewPart(array, axes, [*part.new_axes, *new])

    def _axis_before_slice(
        self, node: Node, x: Value, k: int, bounds: Bounds, axis: PartAxis
    ) -> PartAxis | None:
        """Return what an axis of a part of a slice is before the slice; None if it is no part."""
        if axis.entry == WHOLE:
            return replace(axis, entry=bounds)
        array, step = node.operands[0], bounds[2] or 1
        dim = array.tensor.dims[k]
        if isinstance(axis.entry, tuple) and isinstance(dim, int):
            taken = range(dim)[slice(*bounds)][slice(*axis.entry)]
            stop = None if taken.stop < 0 else taken.stop
            return replace(axis, entry=(taken.start, stop, taken.step) if taken else (0, 0, None))
        size = self.positions.size(x, k)
        if isinstance(axis.entry, tuple):
            if axis.entry[2] not in (None, 1, -1):
                return None
            ends = self.positions.ends(size, axis.entry)
            axis = replace(axis, entry=parts.CUT, values=[*ends], step=axis.entry[2] or 1)
        first: int | Value
        if isinstance(dim, int):
            first = slice(*bounds).indices(dim)[0]
        else:
            first = self.positions.first(array, k, bounds[0], step)
        b = self.b
        start = b.integer(first) if isinstance(first, int) else first
        if axis.entry == parts.AT:
            moved = self.positions.affine(Coordinate(axis.values[0], x, k), first, step)
            return replace(axis, values=[moved.value])
        low, high = (self._clipped(value, size) for value in axis.values)
        if step == 1:
            return replace(axis, values=[b.add(start, low), b.add(start, high)])
        one, by = b.integer(1), b.integer(step)
        low, high = b.add(start, b.mul(by, low)), b.add(start, b.mul(by, b.sub(high, one)))
        low, high = (low, high) if step > 0 else (high, low)
        end = b.emit(elementwise.maximum, b.add(high, one), low)  # where it is empty
        return replace(axis, values=[low, end], step=axis.step * step)

    def _clipped(self, bound: Value, size: Value) -> Value:
        """Return a bound of a cut, counted from the start, in the range of an axis."""
        b = self.b
        is_negative = b.lt(bound, b.integer(0))
        bound = b.select(is_negative, b.add(bound, size), bound)
        return b.emit(elementwise.minimum, b.emit(elementwise.maximum, bound, b.integer(0)), size)


def entries_of(node: Node, first: int) -> tuple[parts.Entries, Sequence[Value]]:
    """Return the part of its first operand that a node names, and its positions."""
    dims, positions = node.operands[0].tensor.dims, node.operands[first:]
    whole = (WHOLE,) * len(dims)
    match node.op:
        case updating.set_slice:
            return tuple(node.attrs["slices"]), ()
        case shaping.narrow:
            axis = node.attrs["axis"]
            return (*whole[:axis], parts.CUT, *whole[axis + 1 :]), positions
        case indexing.gather | updating.scatter_set | indexing.scatter_add:
            return (*[parts.AT] * len(positions), *whole[len(positions) :]), positions
    return node.attrs["entries"], positions


def without_axes(b: Build, x: Value, axes: Collection[int]) -> Value:
    """Return an array without some of its axes, of size 1."""
    dims = x.tensor.dims
    if x.tensor.is_static:
        return b.reshape(x, tuple(dim for k, dim in enumerate(dims) if k not in axes))
    entries = tuple(parts.AT if k in axes else WHOLE for k in range(len(dims)))
    return b.take_part(x, *[b.integer(0)] * len(axes), entries=entries, cuts=())
