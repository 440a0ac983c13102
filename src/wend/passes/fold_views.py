"""Reads and writes at positions of a view become reads and writes of the array.

In a loop `x[:, 1][k]` reads a column and then one of its elements. The adjoint would make a column
of zeros, add to one element, and add the column to the cotangent of `x`; `y[:, 1][k] = v` would
make and store a column, too. At positions of the array itself both touch one element. MLIR calls
this folding of views into loads and stores (`fold-memref-alias-ops`).

A position is checked where the program reads or writes, by a node of its own, which has the error
of the view's axis; `in_bounds.py` removes it where it cannot fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from wend.ir.dtypes import INT64
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.rewrite import rewrite_nodes, with_operands
from wend.ir.types import Dim
from wend.ops import elementwise, indexing, parts, shaping, updating
from wend.ops.build import Build
from wend.ops.control import while_
from wend.ops.loop_counters import as_integer
from wend.passes.dce import dce
from wend.passes.put_back import Read, read_back, store_of
from wend.passes.view_positions import Coordinate, UnknownSizeError, ViewPositions, has_other_shape

_WHOLE = (None, None, None)
_VIEWS = (shaping.slice_, shaping.transpose, shaping.reshape, indexing.gather)
_PARTS = (parts.take_part, shaping.narrow)
_ADDING = (indexing.scatter_add, parts.add_part)
_PARTS_OF_NUMBERS = (elementwise.real, elementwise.imag)
_FOLDED = {*updating.ELEMENT_POSITIONS, *_PARTS, parts.set_part, updating.set_slice}


@dataclass(slots=True)
class _PartAxis:
    """An axis of a part.

    Attributes:
        entry: its entry, as of `take_part`.
        values: the positions that the entry takes; that of `"at"` has been checked.
        origin: its number in the view that the program indexes.
        is_flipped: whether the part has its elements in the opposite order.
    """

    entry: parts.Entry
    values: list[Value]
    origin: int
    is_flipped: bool = False

    @property
    def is_first(self) -> bool:
        """Whether it takes the first element, as is known."""
        return self.entry == parts.AT and as_integer(self.values[0]) == 0


def _remaining(axes: Sequence[_PartAxis]) -> list[int]:
    return [axis.origin for axis in axes if axis.entry != parts.AT]


def _keys(axes: Sequence[_PartAxis]) -> parts.Entries:
    return tuple(axis.entry for axis in axes)


def _are_rows(axes: Sequence[_PartAxis]) -> bool:
    """Return whether a part is an element, or a row of leading axes."""
    count = sum(axis.entry == parts.AT for axis in axes)
    is_whole = all(axis.entry == _WHOLE for axis in axes[count:])
    return count > 0 and is_whole and all(axis.entry == parts.AT for axis in axes[:count])


def _values(axes: Sequence[_PartAxis]) -> list[Value]:
    return [value for axis in axes for value in axis.values]


# The array, and the positions along its leading axes
_Coordinates: TypeAlias = list["Coordinate"]
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
        if graph.ops.isdisjoint(_FOLDED):
            return graph
        state = _RegionValues(graph)

        def fold(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
            is_inner = is_in_loop or node.op is while_
            regions = [self._folded(region, is_in_loop=is_inner) for region in node.regions]
            copy = with_operands(node, operands, regions)
            if is_in_loop and not copy.regions and len(copy.results) == 1:
                b = Build("")
                b.nodes, b.source = nodes, node.source
                if copy.op.updates == 0:
                    newest = state.newest(b, operands[0])
                    copy = with_operands(node, [newest, *operands[1:]], regions)
                count = len(nodes)
                folding = _Folding(b, state, copy.op.name)
                result = folding.result(copy, is_adjoint_next=self.is_adjoint_next)
                if result is not None and result.type == copy.results[0].type:
                    self.count += 1
                    state.updated.update(x for new in nodes[count:] for x in _updated_by(new))
                    state.add_put(copy, result)
                    return [result]
                del nodes[count:]
                folding.add_row(copy)
                state.add_put(copy, copy.results[0])
            nodes.append(copy)
            state.updated.update(_updated_by(copy))
            return copy.results

        return rewrite_nodes(graph, fold)


class _RegionValues:
    """The values of a region: which are updated, and which are put back.

    Attributes:
        changed: params that are updated somewhere, or views of them.
        updated: the arrays that have been updated: reading them again would take a copy.
        rows: the positions, checked, of rows that are read.
        views: for each view that has been put back, the array, and what reads the view from it.
    """

    def __init__(self, graph: Graph) -> None:
        self.changed = {_array_of(x) for node in graph.nodes for x in _updated_by(node)}
        self.updated: set[Value] = set()
        self.rows: dict[Node, _Coordinates] = {}
        self.views: dict[Value, tuple[Value, Read]] = {}

    def add_put(self, node: Node, array: Value) -> None:
        """Note an array into which a node has put a view back."""
        if store_of(node) is not None and (back := read_back(node)) is not None:
            view, read = back
            self.views[view] = array, read

    def newest(self, b: Build, view: Value) -> Value:
        """Return a view that has been put back as one of the array; any other value as it is."""
        if view not in self.views:
            return view
        array, read = self.views[view]
        count = len(b.nodes)
        value = read(b, self.newest(b, array))
        if array not in self.updated and value.type == view.type:
            return value
        del b.nodes[count:]
        return view


def _array_of(view: Value) -> Value:
    while view.node is not None and view.node.op in _VIEWS:
        view = view.node.operands[0]
    return view


def _updated_by(node: Node) -> Sequence[Value]:
    """Return the operands that a node may change in place: loops change what they carry."""
    if node.op.updates is not None:
        return node.operands[node.op.updates : node.op.updates + 1]
    return node.operands[: node.attrs[node.op.leading_operands]] if node.op.leading_operands else ()


class _Folding:
    """Folds the views of one node."""

    def __init__(self, b: Build, state: _RegionValues, of: str) -> None:
        self.b, self.positions = b, ViewPositions(b, of)
        self.changed, self.updated, self.rows = state.changed, state.updated, state.rows

    def result(self, node: Node, *, is_adjoint_next: bool) -> Value | None:
        """Return the result of a read or write of a view, or None."""
        try:
            if node.op is indexing.gather:
                return self.read(node) if is_adjoint_next or not self._divides(node) else None
            if node.op in _PARTS:
                return self.part_read(node)
            return self.written(node)
        except UnknownSizeError:
            return None

    def _divides(self, node: Node) -> bool:
        """Return whether positions in the array of a view would take divisions, or a table."""
        if any(x.tensor.shape != () for x in node.operands[1:]):
            return True
        view = node.operands[0].node
        return view is not None and view.op is shaping.reshape and has_other_shape(view)

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
        if place is not None:
            return self._emitted(indexing.gather, [], *place)
        if x.node is not None and x.node.op in _PARTS_OF_NUMBERS:
            return self.b.emit(x.node.op, self.b.gather(x.node.operands[0], *indices))
        return None

    def written(self, node: Node) -> Value | None:
        """Return the array with what a node writes to a view of it, and stores in it."""
        stored = store_of(node)
        if stored is None:
            return None
        store, array = stored
        view, x, *indices = store.operands
        self.positions.of = store.op.name
        if store.op in updating.ELEMENT_POSITIONS:
            count = len(self.b.nodes)
            place = self._in_array(view, indices, until=array)
            if place is not None and place[0] is array:
                return self._emitted(store.op, [x], *place)
            del self.b.nodes[count:]
        return self.part_written(store, array)

    def _emitted(
        self, op: Op, others: Sequence[Value], array: Value, positions: _Coordinates
    ) -> Value:
        attrs = {"in_bounds": True} if all(x.is_checked for x in positions) else {}
        return self.b.emit(op, array, *others, *(x.value for x in positions), **attrs)

    def _positions(self, x: Value, indices: Sequence[Value]) -> _Coordinates:
        """Return positions, checked in the order of their axes."""
        return [self.positions.checked(Coordinate(i, x, k)) for k, i in enumerate(indices)]

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
                start = self.positions.first(node.operands[0], len(moved), bounds[0], step)
            moved.append(self.positions.affine(position, start, step))
        return moved

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
        if not has_other_shape(node):
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
        moved: _Coordinates = []
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
        self, old: Sequence[int], new: Sequence[int], positions: _Coordinates
    ) -> _Coordinates:
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

    # Parts: some axes are cut
    def part_read(self, node: Node) -> Value | None:
        """Return the part of a view that a node reads, if its array is changed here."""
        place = self._part_in_array(node.operands[0], *_entries(node, 1))
        if place is None:
            return None
        array, axes = place
        if array not in self.changed and (array.node is None or array.node.op.updates is None):
            return None  # a view of an invariant is made once
        remaining, result = _remaining(axes), node.results[0].tensor.dims
        order = sorted(remaining)
        cuts = tuple(
            dim
            for axis in axes
            if axis.entry == parts.CUT
            for dim in result[order.index(axis.origin) :][:1]
        )
        if _are_rows(axes):
            part = self.b.emit(indexing.gather, array, *_values(axes), in_bounds=True)
        else:
            part = self.b.take_part(array, *_values(axes), entries=_keys(axes), cuts=cuts)
        return self.b.transpose(self._flipped(part, axes), perm=tuple(map(remaining.index, order)))

    def part_written(self, store: Node, array: Value) -> Value | None:
        """Return an array with what is stored in a part of a view of it."""
        view, x = store.operands[:2]
        if any(i.tensor.dims for i in store.operands[2:]):
            return None
        place = self._part_in_array(view, *_entries(store, 2), until=array)
        if place is None or place[0] is not array:
            return None
        axes = place[1]
        remaining = _remaining(axes)
        order = sorted(remaining)
        x = self._flipped(self.b.transpose(x, perm=tuple(map(order.index, remaining))), axes)
        if _are_rows(axes):
            op = indexing.scatter_add if store.op in _ADDING else updating.scatter_set
            return self.b.emit(op, array, x, *_values(axes), in_bounds=True)
        op = parts.add_part if store.op in _ADDING else parts.set_part
        return self.b.emit(op, array, x, *_values(axes), entries=_keys(axes))

    def _flipped(self, part: Value, axes: Sequence[_PartAxis]) -> Value:
        flips = [axis.is_flipped for axis in axes if axis.entry != parts.AT]
        slices = tuple((None, None, -1) if flip else _WHOLE for flip in flips)
        return self.b.slice(part, slices=slices) if any(flips) else part

    def _part_in_array(
        self,
        x: Value,
        entries: parts.Entries,
        positions: Sequence[Value],
        *,
        until: Value | None = None,
    ) -> tuple[Value, list[_PartAxis]] | None:
        """Return the part of an array that is this part of a view of it; None: no view."""
        if x.node is None or x.node.op not in _VIEWS:
            return None
        if any(i.tensor.dtype != INT64 for i in positions):
            return None
        axes = []
        for k, (entry, at) in enumerate(parts.by_axis(entries, positions)):
            is_at = entry == parts.AT
            values = [self.positions.checked(Coordinate(at[0], x, k)).value] if is_at else [*at]
            axes.append(_PartAxis(entry, values, k))
        start = x
        while x is not until and x.node is not None:
            moved = self._part_through(x.node, x, axes)
            if moved is None:
                break
            x, axes = x.node.operands[0], moved
        return None if x is start or x in self.updated else (x, axes)

    def _part_through(
        self, node: Node, x: Value, axes: Sequence[_PartAxis]
    ) -> list[_PartAxis] | None:
        """Return the part of the operand of a node that makes a view."""
        match node.op:
            case shaping.transpose:
                by_axis = dict(zip(node.attrs["perm"], axes, strict=True))
                return [by_axis[k] for k in range(len(axes))]
            case shaping.slice_:
                moved = [
                    axis if bounds == _WHOLE else self._axis_before_slice(node, x, k, bounds, axis)
                    for k, (bounds, axis) in enumerate(zip(node.attrs["slices"], axes, strict=True))
                ]
                return None if None in moved else [axis for axis in moved if axis is not None]
            case shaping.reshape if not has_other_shape(node):
                pairs = [*zip(x.tensor.dims, axes, strict=True)]
                if any(dim == 1 and not axis.is_first for dim, axis in pairs):
                    return None  # it must be checked
                pending = [axis for dim, axis in pairs if dim != 1]
                first = _PartAxis(parts.AT, [self.b.integer(0)], -1)
                dims = node.operands[0].tensor.dims
                return [first if dim == 1 else pending.pop(0) for dim in dims]
            case indexing.gather if node in self.rows:
                rows = [_PartAxis(parts.AT, [row.value], -1) for row in self.rows[node]]
                return [*rows, *axes]
        return None

    def _axis_before_slice(
        self, node: Node, x: Value, k: int, bounds: parts.Bounds, axis: _PartAxis
    ) -> _PartAxis | None:
        """Return what an axis of a part of a slice is before the slice; None if it is no part."""
        if axis.entry == _WHOLE:
            return replace(axis, entry=bounds)
        if not isinstance(axis.entry, str):
            return None
        array, step = node.operands[0], bounds[2] or 1
        dim = array.tensor.dims[k]
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
        if abs(step) != 1:
            return None
        size = self.positions.size(x, k)
        low, high = (self._clipped(value, size) for value in axis.values)
        if step == 1:
            return replace(axis, values=[b.add(start, low), b.add(start, high)])
        end = b.add(start, b.integer(1))
        is_flipped = not axis.is_flipped
        return replace(axis, values=[b.sub(end, high), b.sub(end, low)], is_flipped=is_flipped)

    def _clipped(self, bound: Value, size: Value) -> Value:
        """Return a bound of a cut, counted from the start, in the range of an axis."""
        b = self.b
        is_negative = b.lt(bound, b.integer(0))
        bound = b.select(is_negative, b.add(bound, size), bound)
        return b.emit(elementwise.minimum, b.emit(elementwise.maximum, bound, b.integer(0)), size)


def _entries(node: Node, first: int) -> tuple[parts.Entries, Sequence[Value]]:
    """Return the part of its first operand that a node names, and its positions."""
    dims, positions = node.operands[0].tensor.dims, node.operands[first:]
    whole = (_WHOLE,) * len(dims)
    match node.op:
        case updating.set_slice:
            return tuple(node.attrs["slices"]), ()
        case shaping.narrow:
            axis = node.attrs["axis"]
            return (*whole[:axis], parts.CUT, *whole[axis + 1 :]), positions
        case updating.scatter_set | indexing.scatter_add:
            return (*[parts.AT] * len(positions), *whole[len(positions) :]), positions
    return node.attrs["entries"], positions
