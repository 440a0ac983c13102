"""Positions in views: checked, and moved to the array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from wend.base.lazy.dataclass import dataclass
from wend.ir.dtypes import INT64
from wend.ir.graph import Node, Value
from wend.ir.types import TensorType
from wend.ops import elementwise, indexing, shaping
from wend.ops.build import Build
from wend.ops.loop_counters import as_integer
from wend.ops.shapes import Bounds, known_position

# The operations that make a view of an array
VIEWS = (shaping.slice_, shaping.transpose, shaping.reshape, indexing.gather)
_MAX_POSITIONS = 8  # of a vector that is checked one by one: the size is known to the run only


@dataclass(slots=True)
class Coordinate:
    """A position along an axis.

    Attributes:
        value: the position.
        view: the view that the program indexes.
        axis: its axis.
        is_checked: whether it is known to be in range, and counts from the start.
    """

    value: Value
    view: Value
    axis: int
    is_checked: bool = True

    def moved(self, axis: int) -> Coordinate:
        """Return the position along an axis of the array."""
        if axis != self.axis and not self.is_checked:
            raise UnknownSizeError
        return self


# Positions along the leading axes of an array
Coordinates: TypeAlias = list[Coordinate]


class UnknownSizeError(Exception):
    """Positions must be checked with a size that only the run knows."""


class ViewPositions:
    """Checks and moves positions.

    Attributes:
        b: the builder of the nodes.
        of: the name of the operation that reads or writes there, for errors.
    """

    def __init__(self, b: Build, of: str) -> None:
        self.b, self.of = b, of

    def affine(self, position: Coordinate, start: int | Value, step: int) -> Coordinate:
        if not position.is_checked:
            raise UnknownSizeError
        b, x = self.b, position.value
        number = as_integer(x)
        if number is not None and isinstance(start, int):
            return replace(position, value=b.integer(start + step * number))
        x = x if step == 1 else b.mul(x, self.like(step, x))
        if start != 0:
            x = b.add(x, self.like(start, x))
        return replace(position, value=x)

    def checked(self, position: Coordinate) -> Coordinate:
        """Return a position that counts from the start; out of range it raises NumPy's error."""
        b, axis, size = self.b, position.axis, position.view.tensor.dims[position.axis]
        number = known_position(as_integer(position.value), size)
        if number is not None:
            return replace(position, value=b.integer(number))
        dims = position.value.tensor.dims
        if not dims:
            value = self._checked_number(position, position.value)
        elif (
            not isinstance(size, int) and isinstance(dims[0], int) and 0 < dims[0] <= _MAX_POSITIONS
        ):
            numbers = [b.gather(position.value, b.integer(k)) for k in range(dims[0])]
            checked = [self._checked_number(position, x) for x in numbers]
            value = b.concat(*(b.reshape(x, (1,)) for x in checked), axis=0)
        elif isinstance(size, int):
            table = b.insert_axes(b.iota(size), axes=tuple(range(axis)))
            value = b.gather(table, *[self.like(0, position.value)] * axis, position.value)
        else:
            return replace(position, is_checked=False)
        return replace(position, value=value)

    def _checked_number(self, position: Coordinate, x: Value) -> Value:
        length = self.size(position.view, position.axis)
        return self.b.emit(indexing.position, x, length, axis=position.axis, of=self.of)

    def first(self, array: Value, axis: int, start: int | None, step: int) -> int | Value:
        """Return the first position of a slice of an axis whose size only the run knows.

        The slice is not empty, for a position in it has been checked.
        """
        b = self.b
        if step > 0 and (start is None or start >= 0):
            return start or 0
        size = self.size(array, axis)
        if step > 0:
            assert start is not None
            return b.emit(elementwise.maximum, b.add(size, b.integer(start)), b.integer(0))
        if start is None or start < 0:
            return b.add(size, b.integer(-1 if start is None else start))
        return b.emit(elementwise.minimum, b.integer(start), b.sub(size, b.integer(1)))

    def size(self, view: Value, axis: int) -> Value:
        """Return the size of an axis of a view, computed from those of the array."""
        array, axis = _owner(view, axis)
        node, size = array.node, array.tensor.dims[axis]
        if isinstance(size, int) or node is None or node.op is not shaping.slice_:
            return self.b.size_of(array, axis)
        return self._size_within(self.size(node.operands[0], axis), node.attrs["slices"][axis])

    def _size_within(self, size: Value, bounds: Bounds) -> Value:
        """Return the size of a slice of an axis of some size."""
        b, step = self.b, abs(bounds[2] or 1)
        low, high = self.ends(size, bounds)
        apart = b.emit(elementwise.maximum, b.sub(high, low), b.integer(0))
        if step == 1:
            return apart
        return b.floor_divide(b.add(apart, b.integer(step - 1)), b.integer(step))

    def ends(self, size: Value, bounds: Bounds) -> tuple[Value, Value]:
        """Return the positions between which a slice takes elements of an axis of some size.

        The second is not taken; a slice that is empty may give any that do not increase.
        """
        b, (start, stop, step) = self.b, bounds
        low, high = b.integer(0), size
        if step is not None and step < 0:
            one = b.integer(1)
            last = b.sub(size, one)
            if stop is not None:
                low = b.add(self._clipped(stop, size, b.integer(-1), last), one)
            if start is not None:
                high = b.add(self._clipped(start, size, b.integer(-1), last), one)
            return low, high
        if start is not None:
            low = self._clipped(start, size, low, size)
        if stop is not None:
            high = self._clipped(stop, size, b.integer(0), size)
        return low, high

    def _clipped(self, bound: int, size: Value, low: Value, high: Value) -> Value:
        """Return the position that a bound of a slice stands for."""
        b, number = self.b, self.b.integer(bound)
        if bound >= 0:
            return b.emit(elementwise.minimum, number, high)
        return b.emit(elementwise.maximum, b.add(size, number), low)

    def like(self, number: int | Value, x: Value) -> Value:
        number = self.b.integer(number) if isinstance(number, int) else number
        return self.b.broadcast_like(number, x)


class AccessesOfViews:
    """Moves reads and writes from views to their arrays.

    Attributes:
        positions: checks and moves single positions.
        rows: the positions, checked, of rows that are read.
    """

    def __init__(self, positions: ViewPositions, rows: Mapping[Node, Coordinates]) -> None:
        self.b, self.positions, self.rows = positions.b, positions, rows

    def can_move(self, x: Value, positions: Sequence[Value]) -> bool:
        """Return whether a value is a view, with positions that can be moved to its array."""
        is_view = x.node is not None and x.node.op in VIEWS
        return is_view and all(i.tensor.dtype == INT64 for i in positions)


def has_other_shape(reshape: Node) -> bool:
    """Return whether a reshape does more than to add and remove axes of size 1."""
    old, new = reshape.operands[0].tensor.dims, reshape.results[0].tensor.dims
    return [dim for dim in old if dim != 1] != [dim for dim in new if dim != 1]


def _owner(view: Value, axis: int) -> tuple[Value, int]:
    """Return the array from which a view has the size of an axis, and its axis."""
    size = view.tensor.dims[axis]
    while view.node is not None and view.node.operands:
        array = view.node.operands[0]
        if not isinstance(array.type, TensorType) or size not in array.tensor.dims:
            break
        view, axis = array, array.tensor.dims.index(size)
    return view, axis
