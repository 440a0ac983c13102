"""Reads and writes at positions of a view become reads and writes of the array.

In a loop `x[:, 1][k]` reads a column and then one of its elements. The adjoint would make a column
of zeros, add to one element, and add the column to the cotangent of `x`; `y[:, 1][k] = v` would
make and store a column, too. At positions of the array itself both touch one element. MLIR calls
this folding of views into loads and stores (`fold-memref-alias-ops`).

A position is checked where the program reads or writes, by a node of its own, which has the error
of the view's axis; `in_bounds.py` removes it where it cannot fail.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from wend.ir.dataflow import region_flow, used_value
from wend.ir.dtypes import INT64
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.rewrite import rewrite_nodes, with_operands
from wend.ops import elementwise, indexing, parts, shaping, updating
from wend.ops.build import Build
from wend.ops.control import while_
from wend.passes.dce import dce
from wend.passes.inline import inline_writes_to_views
from wend.passes.put_back import Read, read_back, store_of
from wend.passes.sink_views import sink_views
from wend.passes.view_elements import ElementsOfViews
from wend.passes.view_parts import PartsOfViews, entries_of
from wend.passes.view_positions import (
    VIEWS,
    Coordinates,
    UnknownSizeError,
    ViewPositions,
    has_other_shape,
)

_PARTS = (parts.take_part, shaping.narrow)
_ADDING = (indexing.scatter_add, parts.add_part)
_PARTS_OF_NUMBERS = (elementwise.real, elementwise.imag)
_FOLDED = {*updating.ELEMENT_POSITIONS, *_PARTS, parts.set_part, updating.set_slice}


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
        if graph.ops.isdisjoint(_FOLDED):
            return graph
        sunk = sink_views(graph)
        if self.is_adjoint_next:
            sunk = sink_views(inline_writes_to_views(sunk))
        folded = self._folded(sunk, is_in_loop=False)
        return dce(folded) if self.count else graph

    def _folded(self, graph: Graph, *, is_in_loop: bool, changed: Collection[Value] = ()) -> Graph:
        if graph.ops.isdisjoint((*_FOLDED, shaping.dim_of)):
            return graph
        state = _RegionValues(graph, changed)

        def fold(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
            is_inner = is_in_loop or node.op is while_
            inner = state.changed_within(node)
            regions = [
                self._folded(region, is_in_loop=is_inner, changed=inner) for region in node.regions
            ]
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
        changed: params that are updated somewhere, here or around the region.
        updated: the arrays that have been updated: reading them again would take a copy.
        rows: the positions, checked, of rows that are read.
        views: for each view that has been put back, the array, and what reads the view from it.
    """

    def __init__(self, graph: Graph, changed: Collection[Value]) -> None:
        self.changed = {_array_of(x) for node in graph.nodes for x in _updated_by(node)}
        self.changed.update(changed)
        self.updated: set[Value] = set()
        self.rows: dict[Node, Coordinates] = {}
        self.views: dict[Value, tuple[Value, Read]] = {}

    def changed_within(self, node: Node) -> Collection[Value]:
        """Return the params of the regions of a node that hold what is updated around it."""
        changed = {*self.changed}
        for use, value in region_flow(node):
            if _array_of(used_value(use)) in changed:
                changed.add(value)
        return changed

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
    while view.node is not None and view.node.op in VIEWS:
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
        self.b, self.state, self.positions = b, state, ViewPositions(b, of)
        self.elements = ElementsOfViews(self.positions, state.rows)
        self.parts = PartsOfViews(self.positions, state.rows)

    def result(self, node: Node, *, is_adjoint_next: bool) -> Value | None:
        """Return the result of a read or write of a view, or None."""
        try:
            if node.op is shaping.dim_of:
                return self.positions.size(node.operands[0], node.attrs["axis"])
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
            self.state.rows[node] = self.elements.checked(x, indices)

    def read(self, node: Node) -> Value | None:
        """Return what a node reads, from the array that its operand is a view of."""
        x, *indices = node.operands
        if node.results[0].tensor.dims and not any(i.tensor.dims for i in indices):
            count = len(self.b.nodes)
            row = self.part_read(node)
            if row is not None:
                return row
            del self.b.nodes[count:]
        place = self.elements.place(x, indices)
        if place is not None and place[0] not in self.state.updated:
            return self._emitted(indexing.gather, [], *place)
        if x.node is not None and x.node.op in _PARTS_OF_NUMBERS:
            return self.b.emit(x.node.op, self.b.gather(x.node.operands[0], *indices))
        return None

    def part_read(self, node: Node) -> Value | None:
        """Return the part of a view that a node reads, if its array is changed here."""
        part = self.parts.part(node.operands[0], *entries_of(node, 1))
        if part is None or part.array in self.state.updated:
            return None
        array = part.array
        if array not in self.state.changed and (
            array.node is None or array.node.op.updates is None
        ):
            return None  # a view of an invariant is made once
        return part.read(self.b, node.results[0].tensor.dims)

    def written(self, node: Node) -> Value | None:
        """Return the array with what a node writes to a view of it, and stores in it."""
        stored = store_of(node)
        if stored is None:
            return None
        store, array = stored
        if array in self.state.updated:
            return None
        view, x, *indices = store.operands
        self.positions.of = store.op.name
        if store.op in updating.ELEMENT_POSITIONS:
            count = len(self.b.nodes)
            place = self.elements.place(view, indices, until=array)
            if place is not None and place[0] is array:
                return self._emitted(store.op, [x], *place)
            del self.b.nodes[count:]
        if any(i.tensor.dims for i in indices):
            return None
        part = self.parts.part(view, *entries_of(store, 2), until=array)
        if part is None or part.array is not array:
            return None
        return part.written(self.b, x, adds=store.op in _ADDING)

    def _emitted(
        self, op: Op, others: Sequence[Value], array: Value, positions: Coordinates
    ) -> Value:
        attrs = {"in_bounds": True} if all(x.is_checked for x in positions) else {}
        return self.b.emit(op, array, *others, *(x.value for x in positions), **attrs)
