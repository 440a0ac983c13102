"""Loops whose number of trips is known while lowering, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wend.backends.jax.values import is_static
from wend.ir.graph import Graph, Node, Value
from wend.ops import creating, elementwise, lists
from wend.ops.control import WhileParts

_COMPARISONS = {
    elementwise.lt: "lt",
    elementwise.le: "le",
    elementwise.gt: "gt",
    elementwise.ge: "ge",
}
_SWAPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
# Operations that read a list and change no version of it
_READS = {lists.list_get, lists.list_len, lists.list_zeros, lists.list_add, lists.list_stack}


@dataclass(frozen=True, slots=True)
class Trips:
    """The facts about a loop that are known while lowering.

    Attributes:
        count: the number of trips; None if only the run knows.
        most: the most trips that it can make; None if there is no bound.
        finals: the values of counters after the loop, by the position of the result.
        pushes: how often a trip's `before` and its `after` push onto a list of the carry.
    """

    count: int | None = None
    most: int | None = None
    finals: Mapping[int, Any] = field(default_factory=dict)
    pushes: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def has_bound(self) -> bool:
        """Whether the loop ends whatever it computes."""
        return self.count is not None or self.most is not None


@dataclass(frozen=True, slots=True)
class Countdown:
    """How a loop reads a list from outside: at positions that it counts down.

    Attributes:
        list: the position of the list among the invariants.
        counter: the position of the counter in the carry.
        offset: what is added to the counter.
        step: what a trip takes away from it.
    """

    list: int
    counter: int
    offset: int
    step: int


def find_trips(w: WhileParts, operands: Sequence[Any]) -> Trips:
    """Return what is known of a loop that counts by constants up or down to a known bound."""
    steps = {k: step for k in range(len(w.carry)) if (step := _step(w, k, operands)) is not None}
    pushes = {k: counts for k in range(len(w.carry)) if (counts := _pushes(w, k)) is not None}
    count = _count(w.predicate, w, operands, steps)
    if count is None:
        return Trips(most=_most(w, operands, steps), pushes=pushes)
    finals = {
        w.forwarded.index(w.before_carry[k]): operands[k] + operands[k].dtype.type(count * step)
        for k, step in steps.items()
    }
    return Trips(count, count, finals, pushes)


def _constant(value: Value, params: Sequence[Value], invariants: Sequence[Any]) -> int | None:
    """Return the integer that a value of a region is, if it is known."""
    known: Any = None
    if value.node is not None and value.node.op is creating.constant:
        known = value.node.attrs["value"][()]
    elif value in params:
        known = invariants[params.index(value)]
    is_integer = is_static(known) and np.ndim(known) == 0 and known.dtype.kind in "iu"
    return int(known) if is_integer else None


def _step(w: WhileParts, k: int, operands: Sequence[Any]) -> int | None:
    """Return what a trip adds to an integer of the carry that starts from a known number."""
    start = operands[k]
    if not (is_static(start) and np.ndim(start) == 0 and start.dtype.kind in "iu"):
        return None
    return _addend(w, k, operands[len(w.carry) :])


def _addend(w: WhileParts, k: int, invariants: Sequence[Any]) -> int | None:
    """Return the constant that a trip adds to a value of the carry, if it adds one."""
    if w.before_carry[k] not in w.forwarded:
        return None
    param, following = w.after_forwarded[w.forwarded.index(w.before_carry[k])], w.next_carry[k]
    if following is param:
        return 0
    start, addend = _sum(following, w.after_invariants, invariants)
    return addend if start is param else None


def _sum(value: Value, params: Sequence[Value], invariants: Sequence[Any]) -> tuple[Value, int]:
    """Return a value as another one plus a constant."""
    node = value.node
    if node is not None and node.op in (elementwise.add, elementwise.sub):
        left, right = node.operands
        addend = _constant(right, params, invariants)
        if addend is not None:
            return left, -addend if node.op is elementwise.sub else addend
        addend = _constant(left, params, invariants)
        if addend is not None and node.op is elementwise.add:
            return right, addend
    return value, 0


def find_countdown(w: WhileParts, get: Node, invariants: Sequence[Any]) -> Countdown | None:
    """Return how a loop counts the positions down at which it reads a list from outside."""
    list, index = get.operands
    for params, carry in (
        (w.before_invariants, dict(zip(w.before_carry, range(len(w.carry)), strict=True))),
        (w.after_invariants, _forwarded_carry(w)),
    ):
        start, offset = _sum(index, params, invariants)
        if list in params and start in carry:
            counter = carry[start]
            addend = _addend(w, counter, invariants)
            if addend is not None and addend < 0:
                return Countdown(params.index(list), counter, offset, -addend)
    return None


def _forwarded_carry(w: WhileParts) -> Mapping[Value, int]:
    """Return the positions in the carry of what `after` takes as it is."""
    return {
        param: w.before_carry.index(value)
        for param, value in zip(w.after_forwarded, w.forwarded, strict=True)
        if value in w.before_carry
    }


def _most(w: WhileParts, operands: Sequence[Any], steps: Mapping[int, int]) -> int | None:
    """Return how many trips a loop makes at most, if one of its tests counts them."""
    pending, counts = [w.predicate], []
    while pending:
        value = pending.pop()
        if value.node is not None and value.node.op is elementwise.bit_and:
            pending += value.node.operands
        elif (count := _count(value, w, operands, steps)) is not None:
            counts.append(count)
    return min(counts, default=None)


def _count(
    test: Value, w: WhileParts, operands: Sequence[Any], steps: Mapping[int, int]
) -> int | None:
    """Return the number of trips for which a test holds."""
    node = test.node
    if node is None or node.op not in _COMPARISONS:
        return None
    comparison, (left, right) = _COMPARISONS[node.op], node.operands
    if left not in w.before_carry:
        comparison, left, right = _SWAPPED[comparison], right, left
    bound = _constant(right, w.before_invariants, operands[len(w.carry) :])
    if left not in w.before_carry or bound is None:
        return None
    k = w.before_carry.index(left)
    if not steps.get(k):
        return None
    start, step = int(operands[k]), steps[k]
    if (step > 0) != (comparison in ("lt", "le")):
        return None
    stop = bound if comparison in ("lt", "gt") else bound + (1 if step > 0 else -1)
    return len(range(start, stop, step))


def _pushes(w: WhileParts, k: int) -> tuple[int, int] | None:
    """Count the pushes of a trip onto a list that is not changed otherwise."""
    first = _follow(w.before, w.before_carry[k])
    if first is None or first[1] == 0:
        return None
    second = _follow(w.after, w.after_forwarded[first[1] - 1])
    return (first[0], second[0]) if second is not None and second[1] == k else None


def _follow(region: Graph, value: Value) -> tuple[int, int] | None:
    """Return how often a list is pushed onto, and the result that it becomes."""
    pushes = 0
    while True:
        writers: list[Node] = [
            node for node in region.nodes if value in node.operands and node.op not in _READS
        ]
        positions = [k for k, result in enumerate(region.results) if result is value]
        if len(writers) + len(positions) != 1:
            return None
        if positions:
            return pushes, positions[0]
        (node,) = writers
        if node.op is not lists.list_push or node.operands[1] is value:
            return None
        pushes, value = pushes + 1, node.results[0]
