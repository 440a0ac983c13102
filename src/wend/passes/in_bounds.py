"""Positions that are known to be in range, so that reading and writing there cannot fail.

The integers of a graph get intervals: from constants, from the starts and bounds of counted loops,
and by arithmetic (interval analysis). A read or write whose positions stay within its array is
marked `in_bounds`; a marked read may move, and run where its result is not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from wend.ir.dataflow import region_flow
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.rewrite import keep_names, rewrite_nodes, with_operands
from wend.ir.types import TensorType
from wend.ops import creating, elementwise, indexing
from wend.ops.control import WhileParts, while_
from wend.ops.loop_counters import MAX_TRIPS, as_integer, known_values, outer_value, tested_counter
from wend.ops.shapes import known_position
from wend.ops.updating import ELEMENT_POSITIONS

# The least and the greatest value of an integer
Interval: TypeAlias = tuple[int, int]
Intervals: TypeAlias = dict[Value, Interval]


def mark_in_bounds(graph: Graph) -> Graph:
    """Mark reads and writes in loops whose positions are known to be in range."""
    if while_ not in graph.ops or graph.ops.isdisjoint([*ELEMENT_POSITIONS, indexing.position]):
        return graph
    return _marked(graph, {})


def _marked(graph: Graph, known: Intervals) -> Graph:
    """Return the graph with marks, given the intervals of its params."""

    def mark(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        regions: Sequence[Graph] = ()
        if node.op is while_:
            regions = _marked_loop(node, known)
        elif node.regions:
            entering = _entering(node, known)
            regions = [_marked(region, entering) for region in node.regions]
        copy = with_operands(node, operands, regions)
        if _is_in_bounds(node, known):
            copy = in_bounds(node, operands)
        interval = _interval(node, known)
        if interval is not None:
            known[node.results[0]] = interval
        if _is_own_position(node, known):
            return operands[:1]
        nodes.append(copy)
        return copy.results

    return rewrite_nodes(graph, mark)


def in_bounds(node: Node, operands: Sequence[Value]) -> Node:
    """Return the copy of a node whose positions are in range."""
    attrs, types = {**node.attrs, "in_bounds": True}, [node.results[0].type]
    copy = Node(node.op, operands, attrs, (), types, node.source)
    copy.remark = node.remark
    keep_names(node.results, copy.results)
    return copy


def _is_in_bounds(node: Node, known: Intervals) -> bool:
    if node.op not in ELEMENT_POSITIONS or not node.op.may_fail(node):
        return False
    type, positions = node.operands[0].type, node.operands[ELEMENT_POSITIONS[node.op] :]
    if not isinstance(type, TensorType) or type.shape is None:
        return False
    return all(
        x in known and all(known_position(end, dim) is not None for end in known[x])
        for x, dim in zip(positions, type.shape, strict=False)
    )


def _is_own_position(node: Node, known: Intervals) -> bool:
    """Return whether a node checks a position that is in range, and counts from the start."""
    if node.op is not indexing.position or node.operands[0] not in known:
        return False
    low, high = known[node.operands[0]]
    size = as_integer(node.operands[1])
    return size is not None and low >= 0 and high < size


def _interval(node: Node, known: Intervals) -> Interval | None:
    """Return the interval of the result of a node, if it is an integer with a known one."""
    if node.op is indexing.position:
        size = as_integer(node.operands[1])
        return None if not size else (0, size - 1)
    if node.op is creating.constant:
        number = as_integer(node.results[0])
        return None if number is None else (number, number)
    ends_of = _ENDS.get(node.op)
    if ends_of is None or not all(x in known for x in node.operands):
        return None
    ends = ends_of(*(known[x] for x in node.operands))
    # Within this limit nothing wraps
    return (min(ends), max(ends)) if max(map(abs, ends)) <= MAX_TRIPS else None


def _quotients(x: Interval, y: Interval) -> Sequence[int]:
    return [i // k for i in x for k in y] if y[0] > 0 else [-MAX_TRIPS - 1]


def _remainders(x: Interval, y: Interval) -> Sequence[int]:
    if y[0] <= 0:
        return [-MAX_TRIPS - 1]
    return x if x[0] >= 0 and x[1] < y[0] else (0, y[1] - 1)


# What is least or greatest of the results of operands in these intervals
_ENDS: Mapping[Op, Callable[[Interval, Interval], Sequence[int]]] = {
    elementwise.add: lambda x, y: (x[0] + y[0], x[1] + y[1]),
    elementwise.sub: lambda x, y: (x[0] - y[1], x[1] - y[0]),
    elementwise.mul: lambda x, y: [i * k for i in x for k in y],
    elementwise.floor_divide: lambda x, y: _quotients(x, y),
    elementwise.remainder: lambda x, y: _remainders(x, y),
    elementwise.minimum: lambda x, y: (min(x[0], y[0]), min(x[1], y[1])),
    elementwise.maximum: lambda x, y: (max(x[0], y[0]), max(x[1], y[1])),
}


def _entering(node: Node, known: Intervals) -> Intervals:
    """Return the intervals of the params of regions into which only operands flow."""
    entering: Intervals = {}
    unknown: set[Value] = set()
    for (owner, k), value in region_flow(node):
        interval = known.get(node.operands[k]) if owner is node else None
        if interval is None:
            unknown.add(value)
        else:
            low, high = entering.get(value, interval)
            entering[value] = min(low, interval[0]), max(high, interval[1])
    return {value: interval for value, interval in entering.items() if value not in unknown}


def _marked_loop(node: Node, known: Intervals) -> list[Graph]:
    """Return the regions of a loop with marks."""
    w = WhileParts.of(node)
    before = _of_invariants(w.before_invariants, w, known)
    after = _of_invariants(w.after_invariants, w, known)
    forwarded = dict(zip(w.forwarded, w.after_forwarded, strict=True))
    in_trips, at_tests = _of_counters(w, known)
    before.update(at_tests)
    after.update((forwarded[x], interval) for x, interval in in_trips.items() if x in forwarded)
    return [_marked(w.before, before), _marked(w.after, after)]


def _of_invariants(params: Sequence[Value], w: WhileParts, known: Intervals) -> Intervals:
    pairs = zip(params, w.invariants, strict=True)
    return {param: known[outer] for param, outer in pairs if outer in known}


def _of_counters(w: WhileParts, known: Intervals) -> tuple[Intervals, Intervals]:
    """Return the intervals of the counters of `before` in trips, and at all tests."""
    values = known_values(w)
    if values:
        trips = {x: (min(r[0], r[-1]), max(r[0], r[-1])) for x, r in values.items() if r}
        ends = {x: (r.start, r.start + r.step * len(r)) for x, r in values.items()}
        return trips, {x: (min(pair), max(pair)) for x, pair in ends.items()}
    tested = tested_counter(w)
    if tested is None:
        return {}, {}
    start, bound = (_outer_interval(w, x, known) for x in (tested.start, tested.bound))
    if start is None or bound is None:
        return {}, {}
    by = int(tested.is_inclusive)
    low, high = (start[0], bound[1] - 1 + by) if tested.step > 0 else (bound[0] + 1 - by, start[1])
    # What the last trip adds goes past the bound by less than a step
    at_tests = min(low + min(tested.step, 0), start[0]), max(high + max(tested.step, 0), start[1])
    if max(map(abs, at_tests)) > MAX_TRIPS:
        return {}, {}
    return {tested.param: (low, high)} if low <= high else {}, {tested.param: at_tests}


def _outer_interval(w: WhileParts, value: Value, known: Intervals) -> Interval | None:
    outer = outer_value(w, value)
    number = as_integer(outer)
    return known.get(outer) if number is None else (number, number)
