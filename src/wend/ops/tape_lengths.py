"""The lengths of tapes: a list that a loop pushes to once a trip is as long as its trip count.

A loop that pushes before its test pushes once more.
"""

from __future__ import annotations

from wend.ir.graph import Node, Value
from wend.ops import lists
from wend.ops.control import WhileParts, while_
from wend.ops.loop_counters import as_integer, counters, trip_count


def known_length(items: Value) -> int | None:
    """Return the length of a list if a loop with a known trip count makes it."""
    pushes = _pushes_after_trips(items)
    if pushes is None or items.node is None:
        return None
    trips = trip_count(WhileParts.of(items.node))
    return trips + pushes if isinstance(trips, int) else None


def excess_length(items: Value, trips: Value) -> int | None:
    """Return how much longer a list is than the trips of the loop that makes it, 0 or 1.

    None if no loop makes it, or `trips` is not the trip count of that loop.
    """
    if items.node is None or trips.node is not items.node:
        return None
    pushes = _pushes_after_trips(items)
    if pushes is None:
        return None
    w = WhileParts.of(items.node)
    counter = counters(w).get(w.forwarded[trips.index])
    if counter is None or as_integer(counter.start) != 0:
        return None
    return pushes if counter.known_step(w) == 1 else None


def pushed_once(items: Value) -> Value | None:
    """Return what each trip of the loop that makes a list pushes; None if that is not one value."""
    if items.node is None or _pushes_after_trips(items) is None:
        return None
    w = WhileParts.of(items.node)
    tested = w.forwarded[items.index]
    pushed = tested if tested.node is not None else w.next_carry[w.before_carry.index(tested)]
    return None if pushed.node is None else pushed.node.operands[1]


def _pushes_after_trips(items: Value) -> int | None:
    """Return how often the loop that makes a list pushes after its last trip, 0 or 1.

    None if no loop makes it, from an empty list and by one push a trip.
    """
    if items.node is None or items.node.op is not while_:
        return None
    w = WhileParts.of(items.node)
    tested, handed_on = w.forwarded[items.index], w.after_forwarded[items.index]
    is_pushed_before = tested.node is not None
    param = _pushed_to(tested) if is_pushed_before else tested
    if param not in w.before_carry:
        return None
    k = w.before_carry.index(param)
    param_of_after = w.next_carry[k] if is_pushed_before else _pushed_to(w.next_carry[k])
    start = w.carry[k].node
    is_empty = start is not None and start.op is lists.list_new
    return int(is_pushed_before) if is_empty and param_of_after is handed_on else None


def _pushed_to(items: Value) -> Value | None:
    """Return the list that another is with one push."""
    node: Node | None = items.node
    return node.operands[0] if node is not None and node.op is lists.list_push else None
