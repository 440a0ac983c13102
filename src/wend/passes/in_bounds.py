"""Positions that are known to be in range, so that reading and writing there cannot fail.

The integers of a graph get intervals: from constants, from the starts and bounds of counted loops,
and by arithmetic (interval analysis). A read or write whose positions stay within its array is
marked `in_bounds`; a marked read may move, and run where its result is not needed.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.ir.dataflow import region_flow
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import keep_names, rewrite_nodes, with_operands
from wend.ir.types import TensorType
from wend.ops import indexing
from wend.ops.control import WhileParts, while_
from wend.ops.loop_counters import as_integer
from wend.ops.shapes import known_position
from wend.ops.updating import ELEMENT_POSITIONS
from wend.passes.integer_ranges import Intervals, counter_ranges, interval_of


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
        interval = interval_of(node, known)
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
    in_trips, at_tests = counter_ranges(w, known)
    before.update(at_tests)
    after.update((forwarded[x], interval) for x, interval in in_trips.items() if x in forwarded)
    return [_marked(w.before, before), _marked(w.after, after)]


def _of_invariants(params: Sequence[Value], w: WhileParts, known: Intervals) -> Intervals:
    pairs = zip(params, w.invariants, strict=True)
    return {param: known[outer] for param, outer in pairs if outer in known}
