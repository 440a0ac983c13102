"""Reads and writes at positions of a view become reads and writes of the array.

In a loop `x[:, 1][k]` reads a column and then one of its elements. The adjoint would make a column
of zeros, add to one element, and add the column to the cotangent of `x`; `y[:, 1][k] = v` would
make and store a column, too. At positions of the array itself both touch one element. MLIR calls
this folding of views into loads and stores (`fold-memref-alias-ops`).

A position is checked where the program reads or writes, by a node of its own, which has the error
of the view's axis; `in_bounds.py` removes it where it cannot fail.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from wend.ir.dtypes import INT64
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.rewrite import rewrite_nodes, with_operands
from wend.ir.types import Dim, TensorType
from wend.ops import elementwise, indexing, parts, shaping, updating
from wend.ops.build import Build
from wend.ops.control import while_
from wend.ops.loop_counters import as_integer
from wend.passes.dce import dce

_WHOLE = (None, None, None)
_VIEWS = (shaping.slice_, shaping.transpose, shaping.reshape, indexing.gather)
# The operations that put a view back into its array, or store in one
_PUTTING_BACK = (
    *(updating.set_slice, updating.scatter_set, indexing.scatter_add, parts.set_part),
    *(shaping.transpose, shaping.reshape),
)


@dataclass(slots=True)
class _Coordinate:
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

    def moved(self, axis: int) -> _Coordinate:
        """Return the position along an axis of the array."""
        if axis != self.axis and not self.is_checked:
            raise _UnknownSizeError
        return self


class _UnknownSizeError(Exception):
    """Positions must be checked with a size that only the run knows."""


# The array, and the positions along its leading axes
_Coordinates: TypeAlias = list["_Coordinate"]
_Place: TypeAlias = tuple[Value, _Coordinates]


def fold_views(graph: Graph) -> Graph:
    """Fold views into the reads and writes at positions, in loops."""
    return _Folder(is_adjoint_next=False).whole(graph)


def fold_views_for_adjoints(graph: Graph) -> Graph:
    """Fold also what takes longer to read so, and whose adjoint takes far less time."""
    return _Folder(is_adjoint_next=True).whole(graph)


class _Folder:
    """Folds the views of a graph.

    Attributes:
        is_adjoint_next: whether an adjoint of the graph is made next.
        count: the number of reads and writes that have been folded.
    """

    def __init__(self, *, is_adjoint_next: bool) -> None:
        self.is_adjoint_next, self.count = is_adjoint_next, 0

    def whole(self, graph: Graph) -> Graph:
        """Return the graph with views folded, without what is not read any more."""
        folded = self._folded(graph, is_in_loop=False)
        return dce(folded) if self.count else graph

    def _folded(self, graph: Graph, *, is_in_loop: bool) -> Graph:
        if graph.ops.isdisjoint(updating.ELEMENT_POSITIONS):
            return graph
        updated: set[Value] = set()  # reading these again would take a copy
        rows: dict[Node, list[_Coordinate]] = {}

        def fold(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
            is_inner = is_in_loop or node.op is while_
            regions = [self._folded(region, is_in_loop=is_inner) for region in node.regions]
            copy = with_operands(node, operands, regions)
            if is_in_loop and not copy.regions and len(copy.results) == 1:
                b = Build("")
                b.nodes, b.source = nodes, node.source
                count = len(nodes)
                folding = _Folding(b, updated, rows, copy.op.name)
                result = folding.result(copy, is_adjoint_next=self.is_adjoint_next)
                if result is not None and result.type == copy.results[0].type:
                    self.count += 1
                    updated.update(x for new in nodes[count:] for x in _updated_by(new))
                    return [result]
                del nodes[count:]
                folding.add_row(copy)
            nodes.append(copy)
            updated.update(_updated_by(copy))
            return copy.results

        return rewrite_nodes(graph, fold)


def _updated_by(node: Node) -> Sequence[Value]:
    """Return the operands that a node may change in place: loops change what they carry."""
    if node.op.updates is not None:
        return node.operands[node.op.updates : node.op.updates + 1]
    return node.operands[: node.attrs[node.op.leading_operands]] if node.op.leading_operands else ()


class _Folding:
    """Folds the views of one node."""

    def __init__(
        self, b: Build, updated: Container[Value], rows: dict[Node, _Coordinates], of: str
    ) -> None:
        self.b, self.updated, self.rows, self.of = b, updated, rows, of

    def result(self, node: Node, *, is_adjoint_next: bool) -> Value | None:
        """Return the result of a read or write of a view, or None."""
        try:
            if node.op is indexing.gather:
                return self.read(node) if is_adjoint_next or not self._divides(node) else None
            return self.written(node)
        except _UnknownSizeError:
            return None

    def _divides(self, node: Node) -> bool:
        """Return whether positions in the array of a view would take divisions, or a table."""
        if any(x.tensor.shape != () for x in node.operands[1:]):
            return True
        view = node.operands[0].node
        return view is not None and view.op is shaping.reshape and _has_other_shape(view)

    def add_row(self, node: Node) -> None:
        """Check the position of a row where the program reads it: a later fold refers to that."""
        if node.op is not indexing.gather or not node.results[0].tensor.dims:
            return
        x, *indices = node.operands
        if all(i.tensor.shape == () and i.tensor.dtype == INT64 for i in indices):
            self.rows[node] = self._positions(x, indices)

    def read(self, node: Node) -> Value | None:
        """Return what a node reads, from the array that its operand is a view of."""
        x, *indices = node.operands
        place = self._in_array(x, indices)
        if place is None:
            return None
        return self._emitted(indexing.gather, [], *place)

    def written(self, node: Node) -> Value | None:
        """Return the array with what a node writes to a view of it, and stores in it."""
        stored = _store_of(node)
        if stored is None:
            return None
        store, array = stored
        view, x, *indices = store.operands
        self.of = store.op.name
        place = self._in_array(view, indices, until=array)
        if place is None or place[0] is not array:
            return None
        return self._emitted(store.op, [x], *place)

    def _emitted(
        self, op: Op, others: Sequence[Value], array: Value, positions: _Coordinates
    ) -> Value:
        attrs = {"in_bounds": True} if all(x.is_checked for x in positions) else {}
        return self.b.emit(op, array, *others, *(x.value for x in positions), **attrs)

    def _positions(self, x: Value, indices: Sequence[Value]) -> _Coordinates:
        """Return positions, checked in the order of their axes."""
        return [self._checked(_Coordinate(i, x, k)) for k, i in enumerate(indices)]

    def _in_array(
        self, x: Value, indices: Sequence[Value], *, until: Value | None = None
    ) -> _Place | None:
        """Return the place in the array that a value is a view of, up to a value; None: no view."""
        if x.node is None or any(i.tensor.dtype != INT64 for i in indices):
            return None
        if x.node.op not in _VIEWS:
            return None
        start, positions = x, self._positions(x, indices)
        while x is not until and x.node is not None:
            place = self._through(x.node, x, positions)
            if place is None:
                break
            x, positions = place
        return None if x is start or x in self.updated else (x, positions)

    def _through(self, node: Node, x: Value, positions: _Coordinates) -> _Place | None:
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

    def _before_slice(self, node: Node, positions: _Coordinates) -> _Coordinates | None:
        slices, dims = node.attrs["slices"], node.operands[0].tensor.dims
        if any(bounds != _WHOLE for bounds in slices[len(positions) :]):
            return None
        moved = []
        for bounds, dim, position in zip(slices, dims, positions, strict=False):
            if bounds == _WHOLE:
                moved.append(position)
                continue
            start: int | Value
            if isinstance(dim, int):
                start, _, step = slice(*bounds).indices(dim)
            else:
                step = bounds[2] or 1
                start = self._first(node.operands[0], len(moved), bounds[0], step)
            moved.append(self._affine(position, start, step))
        return moved

    def _first(self, array: Value, axis: int, start: int | None, step: int) -> int | Value:
        """Return the first position of a slice of an axis whose size only the run knows.

        The slice is not empty, for a position in it has been checked.
        """
        b = self.b
        if step > 0 and (start is None or start >= 0):
            return start or 0
        size = b.size_of(array, axis)
        if step > 0:
            assert start is not None
            return b.emit(elementwise.maximum, b.add(size, b.integer(start)), b.integer(0))
        if start is None or start < 0:
            return b.add(size, b.integer(-1 if start is None else start))
        return b.emit(elementwise.minimum, b.integer(start), b.sub(size, b.integer(1)))

    def _before_transpose(self, node: Node, positions: _Coordinates) -> _Coordinates | None:
        perm, count = node.attrs["perm"], len(positions)
        if tuple(perm[count:]) != tuple(range(count, len(perm))):
            return None
        moved = {axis: x.moved(axis) for axis, x in zip(perm, positions, strict=False)}
        return [moved[axis] for axis in range(count)]

    def _before_gather(self, node: Node, positions: _Coordinates) -> _Coordinates | None:
        """The place of an element in a row that is read at numbers."""
        rows = self.rows.get(node)
        if rows is None or any(p.value.tensor.shape != () for p in positions):
            return None
        return [*rows, *positions]

    def _before_reshape(self, node: Node, x: Value, positions: _Coordinates) -> _Coordinates | None:
        old, new, count = node.operands[0].tensor.dims, x.tensor.dims, len(positions)
        if not _has_other_shape(node):
            return self._at_axes_of_size_1(old, new, positions)
        if count != len(new) or not old:
            return None
        inner = [[n for n in dims[1:] if isinstance(n, int)] for dims in (old, new)]
        if len(inner[0]) != len(old) - 1 or len(inner[1]) != len(new) - 1 or 0 in inner[0]:
            return None
        return self._in_other_shape(inner[0], inner[1], positions)

    def _at_axes_of_size_1(
        self, old: Sequence[Dim], new: Sequence[Dim], positions: _Coordinates
    ) -> _Coordinates | None:
        """The place where axes of size 1 come and go."""
        count = len(positions)
        for dim, position in zip(new, positions, strict=False):
            if dim == 1 and as_integer(position.value) not in (0, -1):
                return None  # it must be checked
        pending = [p for dim, p in zip(new, positions, strict=False) if dim != 1]
        moved: list[_Coordinate] = []
        for axis, dim in enumerate(old):
            if not pending and tuple(old[axis:]) == tuple(new[count:]):
                break
            if dim == 1:
                like = positions[0].value
                moved.append(_Coordinate(self._like(0, like), like, axis))
            elif pending:
                moved.append(pending.pop(0).moved(axis))
            else:
                return None
        is_whole = not pending and tuple(old[len(moved) :]) == tuple(new[count:])
        return moved if is_whole and moved else None

    def _in_other_shape(
        self, old: Sequence[int], new: Sequence[int], positions: _Coordinates
    ) -> _Coordinates:
        """The place in an array of other sizes, which are given but for those of the first axes."""
        if not all(x.is_checked for x in positions):
            raise _UnknownSizeError
        b, flat = self.b, positions[0].value
        for size, position in zip(new, positions[1:], strict=True):
            flat = b.add(b.mul(flat, self._like(size, flat)), position.value)
        values: list[Value] = []
        for size in reversed(old):
            divisor = self._like(size, flat)
            values.insert(0, b.emit(elementwise.remainder, flat, divisor))
            flat = b.floor_divide(flat, divisor)
        return [_Coordinate(x, x, k) for k, x in enumerate([flat, *values])]

    def _affine(self, position: _Coordinate, start: int | Value, step: int) -> _Coordinate:
        if not position.is_checked:
            raise _UnknownSizeError
        b, x = self.b, position.value
        number = as_integer(x)
        if number is not None and isinstance(start, int):
            return replace(position, value=b.integer(start + step * number))
        x = x if step == 1 else b.mul(x, self._like(step, x))
        if start != 0:
            x = b.add(x, self._like(start, x))
        return replace(position, value=x)

    def _checked(self, position: _Coordinate) -> _Coordinate:
        """Return a position that counts from the start; out of range it raises NumPy's error."""
        b, axis, size = self.b, position.axis, position.view.tensor.dims[position.axis]
        number = as_integer(position.value)
        if number is not None and isinstance(size, int) and -size <= number < size:
            return replace(position, value=b.integer(number % size))
        if position.value.tensor.shape == ():
            length = b.size_of(*_owner(position.view, axis))
            value = b.emit(indexing.position, position.value, length, axis=axis, of=self.of)
        elif isinstance(size, int):
            numbers = b.insert_axes(b.iota(size), axes=tuple(range(axis)))
            value = b.gather(numbers, *[self._like(0, position.value)] * axis, position.value)
        else:
            return replace(position, is_checked=False)
        return replace(position, value=value)

    def _like(self, number: int | Value, x: Value) -> Value:
        number = self.b.integer(number) if isinstance(number, int) else number
        return self.b.broadcast_like(number, x)


def _has_other_shape(reshape: Node) -> bool:
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


def _store_of(node: Node) -> tuple[Node, Value] | None:
    """Return what stores in a view that a node puts back into its array, and the array."""
    stored = _innermost_store(node)
    return None if stored is None or stored[0] is node else stored


def _innermost_store(node: Node) -> tuple[Node, Value] | None:
    """Return the store at the end of a chain of nodes that put views back, and the array."""
    if node.op not in _PUTTING_BACK:
        return None
    is_update = node.op.updates == 0 and len(node.operands) > 1
    inner = node.operands[1 if is_update else 0].node if node.operands else None
    if inner is not None and (stored := _innermost_store(inner)) is not None:
        store, view = stored
        array = None if view.node is None else _array_of(node, view.node)
        if array is not None:
            return store, array
    if node.op in (updating.scatter_set, indexing.scatter_add):
        return node, node.operands[0]
    return None


def _array_of(node: Node, view: Node) -> Value | None:
    """Return the array into which a node puts a view of it back; None if that is another."""
    array = view.operands[0]
    match node.op, view.op:
        case updating.set_slice, shaping.slice_:
            is_same = array is node.operands[0] and node.attrs["slices"] == view.attrs["slices"]
        case updating.scatter_set, indexing.gather:
            is_same = array is node.operands[0] and node.operands[2:] == view.operands[1:]
        case shaping.transpose, shaping.transpose:
            order = [view.attrs["perm"][k] for k in node.attrs["perm"]]
            is_same = order == [*range(len(order))]
        case shaping.reshape, shaping.reshape:
            is_same = array.type == node.results[0].type and array.tensor.is_static
        case parts.set_part, shaping.reshape:
            array = array.node.operands[0] if array.node is not None else array
            is_same = array is node.operands[0] and _cuts_part(view, node)
        case _:
            return None
    return array if is_same else None


def _cuts_part(view: Node, put: Node) -> bool:
    """Return whether a reshape of a slice is the part that a node puts, at constant positions."""
    cut = view.operands[0].node
    if cut is None or cut.op is not shaping.slice_:
        return False
    array, _, *positions = put.operands
    slices = []
    for (entry, at), dim in zip(
        parts.by_axis(put.attrs["entries"], positions), array.tensor.dims, strict=True
    ):
        number = as_integer(at[0]) if entry == parts.AT else None
        if isinstance(entry, tuple):
            slices.append(entry)
        elif number is None or not isinstance(dim, int):
            return False
        else:
            slices.append((number % dim, number % dim + 1, None))
    return (
        tuple(slices) == tuple(cut.attrs["slices"]) and view.results[0].type == put.operands[1].type
    )
