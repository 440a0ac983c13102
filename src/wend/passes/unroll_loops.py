"""Full unrolling of short loops whose trips take the elements of a small array one by one.

With known positions the elements are values of their own, in registers and in tapes; with others
each read selects among all of them. Muchnick, "Advanced Compiler Design and Implementation" (1997),
section 17.4.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import inline, rewrite_nodes, with_operands
from wend.ir.types import TensorType
from wend.ops import elementwise
from wend.ops.control import IfParts, WhileParts, if_, while_
from wend.ops.creating import constant, is_constant
from wend.ops.loop_counters import counters, known_values, tested_counter
from wend.ops.shapes import size_of
from wend.ops.updating import ELEMENT_POSITIONS
from wend.passes.fold import fold

MAX_TRIPS = 8
# The most elements that native code keeps in registers
_MAX_ELEMENTS = 16
# The most nodes that a loop may become
_MAX_NODES = 512
# Of a loop whose bounds may follow from the trip of an outer one
_ASSUMED_TRIPS = 4
# Loops in one another: the bounds of an inner one may follow from the trip of the outer one
_MAX_DEPTH = 4
_ARITHMETIC = {
    *(elementwise.add, elementwise.sub, elementwise.mul, elementwise.neg, elementwise.cast),
    *(elementwise.floor_divide, elementwise.remainder),
}


def unroll_loops(graph: Graph) -> Graph:
    """Unroll short loops, outer ones first."""
    for _ in range(_MAX_DEPTH):
        if while_ not in graph.ops or graph.ops.isdisjoint(ELEMENT_POSITIONS):
            break
        unrolled = _unrolled(graph)
        if unrolled is graph:
            break
        graph = fold(unrolled)
    return graph


def _unrolled(graph: Graph) -> Graph:
    def unroll(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        copy = with_operands(node, operands, node.regions)
        if node.op is while_:
            w = WhileParts.of(copy)
            trips = _short_trips(w)
            if trips is not None:
                return append_trips(nodes, w, trips)
        copy = with_operands(node, operands, [_unrolled(region) for region in node.regions])
        nodes.append(copy)
        return copy.results

    return rewrite_nodes(graph, unroll)


def append_trips(nodes: list[Node], w: WhileParts, trips: int) -> Sequence[Value]:
    """Append the regions of a loop as often as they run; return its results."""
    _, *forwarded = inline(w.before, (*w.carry, *w.invariants), nodes)
    for _ in range(trips):
        carry = inline(w.after, (*forwarded, *w.invariants), nodes)
        _, *forwarded = inline(w.before, (*carry, *w.invariants), nodes)
    return forwarded


def _short_trips(w: WhileParts) -> int | None:
    """Return the trip count of a loop that is to be unrolled, else None."""
    if (w.memory, w.applied, w.limit, w.parallel_iterations) != ("keep", "", 0, 0):
        return None
    values = known_values(w)
    if not values or w.before.effects() or w.after.effects():
        return None
    trips = len(next(iter(values.values())))
    if trips > MAX_TRIPS or trips * _num_nodes(w) > _MAX_NODES:
        return None
    pairs = zip(w.after_forwarded, w.forwarded, strict=True)
    return trips if _indexes(w.after, {x for x, value in pairs if value in values}) else None


def _num_nodes(w: WhileParts) -> int:
    """Return how many nodes a trip has once the loops in it are unrolled."""
    total = 0
    for region in (w.before, w.after):
        for node in region.nodes:
            total += 1
            if node.op is while_:
                inner = WhileParts.of(node)
                values = known_values(inner)
                trips = len(next(iter(values.values()))) if values else _ASSUMED_TRIPS
                total += max(trips, 1) * _num_nodes(inner)
            else:
                total += sum(branch.count() for branch in node.regions)
    return total


def _indexes(region: Graph, known: set[Value]) -> bool:
    """Return whether a region indexes small arrays at positions that follow from its trips.

    Args:
        region: the region.
        known: those of its params that are known in each trip.
    """
    for node in region.nodes:
        if node.op is constant or (node.op in _ARITHMETIC and known.issuperset(node.operands)):
            known.add(node.results[0])
        elif node.op in ELEMENT_POSITIONS:
            positions = node.operands[ELEMENT_POSITIONS[node.op] :]
            moving = [x for x in positions if not is_constant(x)]
            if moving and known.issuperset(moving) and _is_small(node.operands[0]):
                return True
        elif node.op is while_:
            inner = WhileParts.of(node)
            counting = _counting(inner, known)
            params = zip(inner.after_invariants, inner.invariants, strict=True)
            entering = {param for param, value in params if value in known}
            forwarded = zip(inner.after_forwarded, inner.forwarded, strict=True)
            entering |= {param for param, value in forwarded if value in counting}
            if _indexes(inner.after, entering):
                return True
        elif node.op is if_:
            parts = IfParts.of(node)
            for branch in parts.branches:
                pairs = zip(branch.params, parts.operands, strict=True)
                if _indexes(branch, {param for param, value in pairs if value in known}):
                    return True
    return False


def _counting(w: WhileParts, known: set[Value]) -> set[Value]:
    """Return the carries of `before` that are known in each trip, if the number of trips is."""
    tested = tested_counter(w)
    if tested is None:
        return set()
    bounds = dict(zip(w.before_invariants, w.invariants, strict=True))
    if not is_constant(tested.bound) and bounds.get(tested.bound) not in known:
        return set()
    return {
        param
        for param, counter in counters(w).items()
        if counter.start in known and counter.known_step(w) is not None
    }


def _is_small(value: Value) -> bool:
    type = value.type
    if not isinstance(type, TensorType) or not type.dims:
        return False
    size = size_of(type.dims)
    return size is not None and size <= _MAX_ELEMENTS
