"""Fusion groups: loop nests under construction."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field

from wend.backends.native.fusion.op_classes import (
    EXTREMES,
    MAX_RECOMPUTE_COST,
    SEARCHES,
    SUMS,
    Reduction,
    cost,
    is_compute_bound,
    is_constant,
    is_layout,
    may_miss_cache,
)
from wend.backends.native.target.loop_nest import loop_nest
from wend.backends.native.target.value_layout import is_scalar
from wend.base.lazy.dataclass import dataclass
from wend.ir.dtypes import BOOL
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_node, keep_names
from wend.ir.types import Dim, Shape
from wend.ops import elementwise, indexing, shaping

# More operations or arrays in one nest would exceed the registers and caches.
_MAX_NODES, _MAX_ARRAYS = 96, 24
# Nodes that read hardly anything else add to neither: they follow each other in a nest.
_MAX_JOINED, _MAX_OTHERS = 384, 8
# Those that choose and compare, and the parts of complex numbers, count a quarter: a formula that
# treats some numbers apart has many, which LLVM merges.
_LIGHT_OPS = {elementwise.select, elementwise.real, elementwise.imag, elementwise.complex}
_LIGHT, _FULL = 1, 4
# A row of at least this many elements amortizes a function call.
_MIN_CALL_ELEMENTS = 128

# For each axis of a value, the axis of the iteration space; None for an axis of size one
Axes = Sequence[int | None]


@dataclass(eq=False, repr=False, slots=True)
class FusionGroup:
    """Nodes over one iteration space.

    Attributes:
        iteration_space: the sizes of the loops.
        outer_rank: the number of axes of the rows that its reductions yield; None without those.
        members: its nodes, in order.
        defined: the results of its nodes.
        row_values: the results that belong to rows.
        reads: the outer arrays that it reads.
        memory_reductions: the results of its other reductions, which accumulate in memory and are
            complete at the end.
        reduced_axes: the axes of those reductions.
        weight: how much its nodes count towards the limits.
    """

    iteration_space: Shape
    outer_rank: int | None = None
    members: list[Node] = field(default_factory=list)
    defined: set[Value] = field(default_factory=set)
    row_values: set[Value] = field(default_factory=set)
    reads: set[Value] = field(default_factory=set)
    memory_reductions: set[Value] = field(default_factory=set)
    reduced_axes: set[int] = field(default_factory=set)
    weight: int = 0

    @property
    def has_cache_misses(self) -> bool:
        """Whether a member looks up elements that may miss the cache."""
        return any(map(may_miss_cache, self.members))

    @property
    def is_compute_bound(self) -> bool:
        """Whether a member computes so long that it must not wait for memory."""
        return any(map(is_compute_bound, self.members))

    @property
    def is_elementwise(self) -> bool:
        """Whether there are no reductions."""
        return self.outer_rank is None and not self.memory_reductions

    @property
    def is_full(self) -> bool:
        """Whether it takes no more nodes, but for those that read what it has."""
        return self.weight >= _FULL * _MAX_NODES or len(self.reads) >= _MAX_ARRAYS

    def is_overfull(self, reads: Set[Value]) -> bool:
        """Whether it takes no node either that reads what it has, and some arrays."""
        arrays = len(self.reads | reads)
        return self.weight >= _FULL * _MAX_JOINED or arrays >= _MAX_ARRAYS + _MAX_OTHERS

    def fits(self, reduction: Reduction) -> bool:
        """Return whether a reduction can be a member."""
        outer_rank = reduction.outer_rank(len(self.iteration_space))
        if outer_rank is None:
            # The last axis is the innermost loop, so it cannot be reduced.
            inner = len(self.iteration_space) - 1 if self.outer_rank is None else self.outer_rank
            return max(reduction.axes) < inner
        if self.outer_rank is not None and outer_rank != self.outer_rank:
            return False
        return all(axis < outer_rank for axis in self.reduced_axes)

    def add(self, node: Node, reduction: Reduction | None = None, *, is_row: bool = False) -> None:
        """Add a node whose operands are available or defined here."""
        self.members.append(node)
        is_light = node.op in _LIGHT_OPS or node.results[0].tensor.dtype == BOOL
        self.weight += _LIGHT if is_light else _FULL
        self.defined.update(node.results)
        if reduction is not None:
            outer_rank = reduction.outer_rank(len(self.iteration_space))
            if outer_rank is None:
                self.reduced_axes.update(reduction.axes)
                self.memory_reductions.update(node.results)
            else:
                self.outer_rank = outer_rank
                is_row = True
        if is_row:
            self.row_values.update(node.results)

    def reads_elementwise(self, value: Value, axes: Axes | None) -> bool:
        """Return whether a value defined here is read at the position where it is computed."""
        rank = len(self.iteration_space) if value not in self.row_values else (self.outer_rank or 0)
        if value in self.row_values and not self.outer_rank:
            return False  # a single number, known only after all loops
        if axes is None or value in self.memory_reductions:
            return False
        dims = value.tensor.dims
        space_axes = [k for k in range(rank) if self.iteration_space[k] != 1]
        value_axes = [axis for axis, dim in zip(axes, dims, strict=True) if dim != 1]
        return value_axes == space_axes

    def can_recompute(self, value: Value, layout_nodes: Mapping[Value, Node]) -> bool:
        """Return whether a value defined here is cheap enough to be computed twice."""
        return sum(map(cost, self._live_members([value], layout_nodes))) <= MAX_RECOMPUTE_COST

    def row_shapes(self) -> tuple[Shape, ...]:
        """Return the shapes of row values: with and without the reduced axes of size one."""
        if not self.outer_rank:
            return ()
        dims = self.iteration_space[: self.outer_rank]
        return dims, (*dims, *(1 for _ in self.iteration_space[self.outer_rank :]))

    def close(
        self,
        new_value: Callable[[Value], Value],
        layout_nodes: Mapping[Value, Node],
        live_results: Iterable[Value],
    ) -> Node:
        """Build the `loop_nest` node.

        Args:
            new_value: maps an outer value to the new graph.
            layout_nodes: the producers of values that are not placed but can be recomputed
                anywhere.
            live_results: the values defined here that are used outside.
        """
        body, results = _BodyBuilder(new_value, layout_nodes), list(live_results)
        for node in self._live_members(results, layout_nodes):
            body.copy(node)
        graph = Graph(
            "body",
            tuple(body.params),
            tuple(body.nodes),
            tuple(body.copies[value] for value in results),
        )
        attrs = {"iteration_space": self.iteration_space, "outer_rank": self.outer_rank or 0}
        types = [value.type for value in results]
        nest = Node(loop_nest, body.operands, attrs, [graph], types, self.members[0].source)
        keep_names(results, nest.results)
        return nest

    def _live_members(
        self, results: Iterable[Value], layout_nodes: Mapping[Value, Node]
    ) -> list[Node]:
        """Return the members that results depend on; others may have become dead."""
        needed = set(results)
        live_nodes = []
        for node in reversed(self.members):
            if not needed.isdisjoint(node.results):
                live_nodes.append(node)
                for value in node.operands:
                    needed.update(source for source, _ in layout_sources(value, layout_nodes, None))
        return live_nodes[::-1]

    def has_runtime_kernel(self, layout_nodes: Mapping[Value, Node]) -> bool:
        """Return whether the group is one reduction or copy of rows that runtime functions do."""
        (first, *others) = self.members
        if others or first.operands[0] in layout_nodes:
            return False
        if first.op is indexing.gather:
            is_row_copy = len(first.operands) <= len(first.operands[0].tensor.dims)
            return is_row_copy and layout_nodes.keys().isdisjoint(first.operands)
        if first.results[0] not in self.row_values:
            return False
        if first.op in SUMS:
            return first.operands[0].tensor.dtype.kind == "f"
        # A call per row costs more than a short row itself.
        row_dims = [
            dim for dim in self.iteration_space[self.outer_rank or 0 :] if isinstance(dim, int)
        ]
        is_call_amortized = self.outer_rank == 0 or math.prod(row_dims) >= _MIN_CALL_ELEMENTS
        return is_call_amortized and first.op in {*EXTREMES, *SEARCHES}


class _BodyBuilder:
    """The body of a nest under construction."""

    def __init__(
        self, new_value: Callable[[Value], Value], layout_nodes: Mapping[Value, Node]
    ) -> None:
        self._new_value, self._layout_nodes = new_value, layout_nodes
        self.params: list[Value] = []
        self.operands: list[Value] = []
        self.nodes: list[Node] = []
        self.copies: dict[Value, Value] = {}

    def copy(self, node: Node) -> None:
        copy = copy_node(node, [self._operand(value) for value in node.operands])
        self.nodes.append(copy)
        self.copies.update(zip(node.results, copy.results, strict=True))

    def _operand(self, value: Value) -> Value:
        if value not in self.copies:
            if value in self._layout_nodes:
                self.copy(self._layout_nodes[value])
            else:
                param = Value(value.type, name=value.name)
                self.params.append(param)
                self.operands.append(self._new_value(value))
                self.copies[value] = param
        return self.copies[value]


def layout_sources(
    value: Value, layout_nodes: Mapping[Value, Node], axes: Axes | None
) -> Iterator[AxesOfValue]:
    """Yield the values that a value is read from, looking through layout operations.

    Args:
        value: the value that is read.
        layout_nodes: the producers of values that can be recomputed anywhere.
        axes: the axes of the iteration space that its axes are, or None if they are unknown.
    """
    node = layout_nodes.get(value)
    if node is None:
        yield value, axes
        return
    if is_constant(node):
        return
    for position, operand in enumerate(node.operands):
        axes_of_operand = operand_axes(node, axes) if position == 0 and is_layout(node) else None
        yield from layout_sources(operand, layout_nodes, axes_of_operand)


AxesOfValue = tuple[Value, Axes | None]


def operand_axes(node: Node, axes: Axes | None) -> Axes | None:
    """Return the axes of the operand of a layout operation, given those of its result."""
    if axes is None or is_scalar(node.operands[0].type):
        return None
    operand_dims, result_dims = node.operands[0].tensor.dims, node.results[0].tensor.dims
    match node.op:
        case shaping.broadcast_to:
            num_leading = len(result_dims) - len(operand_dims)
            triples = zip(axes[num_leading:], operand_dims, result_dims[num_leading:], strict=True)
            return [
                axis if operand_dim == result_dim else None
                for axis, operand_dim, result_dim in triples
            ]
        case shaping.transpose:
            positions = {axis: k for k, axis in enumerate(node.attrs["perm"])}
            return [axes[positions[k]] for k in range(len(operand_dims))]
        case shaping.reshape:
            non_unit_axes = iter(
                [axis for axis, dim in zip(axes, result_dims, strict=True) if dim != 1]
            )
            return [None if dim == 1 else next(non_unit_axes) for dim in operand_dims]
    return None


def identity_axes(dims: Sequence[Dim]) -> Axes:
    """Return the axes of a value that has the sizes of the iteration space."""
    return list(range(len(dims)))
