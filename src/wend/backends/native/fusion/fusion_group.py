"""A nest under construction: the nodes that are to be done in one go."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from wend.backends.native.fusion.op_classes import (
    EXTREMES,
    MOST_AGAIN,
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
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_node
from wend.ir.types import Dim, Shape
from wend.ops import indexing, shaping

# A nest of more operations, or of more arrays, would ask too much of registers and caches.
_MOST_NODES, _MOST_ARRAYS = 96, 24
# Of so many elements it pays to call a function.
_LONG_ROW = 128

Axes = Sequence[int | None]  # for each axis of a value the one of the space; None: one element


@dataclass(eq=False, repr=False, slots=True)
class FusionGroup:
    """Nodes of one space.

    Attributes:
        iteration_space: the sizes that are gone over.
        outer_rank: how many axes the rows have that its reductions give; None: it has no such.
        members: its nodes, in order.
        made: what they give.
        row_values: what of that belongs to rows.
        reads: what it reads of arrays outside.
        memory_reductions: results of its other reductions, which accumulate in memory and are
            complete at the end.
        reduced_axes: the axes along which those go.
    """

    iteration_space: Shape
    outer_rank: int | None = None
    members: list[Node] = field(default_factory=list)
    made: set[Value] = field(default_factory=set)
    row_values: set[Value] = field(default_factory=set)
    reads: set[Value] = field(default_factory=set)
    memory_reductions: set[Value] = field(default_factory=set)
    reduced_axes: set[int] = field(default_factory=set)

    @property
    def has_cache_misses(self) -> bool:
        """Whether it looks up what may be far away."""
        return any(map(may_miss_cache, self.members))

    @property
    def is_compute_bound(self) -> bool:
        """Whether it computes for so long that it should not wait for anything."""
        return any(map(is_compute_bound, self.members))

    @property
    def is_plain(self) -> bool:
        """Whether it reduces nothing."""
        return self.outer_rank is None and not self.memory_reductions

    @property
    def is_full(self) -> bool:
        return len(self.members) >= _MOST_NODES or len(self.reads) >= _MOST_ARRAYS

    def fits(self, reduction: Reduction) -> bool:
        """Whether a reduction can be among its members."""
        outer_rank = reduction.outer_rank(len(self.iteration_space))
        if outer_rank is None:
            # The last axis is the one that goes fast, so it has to stay.
            inner = len(self.iteration_space) - 1 if self.outer_rank is None else self.outer_rank
            return max(reduction.axes) < inner
        if self.outer_rank is not None and outer_rank != self.outer_rank:
            return False
        return all(axis < outer_rank for axis in self.reduced_axes)

    def add(self, node: Node, reduction: Reduction | None = None, *, is_row: bool = False) -> None:
        """Add a node, whose operands are at hand or made here."""
        self.members.append(node)
        self.made.update(node.results)
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

    def takes_as_it_lies(self, value: Value, axes: Axes | None) -> bool:
        """Whether a value that is made here is read where it is made."""
        rank = len(self.iteration_space) if value not in self.row_values else (self.outer_rank or 0)
        if value in self.row_values and not self.outer_rank:
            return False  # there is one, at the end of all
        if axes is None or value in self.memory_reductions:
            return False
        dims = value.tensor.dims
        wanted = [k for k in range(rank) if self.iteration_space[k] != 1]
        found = [axis for axis, dim in zip(axes, dims, strict=True) if dim != 1]
        return found == wanted

    def computes_again(self, value: Value, makers: Mapping[Value, Node]) -> bool:
        """Whether a value that is made here is cheap enough to be computed a second time."""
        return sum(map(cost, self._needed([value], makers))) <= MOST_AGAIN

    def row_shapes(self) -> tuple[Shape, ...]:
        """The sizes of what belongs to rows: their axes, and perhaps one element of the others."""
        if not self.outer_rank:
            return ()
        dims = self.iteration_space[: self.outer_rank]
        return dims, (*dims, *(1 for _ in self.iteration_space[self.outer_rank :]))

    def close(
        self, now: Callable[[Value], Value], makers: Mapping[Value, Node], wanted: Iterable[Value]
    ) -> Node:
        """The node.

        Args:
            now: says what an outer value is in the new graph.
            makers: what gives the values that are nowhere yet, but can be made anywhere.
            wanted: what others need of what is made here.
        """
        body, results = _Body(now, makers), list(wanted)
        for node in self._needed(results, makers):
            body.copy(node)
        graph = Graph(
            "body",
            tuple(body.params),
            tuple(body.nodes),
            tuple(body.at[value] for value in results),
        )
        attrs = {"iteration_space": self.iteration_space, "outer_rank": self.outer_rank or 0}
        types = [value.type for value in results]
        made = Node(loop_nest, body.operands, attrs, [graph], types, self.members[0].source)
        for old, new in zip(results, made.results, strict=True):
            new.name = old.name
        return made

    def _needed(self, results: Iterable[Value], makers: Mapping[Value, Node]) -> list[Node]:
        """The members that results depend on: nobody may have taken what others give."""
        needed = set(results)
        found = []
        for node in reversed(self.members):
            if not needed.isdisjoint(node.results):
                found.append(node)
                for value in node.operands:
                    needed.update(source for source, _ in through(value, makers, None))
        return found[::-1]

    def is_of_memory(self, makers: Mapping[Value, Node]) -> bool:
        """Whether it is but a reduction or a copy of rows in memory: there are functions for it."""
        (first, *rest) = self.members
        if rest or first.operands[0] in makers:
            return False
        if first.op is indexing.gather:
            is_row = len(first.operands) <= len(first.operands[0].tensor.dims)
            return is_row and makers.keys().isdisjoint(first.operands)
        if first.results[0] not in self.row_values:
            return False
        if first.op in SUMS:
            return first.operands[0].tensor.dtype.kind == "f"
        # A call for each row costs more than a short row.
        sizes = [
            dim for dim in self.iteration_space[self.outer_rank or 0 :] if isinstance(dim, int)
        ]
        is_compute_bound = self.outer_rank == 0 or math.prod(sizes) >= _LONG_ROW
        return is_compute_bound and first.op in {*EXTREMES, *SEARCHES}


class _Body:
    """The body of a nest, as its nodes are copied."""

    def __init__(self, now: Callable[[Value], Value], makers: Mapping[Value, Node]) -> None:
        self._now, self._makers = now, makers
        self.params: list[Value] = []
        self.operands: list[Value] = []
        self.nodes: list[Node] = []
        self.at: dict[Value, Value] = {}

    def copy(self, node: Node) -> None:
        copy = copy_node(node, [self._operand(value) for value in node.operands])
        self.nodes.append(copy)
        self.at.update(zip(node.results, copy.results, strict=True))

    def _operand(self, value: Value) -> Value:
        if value not in self.at:
            if value in self._makers:
                self.copy(self._makers[value])
            else:
                param = Value(value.type, name=value.name)
                self.params.append(param)
                self.operands.append(self._now(value))
                self.at[value] = param
        return self.at[value]


def through(value: Value, makers: Mapping[Value, Node], axes: Axes | None) -> Iterator[Source]:
    """What a value is made of by operations that only move elements.

    Args:
        value: what is read.
        makers: what gives the values that can be made anywhere.
        axes: the axes of the space that its axes are; None where they are no more.
    """
    node = makers.get(value)
    if node is None:
        yield value, axes
        return
    if is_constant(node):
        return
    for position, operand in enumerate(node.operands):
        given = moved(node, axes) if position == 0 and is_layout(node) else None
        yield from through(operand, makers, given)


Source = tuple[Value, Axes | None]


def moved(node: Node, axes: Axes | None) -> Axes | None:
    """The axes of the operand where those of the result are given."""
    if axes is None or is_scalar(node.operands[0].type):
        return None
    value, result = node.operands[0].tensor.dims, node.results[0].tensor.dims
    match node.op:
        case shaping.broadcast_to:
            lead = len(result) - len(value)
            rest = zip(axes[lead:], value, result[lead:], strict=True)
            return [axis if mine == wanted else None for axis, mine, wanted in rest]
        case shaping.transpose:
            places = {axis: k for k, axis in enumerate(node.attrs["perm"])}
            return [axes[places[k]] for k in range(len(value))]
        case shaping.reshape:
            rest_of = iter([axis for axis, dim in zip(axes, result, strict=True) if dim != 1])
            return [None if dim == 1 else next(rest_of) for dim in value]
    return None


def identity(dims: Sequence[Dim]) -> Axes:
    """The axes of what has the sizes of the space."""
    return list(range(len(dims)))
