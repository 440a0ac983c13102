"""Computes on whole arrays what a program computes for the elements that a mask selects.

`x[mask].sum()` becomes a reduction to which other elements add nothing, and `x[mask] = f(y[mask])`
becomes `x = where(mask, f(y), x)`. Neither the positions nor the selected elements are stored, and
all of it, with the mask, is computed in the same loops. Derivatives have been taken before, so what
`f` gives outside the mask reaches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from wend.backends.native.analysis.liveness import LastUses
from wend.ir.dtypes import INT64
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.rewrite import rewrite_nodes, with_operands
from wend.ops import indexing, shaping, updating
from wend.ops.build import Build
from wend.passes.lane_maps import is_elementwise

Computes: TypeAlias = Callable[[Node], bool]

# Nanoseconds of work on an element for each array that it is selected from, stored to, or summed
# into: beyond it, less work on fewer elements repays selecting them
_MAX_COST = 2.0
# What takes the value of a selected element, and how an array gets it
_STORES: dict[Op, Callable[[Build, Value, Value], Value]] = {
    updating.scatter_set: lambda b, x, new: new,
    indexing.scatter_add: lambda b, x, new: b.add(x, new),
}


def compute_masked_elements(graph: Graph, computes: Computes) -> Graph:
    """Compute on whole arrays where the selected elements have no other use.

    Args:
        graph: the graph to lower.
        computes: whether a node computes arrays element by element.
    """
    if indexing.nonzero not in graph.ops:
        return graph
    uses, b = LastUses(graph), Build(graph.name)
    selections = [
        _Selection(uses, node, computes) for node in graph.nodes if node.op is indexing.nonzero
    ]
    by_node = {node: x for x in selections if x.is_replaced() for node in x.nodes}
    new: dict[Value, Value] = {}  # what is computed on whole arrays, by selected elements

    def rewrite(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        b.nodes, b.source = nodes, node.source
        selection = by_node.get(node)
        if selection is None:
            regions = [compute_masked_elements(region, computes) for region in node.regions]
            nodes.append(with_operands(node, operands, regions))
            return nodes[-1].results
        if node is selection.nonzero:
            selection.mask = operands[0]
            return node.results
        results = selection.replace(b, node, operands, new)
        if node in selection.sinks:
            return results
        new.update(zip(node.results, results, strict=True))
        return node.results

    return rewrite_nodes(graph, rewrite)


class _Selection:
    """The positions where a mask is true, and what is computed from the elements there.

    Attributes:
        nonzero: the node that gives the positions.
        nodes: that node, and those that only it and each other feed.
        sinks: those of them that give something else than selected elements.
        mask: the mask, in the new graph.
    """

    def __init__(self, uses: LastUses, nonzero: Node, computes: Computes) -> None:
        self.nonzero = nonzero
        self.nodes, self.sinks = {nonzero: None}, set[Node]()
        self.mask = nonzero.operands[0]
        self._computes = computes
        self._elements: set[Value] = set()  # those that are selected, or computed from such
        self._is_pure = True
        pending = [*nonzero.results]
        while pending and self._is_pure:
            value = pending.pop()
            self._is_pure = not uses.is_result(value)
            for user in uses.users(value):
                if user in self.nodes:
                    continue
                if self._is_sink(user):
                    self.sinks.add(user)
                elif not self._gives_elements(user):
                    self._is_pure = False
                    break
                else:
                    self._elements.update(user.results)
                    pending += user.results
                self.nodes[user] = None

    def is_replaced(self) -> bool:
        """Return whether all of it may be computed on whole arrays, and repays that."""
        nodes = [x for x in self.nodes if x is not self.nonzero]
        moved = {x for x in nodes if x in self.sinks or x.op is indexing.gather}
        is_known = all(
            self._is_known(x)
            for node in nodes
            if node.op is not indexing.gather
            for x in self._inputs(node)
        )
        cost = sum(node.op.cost for node in nodes if node not in moved)
        return self._is_pure and bool(self.sinks) and is_known and cost <= _MAX_COST * len(moved)

    def _is_sink(self, node: Node) -> bool:
        if node.op.reads_shape:
            return True
        if node.op in _STORES:
            stored, positions = node.operands[:2], node.operands[2:]
            is_whole = positions == self.nonzero.results and self._is_whole(stored[0])
            return is_whole and stored[0] not in self._elements
        return (
            node.op.identity is not None
            and node.op is not shaping.sum_to
            and not node.attrs["keepdims"]
        )

    def _gives_elements(self, node: Node) -> bool:
        if node.op is indexing.gather:
            return node.operands[1:] == self.nonzero.results and self._is_whole(node.operands[0])
        computes = self._computes(node) or (is_elementwise(node) and _is_complex(node))
        return computes and not node.op.may_fail(node)

    def _is_whole(self, x: Value) -> bool:
        """Return whether an array has the shape of the mask."""
        return x.tensor.dims == self.nonzero.operands[0].tensor.dims

    @staticmethod
    def _inputs(node: Node) -> Sequence[Value]:
        """Return the operands that hold elements."""
        if node.op in _STORES:
            return node.operands[1:2]
        return () if node.op.reads_shape else node.operands

    def _is_known(self, x: Value) -> bool:
        """Return whether an operand is selected elements, or a number for each of them."""
        return x in self._elements or _number(x) is not None

    def replace(
        self, b: Build, node: Node, operands: Sequence[Value], new: dict[Value, Value]
    ) -> Sequence[Value]:
        """Emit what a node computes, on whole arrays, and return the results."""
        axes = tuple(range(len(self.mask.tensor.dims)))
        if node.op.reads_shape:
            count = b.reduce_sum(b.cast(self.mask, INT64), axes=axes)
            return (count if node.op is shaping.dim_of else b.reshape(count, (1,)),)
        if node.op is indexing.gather:
            return (operands[0],)

        def whole(old: Value, x: Value) -> Value:
            if old in new:
                return new[old]
            number = _number(x)
            assert number is not None
            return b.broadcast_like(number, self.mask)

        if node.op in _STORES:
            into = operands[0]
            stored = _STORES[node.op](b, into, whole(node.operands[1], operands[1]))
            return (_choose(b, self.mask, stored, into),)
        inputs = [whole(old, x) for old, x in zip(node.operands, operands, strict=True)]
        if node not in self.sinks:
            return (b.emit(node.op, *inputs, **node.attrs),)
        assert node.op.identity is not None
        x = _choose(b, self.mask, inputs[0], b.full_like(inputs[0], node.op.identity))
        return (b.emit(node.op, x, axes=axes, keepdims=False),)


def _choose(b: Build, mask: Value, x: Value, y: Value) -> Value:
    """Select elements, complex ones by their parts: nests have no choice between pairs."""
    if x.tensor.dtype.kind != "c":
        return b.select(mask, x, y)
    return b.complex(*(b.select(mask, part(x), part(y)) for part in (b.real, b.imag)))


def _is_complex(node: Node) -> bool:
    """Return whether loops of NumPy's compute a node: nests have real numbers."""
    return node.results[0].tensor.dtype.kind == "c"


def _number(x: Value) -> Value | None:
    """Return the number that an array repeats, if it is computed so."""
    node = x.node
    if node is None or node.op is not shaping.broadcast_to or node.operands[0].tensor.dims:
        return None
    return node.operands[0]
