"""Refuses policies that would copy a carry, which a loop changes in place, for every record.

`y[i] = f(y[i - 1])` changes one element a trip, and `"keep"` records that one. A record of the
whole carry is a copy, as the next trip overwrites it: n² bytes for n trips.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.autodiff.residuals import estimated_bytes
from wend.base.errors import NotDifferentiableError, explain
from wend.base.memory import shown
from wend.base.refusals import refusal
from wend.base.source import at, places
from wend.ir.graph import Node
from wend.ir.types import ListType, TensorType, Type
from wend.ops import lists
from wend.ops.control import WhileParts, while_

_LONG_LOOP = 1e6  # trips


def updates_of_carries(node: Node) -> list[Node]:
    """Return the nodes by which a trip changes arrays among the carries of a loop in place."""
    w = WhileParts.of(node)
    updates = []
    for value in w.next_carry:
        source, update = value, value.node
        while source.node is not None and (k := source.node.op.updates) is not None:
            update = source.node
            source = update.operands[k]
        is_array = isinstance(source.type, TensorType) and source.type.shape != ()
        if source is not value and source in w.after_forwarded and is_array and update is not None:
            updates.append(update)
    return updates


def check_copies(
    node: Node, trips: int, segments: Sequence[Node], trip_by_trip: Sequence[Node]
) -> None:
    """Compare what a policy records of a loop with what `"keep"` does.

    Args:
        node: the loop, which changes carries in place.
        trips: the trips of a segment.
        segments: the nodes that replace it by the policy.
        trip_by_trip: those that replace it by `"keep"`.

    Raises:
        NotDifferentiableError: the policy keeps more.
    """
    w = WhileParts.of(node)
    (mined,) = (
        loop for n in segments for loop in _loops(n) if WhileParts.of(loop).applied == w.memory
    )
    by_policy, by_keep = _bytes_a_trip(mined), _bytes_a_trip(trip_by_trip[-1])
    if by_policy / trips > by_keep:
        times = "a trip" if trips == 1 else f"every {trips} trips"
        raise _too_large(node, f"{by_policy:,.0f} bytes {times}", by_keep)


def check_thinned(node: Node, scheduled: Node, trip_by_trip: Sequence[Node]) -> None:
    """Compare what `"thin"` keeps of a loop, √(2 T) states for T trips, with what `"keep"` does.

    Args:
        node: the loop, which changes carries in place.
        scheduled: the node that replaces it by `"thin"`; among its results are the lists of states.
        trip_by_trip: those that replace it by `"keep"`.

    Raises:
        NotDifferentiableError: `"thin"` keeps less only in very long loops.
    """
    types = [result.type for result in scheduled.results[len(node.results) :]]
    state = sum(estimated_bytes(type.element) for type in types if isinstance(type, ListType))
    by_keep = _bytes_a_trip(trip_by_trip[-1])
    if 2.0 * (state / max(by_keep, 1.0)) ** 2 > _LONG_LOOP:
        raise _too_large(node, f"{state:,.0f} bytes in each of √(2 T) slots", by_keep)


def _too_large(node: Node, by_policy: str, by_keep: float) -> Exception:
    lines = [update.source for update in updates_of_carries(node) if update.source is not None]
    memory = shown(WhileParts.of(node).memory)
    return refusal(
        NotDifferentiableError(
            explain(
                f"the loop{at(node.source)} has memory={memory}, which would keep {by_policy}; "
                f'with "keep" it is {by_keep:,.0f} bytes a trip.',
                f"it changes an array in place{places(lines)}, so each record of that is a copy",
                cure='use memory="keep" or wend.Checkpoints(slots).',
            )
        )
    )


def _bytes_a_trip(loop: Node) -> float:
    """Return about how many bytes the regions of a loop record in a trip."""
    return sum(map(estimated_bytes, pushed_types(loop)))


def pushed_types(loop: Node) -> list[Type]:
    """Return the types of what the regions of a loop record in a trip."""
    nodes = [node for region in loop.regions for node in region.nodes]
    return [node.operands[1].type for node in nodes if node.op is lists.list_push]


def _loops(node: Node) -> list[Node]:
    """Return a loop, or those directly in a call."""
    inner = [n for region in node.regions for n in region.nodes if n.op is while_]
    return [node] if node.op is while_ else inner
