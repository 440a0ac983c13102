"""The order of effects, and of what may fail beside them, which no value expresses (D16)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from wend.ir.graph import Node
from wend.ir.op import Effect
from wend.ops.frame_states import frame_state, may_fail

T = TypeVar("T")


def is_barrier(node: Node) -> bool:
    """Return whether what may fail must not pass a node: its effect would be seen, or not.

    A frame state is one: it tells how things stand for what may fail after it.
    """
    if node.op.effect in (Effect.WORLD, Effect.STATE) or node.op is frame_state:
        return True
    return any(is_barrier(inner) for region in node.regions for inner in region.nodes)


def must_run_in_order(loop: Node) -> bool:
    """Return whether trips of a loop must not overlap, as no token orders their effects."""
    inner = [node for region in loop.regions for node in region.walk()]
    barriers = [node for node in inner if is_barrier(node) and not node.regions]
    if all(node.op.effect is Effect.WORLD for node in barriers):
        return bool(barriers) and any(
            node.op.may_fail(node) and not node.op.takes_token for node in inner
        )
    others = [node for node in inner if node.op.may_fail(node) or node.op.effect is Effect.WORLD]
    return bool(others)


class Order(Generic[T]):
    """The order in one graph or region, followed node by node.

    Its members are nodes, or what completes with them.
    """

    def __init__(self) -> None:
        self._barrier: Sequence[T] = ()
        self._failing: list[T] = []

    @property
    def last(self) -> Sequence[T]:
        """The members that complete when everything so far has."""
        return (*self._barrier, *self._failing)

    def waits(self, node: Node) -> Sequence[T]:
        """Return the members that must complete before a node."""
        if is_barrier(node):
            return self.last
        return self._barrier if may_fail(node) else ()

    def add(self, node: Node, completed: Iterable[T]) -> None:
        """Add a node, with the members that complete when it does."""
        if is_barrier(node):
            self._barrier, self._failing = tuple(completed), []
        elif may_fail(node):
            self._failing += completed
