"""What loops keep of each trip: for a backward pass, or in lists of the program."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from wend.base.source import at
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import TensorType, Type, without_maybe
from wend.ops import lists
from wend.ops.control import WhileParts, while_

_SLOT = 8  # bytes: what a number takes in a record, and a list or an array beside its elements


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """A value that a loop keeps in every trip.

    Attributes:
        push: the node that keeps it.
        loop: the innermost loop around that.
    """

    push: Node
    loop: Node

    @property
    def value(self) -> Value:
        """What is kept, in the loop's `before` if that is where it comes from."""
        value, w = self.push.operands[1], WhileParts.of(self.loop)
        if value in w.after_forwarded:
            return w.forwarded[w.after_forwarded.index(value)]
        return value

    @property
    def name(self) -> str:
        """The user's variable where that is known, else the operation."""
        value = self.value
        if value.name is not None:
            return value.name
        return "a carry" if value.node is None else f"{value.node.op.name}{at(value.node.source)}"

    @property
    def size(self) -> str:
        """What it takes of a trip's record."""
        return _size(self.push.operands[1].type)

    def __str__(self) -> str:
        return f"{self.name} {self.push.operands[1].type}, {self.size} a trip"


def records(graph: Graph, loop: Node | None = None) -> Iterator[Record]:
    """Every record of the loops in a graph, in order."""
    for node in graph.nodes:
        if node.op is lists.list_push and loop is not None:
            yield Record(node, loop)
        for region in node.regions:
            yield from records(region, node if node.op is while_ else loop)


def _size(type: Type) -> str:
    kept = without_maybe(type)
    if not isinstance(kept, TensorType):
        return f"{2 * _SLOT} bytes and its records"
    if kept.shape == ():
        return f"{_SLOT} bytes"
    sizes = [dim for dim in kept.shape or () if isinstance(dim, int)]
    if kept.shape is None or len(sizes) < len(kept.shape):
        return f"{_SLOT} bytes and its elements"
    return f"{_SLOT + math.prod(sizes) * kept.dtype.itemsize} bytes"
