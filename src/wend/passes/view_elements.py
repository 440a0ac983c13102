"""Elements and rows of views, at positions of the array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from wend.ir.graph import Node, Value
from wend.ir.types import Dim
from wend.ops import elementwise, indexing, shaping
from wend.ops.loop_counters import as_integer
from wend.ops.shapes import WHOLE, known_position
from wend.passes.view_positions import (
    AccessesOfViews,
    Coordinate,
    Coordinates,
    UnknownSizeError,
    has_other_shape,
)

# The array, and the positions
Place: TypeAlias = tuple[Value, Coordinates]


class ElementsOfViews(AccessesOfViews):
    """Finds the elements and rows of arrays that are elements and rows of views of them."""

    def checked(self, x: Value, indices: Sequence[Value]) -> Coordinates:
        """Return positions, checked in the order of their axes."""
        return [self.positions.checked(Coordinate(i, x, k)) for k, i in enumerate(indices)]

    def place(
        self, x: Value, indices: Sequence[Value], *, until: Value | None = None
    ) -> Place | None:
        """Return the place in the array that a value is a view of, up to a value; None: no view."""
        if not self.can_move(x, indices):
            return None
        start, positions = x, self.checked(x, indices)
        while x is not until and x.node is not None:
            place = self._through(x.node, x, positions)
            if place is None:
                break
            x, positions = place
        return None if x is start else (x, positions)

    def _through(self, node: Node, x: Value, positions: Coordinates) -> Place | None:
        """Return the place in the operand of a node that makes a view."""
        match node.op:
            case shaping.slice_:
                moved = self._before_slice(node, positions)
            case shaping.transpose:
                moved = self._before_transpose(node, positions)
            case shaping.reshape:
                moved = self._before_reshape(node, x, positions)
            case indexing.gather:
                moved = self._before_gather(node, positions)
            case _:
                return None
        return None if moved is None else (node.operands[0], moved)

    def _before_slice(self, node: Node, positions: Coordinates) -> Coordinates | None:
        slices, dims = node.attrs["slices"], node.operands[0].tensor.dims
        if any(bounds != WHOLE for bounds in slices[len(positions) :]):
            return None
        moved = []
        for bounds, dim, position in zip(slices, dims, positions, strict=False):
            if bounds == WHOLE:
                moved.append(position)
                continue
            start: int | Value
            if isinstance(dim, int):
                start, _, step = slice(*bounds).indices(dim)
            else:
                step = bounds[2] or 1
                start = self.positions.first(node.operands[0], len(moved), bounds[0], step)
            moved.append(self.positions.affine(position, start, step))
        return moved

    def _before_transpose(self, node: Node, positions: Coordinates) -> Coordinates | None:
        perm, count = node.attrs["perm"], len(positions)
        if tuple(perm[count:]) != tuple(range(count, len(perm))):
            return None
        moved = {axis: x.moved(axis) for axis, x in zip(perm, positions, strict=False)}
        return [moved[axis] for axis in range(count)]

    def _before_gather(self, node: Node, positions: Coordinates) -> Coordinates | None:
        """The place of an element in a row that is read at numbers."""
        rows = self.rows.get(node)
        if rows is None or any(p.value.tensor.shape != () for p in positions):
            return None
        return [*rows, *positions]

    def _before_reshape(self, node: Node, x: Value, positions: Coordinates) -> Coordinates | None:
        old, new, count = node.operands[0].tensor.dims, x.tensor.dims, len(positions)
        if not has_other_shape(node):
            return self._at_axes_of_size_1(old, new, positions)
        if count != len(new) or not old:
            return None
        inner = [[n for n in dims[1:] if isinstance(n, int)] for dims in (old, new)]
        if len(inner[0]) != len(old) - 1 or len(inner[1]) != len(new) - 1 or 0 in inner[0]:
            return None
        return self._in_other_shape(inner[0], inner[1], positions)

    def _at_axes_of_size_1(
        self, old: Sequence[Dim], new: Sequence[Dim], positions: Coordinates
    ) -> Coordinates | None:
        """The place where axes of size 1 come and go."""
        count = len(positions)
        for dim, position in zip(new, positions, strict=False):
            if dim == 1 and known_position(as_integer(position.value), dim) is None:
                return None  # it must be checked
        pending = [p for dim, p in zip(new, positions, strict=False) if dim != 1]
        moved: Coordinates = []
        for axis, dim in enumerate(old):
            if not pending and tuple(old[axis:]) == tuple(new[count:]):
                break
            if dim == 1:
                like = positions[0].value
                moved.append(Coordinate(self.positions.like(0, like), like, axis))
            elif pending:
                moved.append(pending.pop(0).moved(axis))
            else:
                return None
        is_whole = not pending and tuple(old[len(moved) :]) == tuple(new[count:])
        return moved if is_whole and moved else None

    def _in_other_shape(
        self, old: Sequence[int], new: Sequence[int], positions: Coordinates
    ) -> Coordinates:
        """The place in an array of other sizes, which are given but for those of the first axes."""
        if not all(x.is_checked for x in positions):
            raise UnknownSizeError
        b, flat = self.b, positions[0].value
        for size, position in zip(new, positions[1:], strict=True):
            flat = b.add(b.mul(flat, self.positions.like(size, flat)), position.value)
        values: list[Value] = []
        for size in reversed(old):
            divisor = self.positions.like(size, flat)
            values.insert(0, b.emit(elementwise.remainder, flat, divisor))
            flat = b.floor_divide(flat, divisor)
        return [Coordinate(x, x, k) for k, x in enumerate([flat, *values])]
