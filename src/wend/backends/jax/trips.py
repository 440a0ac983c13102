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
        finals: the values of counters after the loop, by the position of the result.
        pushes: how often a trip's `before` and its `after` push onto a list of the carry.
    """

    count: int | None = None
    finals: Mapping[int, Any] = field(default_factory=dict)
    pushes: Mapping[int, tuple[int, int]] = field(default_factory=dict)


def find_trips(w: WhileParts, operands: Sequence[Any]) -> Trips:
    """Return what is known of a loop that counts by constants up or down to a known bound."""
    steps = {k: step for k in range(len(w.carry)) if (step := _step(w, k, operands)) is not None}
    pushes = {k: counts for k in range(len(w.carry)) if (counts := _pushes(w, k)) is not None}
    count = _count(w, operands, steps)
    if count is None:
        return Trips(pushes=pushes)
    finals = {
        w.forwarded.index(w.before_carry[k]): operands[k] + operands[k].dtype.type(count * step)
        for k, step in steps.items()
    }
    return Trips(count, finals, pushes)


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
    if w.before_carry[k] not in w.forwarded:
        return None
    param, following = w.after_forwarded[w.forwarded.index(w.before_carry[k])], w.next_carry[k]
    if following is param:
        return 0
    node, invariants = following.node, operands[len(w.carry) :]
    if node is None or node.op not in (elementwise.add, elementwise.sub):
        return None
    if node.operands[0] is param:
        addend = _constant(node.operands[1], w.after_invariants, invariants)
    elif node.operands[1] is param and node.op is elementwise.add:
        addend = _constant(node.operands[0], w.after_invariants, invariants)
    else:
        return None
    if addend is None:
        return None
    return -addend if node.op is elementwise.sub else addend


def _count(w: WhileParts, operands: Sequence[Any], steps: Mapping[int, int]) -> int | None:
    node = w.predicate.node
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
