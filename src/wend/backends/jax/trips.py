"""Loops whose number of trips is known while lowering, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from wend.backends.jax.values import is_static
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ops import creating, elementwise, lists
from wend.ops.control import CallParts, IfParts, WhileParts, call, if_

_COMPARISONS = {
    elementwise.lt: "lt",
    elementwise.le: "le",
    elementwise.gt: "gt",
    elementwise.ge: "ge",
}
_SWAPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
# Operations that read a list and change no version of it
_READS = {lists.list_get, lists.list_len, lists.list_zeros, lists.list_add, lists.list_stack}


# What params of branches and callees stand for
Outer: TypeAlias = Mapping[Value, Value]
_NOTHING: Outer = MappingProxyType({})

# The most that an integer of the lowering can be; None if that is not known
MostOf: TypeAlias = Callable[[Any], int | None]


@dataclass(frozen=True, slots=True)
class Trips:
    """The facts about a loop that are known while lowering.

    Attributes:
        count: the number of trips; None if only the run knows.
        most: the most trips that it can make; None if there is no bound.
        finals: the values of counters after the loop, by the position of the result.
        most_finals: the most that these can be, where only the run knows them.
        pushes: how often a trip's `before` and its `after` push onto a list of the carry.
        most_pushes: how often they push at most onto a list that branches may push onto.
        push_nodes: how many nodes push onto such a list.
        pops: how often they pop from a list.
    """

    count: int | None = None
    most: int | None = None
    finals: Mapping[int, Any] = field(default_factory=dict)
    most_finals: Mapping[int, int] = field(default_factory=dict)
    pushes: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    most_pushes: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    push_nodes: Mapping[int, int] = field(default_factory=dict)
    pops: Mapping[int, tuple[int, int]] = field(default_factory=dict)

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


def find_trips(w: WhileParts, operands: Sequence[Any], most_of: MostOf) -> Trips:
    """Return what is known of a loop that counts by constants up or down to a known bound.

    Args:
        w: the loop.
        operands: its operands.
        most_of: returns the most that an integer can be, None if that is not known.
    """
    steps = {k: step for k in range(len(w.carry)) if (step := _step(w, k, operands)) is not None}
    pushes, pops = _list_paths(w, lists.list_push), _list_paths(w, lists.list_pop)
    pushing = {k: pair for k, pair in pushes.items() if any(path.nodes for path in pair)}
    changes = (
        {k: (a.most, b.most) for k, (a, b) in pushes.items() if a.is_exact and b.is_exact},
        {k: (a.most, b.most) for k, (a, b) in pushing.items()},
        {k: a.nodes + b.nodes for k, (a, b) in pushing.items()},
        {k: (a.most, b.most) for k, (a, b) in pops.items() if a.is_exact and b.is_exact},
    )
    count = _count(w.predicate, w, operands, steps)
    results = {k: w.forwarded.index(w.before_carry[k]) for k in steps}
    if count is None:
        most = _most(w, operands, most_of)
        most_finals = {
            results[k]: int(operands[k]) + max(step, 0) * most
            for k, step in steps.items()
            if most is not None
        }
        return Trips(None, most, {}, most_finals, *changes)
    finals = {
        results[k]: operands[k] + operands[k].dtype.type(count * step) for k, step in steps.items()
    }
    return Trips(count, count, finals, {}, *changes)


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


def _sum(
    value: Value, params: Sequence[Value], invariants: Sequence[Any], outer: Outer = _NOTHING
) -> tuple[Value, int]:
    """Return a value as another one plus a constant."""
    value, outer = _origin(value, outer)
    node = value.node
    if node is not None and node.op in (elementwise.add, elementwise.sub):
        left, right = (_origin(operand, outer)[0] for operand in node.operands)
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
        (w.before_invariants, _carry(w)),
        (w.after_invariants, _forwarded_carry(w)),
    ):
        start, offset = _sum(index, params, invariants)
        if list in params and start in carry:
            counter = carry[start]
            addend = _addend(w, counter, invariants)
            if addend is not None and addend < 0:
                return Countdown(params.index(list), counter, offset, -addend)
    return None


def _carry(w: WhileParts) -> Mapping[Value, int]:
    """Return the positions in the carry of what `before` takes."""
    return dict(zip(w.before_carry, range(len(w.carry)), strict=True))


def _forwarded_carry(w: WhileParts) -> Mapping[Value, int]:
    """Return the positions in the carry of what `after` takes as it is."""
    return {
        param: w.before_carry.index(value)
        for param, value in zip(w.after_forwarded, w.forwarded, strict=True)
        if value in w.before_carry
    }


@dataclass(frozen=True, slots=True)
class _Test:
    """A comparison that holds before each trip, but perhaps the first.

    Attributes:
        comparison: its name.
        left, right: what it compares.
        outer: what params of branches and callees stand for.
        is_after: `after` computes it, for the trip that follows.
    """

    comparison: str
    left: Value
    right: Value
    outer: Outer
    is_after: bool


def _most(w: WhileParts, operands: Sequence[Any], most_of: MostOf) -> int | None:
    """Return how many trips a loop makes at most, if one of its tests counts them."""
    counts = [_most_by(test, w, operands, most_of) for test in _tests(w)]
    return min((count for count in counts if count is not None), default=None)


def _tests(w: WhileParts) -> Iterator[_Test]:
    """Return the comparisons that all hold where a loop makes a trip."""
    predicate, is_after = w.predicate, False
    if predicate in w.before_carry:  # what the trip before has computed
        predicate, is_after = w.next_carry[w.before_carry.index(predicate)], True
    pending: list[tuple[Value, Outer]] = [(predicate, {})]
    while pending:
        value, outer = _origin(*pending.pop())
        node = value.node
        if node is None:
            continue
        if node.op is elementwise.bit_and:
            pending += [(operand, outer) for operand in node.operands]
        elif node.op is if_ and len(node.regions) == 2 and node.operands[0].tensor.dtype == bool:
            branches, k = IfParts.of(node).branches, node.results.index(value)
            if _is_false(branches[0].results[k]):  # `and`
                inside = dict(zip(branches[1].params, node.operands[1:], strict=True))
                pending += [(node.operands[0], outer)]
                pending += [(branches[1].results[k], {**outer, **inside})]
        elif node.op in _COMPARISONS:
            (left, right), name = node.operands, _COMPARISONS[node.op]
            yield _Test(name, left, right, outer, is_after)
            yield _Test(_SWAPPED[name], right, left, outer, is_after)


def _origin(value: Value, outer: Outer) -> tuple[Value, Outer]:
    """Return what a param of a branch or a callee stands for, and what a call computes."""
    while True:
        if value in outer:
            value = outer[value]
        elif value.node is not None and value.node.op is call:
            callee = CallParts.of(value.node).callee
            outer = {**outer, **dict(zip(callee.params, value.node.operands, strict=True))}
            value = callee.results[value.node.results.index(value)]
        else:
            return value, outer


def _is_false(value: Value) -> bool:
    node = value.node
    return node is not None and node.op is creating.constant and not node.attrs["value"].any()


def _most_by(test: _Test, w: WhileParts, operands: Sequence[Any], most_of: MostOf) -> int | None:
    """Return how many trips a loop makes at most by one of its tests."""
    invariants = operands[len(w.carry) :]
    params = w.after_invariants if test.is_after else w.before_invariants
    counters = _forwarded_carry(w) if test.is_after else _carry(w)
    left, offset = _sum(test.left, params, invariants, test.outer)
    right, _ = _origin(test.right, test.outer)
    bound = _constant(right, params, invariants)
    if bound is None and right in params and test.comparison in ("lt", "le"):
        bound = most_of(invariants[params.index(right)])
    if left not in counters or bound is None:
        return None
    start = operands[counters[left]]
    step = _addend(w, counters[left], invariants)
    if not step or (step > 0) != (test.comparison in ("lt", "le")):
        return None
    is_known = is_static(start) and np.ndim(start) == 0 and start.dtype.kind in "iu"
    first = int(start) if is_known else most_of(start) if step < 0 else None
    if first is None:
        return None
    stop = bound if test.comparison in ("lt", "gt") else bound + (1 if step > 0 else -1)
    return len(range(first + offset, stop, step)) + test.is_after


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


class _ListPath(NamedTuple):
    """How a list goes through a region in which one operation may change it.

    Attributes:
        most: how often it is changed at most.
        nodes: how many nodes change it, in branches too.
        result: the position of the result that it becomes.
        is_exact: whether each run changes it so often, and nothing else writes to it.
    """

    most: int
    nodes: int
    result: int
    is_exact: bool


def _list_paths(w: WhileParts, op: Op) -> Mapping[int, tuple[_ListPath, _ListPath]]:
    """Return how the lists of the carry go through `before` and `after`, by position."""
    paths = {}
    for k in range(len(w.carry)):
        first = _list_path(w.before, w.before_carry[k], op)
        if first is None or first.result == 0:
            continue
        second = _list_path(w.after, w.after_forwarded[first.result - 1], op)
        if second is not None and second.result == k:
            paths[k] = first, second
    return paths


def _list_path(region: Graph, value: Value, op: Op) -> _ListPath | None:
    """Return the path of a list through a region; None if others may change it."""
    most, nodes, is_exact = 0, 0, True
    while True:
        writers = [
            node for node in region.nodes if value in node.operands and node.op not in _READS
        ]
        positions = [k for k, result in enumerate(region.results) if result is value]
        if len(writers) + len(positions) != 1:
            return None
        if positions:
            return _ListPath(most, nodes, positions[0], is_exact)
        (node,) = writers
        if [*node.operands].count(value) != 1:
            return None
        if node.op is op and node.operands[0] is value:
            most, nodes, value = most + 1, nodes + 1, node.results[0]
        elif node.op is lists.list_set and node.operands[0] is value:
            is_exact, value = False, node.results[0]
        elif node.op is if_ and node.operands[0] is not value:
            k = [*node.operands].index(value) - 1
            paths = [_list_path(branch, branch.params[k], op) for branch in node.regions]
            known = [path for path in paths if path is not None]
            if len(known) < len(paths) or len({path.result for path in known}) != 1:
                return None
            most += max(path.most for path in known)
            nodes += sum(path.nodes for path in known)
            is_exact, value = False, node.results[known[0].result]
        else:
            return None
