"""Carries that a loop changes in place: a policy copies them for few trips, or is refused.

`y[i] = f(y[i - 1])` changes one element a trip, and `"keep"` records that one. A record of the
whole carry is a copy, as the next trip overwrites it: n² bytes for n trips.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from wend.autodiff.changes_in_place import changed_carries, updated_carries, updates_of_carries
from wend.autodiff.residuals import estimated_bytes, estimated_size
from wend.base.errors import NotDifferentiableError, explain
from wend.base.memory import shown
from wend.base.refusals import refusal
from wend.base.source import at, places
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import Type
from wend.ops import lists
from wend.ops.control import WhileParts, while_
from wend.ops.loop_counters import trip_count


def copied_bytes(node: Node) -> float:
    """Return about how many bytes a copy of what a trip changes in place takes."""
    return sum(estimated_bytes(source.type) for source, _ in updated_carries(WhileParts.of(node)))


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
    by_policy, by_keep = bytes_a_trip(mined), bytes_a_trip(trip_by_trip[-1])
    if _records_changed(node, mined) and by_policy / trips > by_keep:
        times = "a trip" if trips == 1 else f"every {trips} trips"
        raise _too_large(node, f"{by_policy:,.0f} bytes {times}", by_keep)


def _records_changed(node: Node, mined: Node) -> bool:
    """Return whether the loop over segments records arrays that the original changes in place."""
    w = WhileParts.of(node)
    positions = [w.after_forwarded.index(value) for value in changed_carries(w)]
    w = WhileParts.of(mined)
    changed = {values[k] for values in (w.forwarded, w.after_forwarded) for k in positions}
    return any(push.operands[1] in changed for push in _pushes(mined))


def trips_of_copy(node: Node, state: Sequence[Value], keeping: Node) -> int:
    """Return for how many trips `"keep"` records half as much as copies of a state take.

    Args:
        node: the loop, which changes carries in place.
        state: what a copy would hold, of what `after` takes.
        keeping: the loop that records every trip.

    Returns:
        The number; 0 if nothing that is changed in place is in the state.
    """
    changed = [source for source, _ in updated_carries(WhileParts.of(node)) if source in state]
    copied = sum(estimated_bytes(source.type) for source in changed)
    return int(copied / (2.0 * max(bytes_a_trip(keeping), 1.0)))


def _too_large(node: Node, by_policy: str, by_keep: float) -> Exception:
    lines = [update.source for update in updates_of_carries(node) if update.source is not None]
    memory = shown(WhileParts.of(node).memory)
    return refusal(
        NotDifferentiableError(
            explain(
                f"the loop{at(node.source)} has memory={memory}, which would keep {by_policy}; "
                f'with "keep" it is {by_keep:,.0f} bytes a trip.',
                f"it changes an array in place{places(lines)}, so each record of that is a copy",
                cure='use memory="keep", "thin" or wend.Checkpoints(slots).',
            )
        )
    )


def bytes_a_trip(loop: Node) -> float:
    """Return about how many bytes a loop records in a trip; infinity if only the run knows."""
    return sum(map(_recorded_bytes, loop.regions))


def _recorded_bytes(graph: Graph) -> float:
    """Return about how many bytes a graph records, in inner loops as well."""
    size = 0.0
    for node in graph.nodes:
        if node.op is lists.list_push:
            size += estimated_bytes(node.operands[1].type)
        elif node.op is while_ and (by_trip := bytes_a_trip(node)):
            trips = trip_count(WhileParts.of(node))
            size += by_trip * (math.inf if trips is None else estimated_size(trips))
        elif node.op is not while_:
            size += max(map(_recorded_bytes, node.regions), default=0.0)
    return size


def pushed_types(loop: Node) -> list[Type]:
    """Return the types of what the regions of a loop record in a trip."""
    return [push.operands[1].type for push in _pushes(loop)]


def _pushes(loop: Node) -> list[Node]:
    nodes = [node for region in loop.regions for node in region.nodes]
    return [node for node in nodes if node.op is lists.list_push]


def _loops(node: Node) -> list[Node]:
    """Return a loop, or those directly in a call."""
    inner = [n for region in node.regions for n in region.nodes if n.op is while_]
    return [node] if node.op is while_ else inner
