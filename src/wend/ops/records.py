"""The records of loops: values kept in each trip, for a backward pass or in the user's lists."""

from __future__ import annotations

from collections.abc import Iterator

from wend.base.lazy.dataclass import dataclass
from wend.base.source import at
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import TensorType, without_maybe
from wend.ops import lists
from wend.ops.control import AGAIN, WhileParts, while_

_SLOT_BYTES = 8  # a scalar in a record, and each header word of a list or an array


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """A value that a loop keeps in every trip.

    Attributes:
        push: the node that keeps it.
        loop: the innermost loop around that node.
        is_transient: whether it is kept only while a backward pass runs the loop again.
    """

    push: Node
    loop: Node
    is_transient: bool = False

    @property
    def value(self) -> Value:
        """The value kept, in the loop's `before` if that forwards it."""
        value, w = self.push.operands[1], WhileParts.of(self.loop)
        if value in w.after_forwarded:
            return w.forwarded[w.after_forwarded.index(value)]
        return value

    @property
    def name(self) -> str:
        """The user's variable if it is known, else the operation."""
        value = self.value
        if value.name is not None:
            return value.name
        return "a carry" if value.node is None else f"{value.node.op.name}{at(value.node.source)}"

    @property
    def min_bytes(self) -> int:
        """A lower bound of its bytes per trip: its static part."""
        type = without_maybe(self.push.operands[1].type)
        if not isinstance(type, TensorType):
            return 2 * _SLOT_BYTES
        return _SLOT_BYTES if type.shape == () else _SLOT_BYTES + (type.nbytes or 0)

    @property
    def variable_part(self) -> str:
        """The part of its size that only the run knows, in a word; empty if there is none."""
        type = without_maybe(self.push.operands[1].type)
        if not isinstance(type, TensorType):
            return "records"
        return "elements" if type.nbytes is None else ""

    @property
    def size(self) -> str:
        """Its size, in words."""
        return f"{self.min_bytes:,} bytes" + (
            f" and its {self.variable_part}" if self.variable_part else ""
        )

    def __str__(self) -> str:
        return f"{self.name} {self.push.operands[1].type}"


def records(
    graph: Graph, loop: Node | None = None, *, is_transient: bool = False
) -> Iterator[Record]:
    """Yield every record of the loops in a graph, in order."""
    for node in graph.nodes:
        if node.op is lists.list_push and loop is not None:
            yield Record(node, loop, is_transient)
        for region in node.regions:
            is_again = node.attrs.get("applied") == AGAIN or bool(node.attrs.get("recompute"))
            inner = node if node.op is while_ else loop
            yield from records(region, inner, is_transient=is_transient or is_again)
