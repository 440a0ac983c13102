"""Full unrolling of short loops whose trips take the elements of a small array one by one.

With known positions the elements are values of their own, in registers and in tapes; with others
each read selects among all of them. Muchnick, "Advanced Compiler Design and Implementation" (1997),
section 17.4.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node, Remark, Value
from wend.ir.rewrite import copy_node, inline, rewrite_nodes, with_operands
from wend.ir.types import TensorType
from wend.ops.build import Build
from wend.ops.control import WhileParts, while_
from wend.ops.creating import is_constant
from wend.ops.indexing import gather
from wend.ops.loop_counters import as_integer, known_values
from wend.ops.shapes import size_of
from wend.ops.updating import ELEMENT_POSITIONS
from wend.passes.fold import fold

MAX_TRIPS = 8
# The most elements that native code keeps in registers
_MAX_ELEMENTS = 16
# The most nodes that a loop may become, and that the loops of a graph may become together
_MAX_NODES, _MAX_NODES_OF_GRAPH = 512, 1024
# The trips assumed of an inner loop whose bounds may follow from the trip of the outer one
_ASSUMED_TRIPS = 4


@dataclass(slots=True)
class _Budget:
    """How many nodes loops may still become."""

    nodes: int


def unroll_loops(graph: Graph) -> Graph:
    """Unroll short loops, outer ones first."""
    if while_ not in graph.ops or graph.ops.isdisjoint(ELEMENT_POSITIONS):
        return graph
    return _unrolled(graph, _Budget(_MAX_NODES_OF_GRAPH))


def _unrolled(graph: Graph, budget: _Budget) -> Graph:
    def unroll(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        copy = with_operands(node, operands, node.regions)
        trips = _straight_code(WhileParts.of(copy), budget) if node.op is while_ else None
        if trips is not None:
            b = Build("")
            b.nodes, b.source = nodes, node.source
            pairs = zip(
                inline(trips, [x for x in operands if not is_constant(x)], nodes),
                node.results,
                strict=True,
            )
            return [b.refine(value, result.type) for value, result in pairs]
        copy = with_operands(node, operands, [_unrolled(x, budget) for x in node.regions])
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


def _straight_code(w: WhileParts, budget: _Budget) -> Graph | None:
    """Return the trips of a loop as a graph of its operands but constants; None: it stays."""
    trips = _short_trips(w)
    if trips is None:
        return None
    b, values = Build("trips"), list[Value]()
    for x in (*w.carry, *w.invariants):
        if x.node is not None and is_constant(x):
            b.nodes.append(copy_node(x.node, ()))
            values += b.nodes[-1].results
        else:
            values.append(b.param(x.type))
    count = len(w.carry)
    inside = replace(w, carry=tuple(values[:count]), invariants=tuple(values[count:]))
    graph = fold(b.finish(append_trips(b.nodes, inside, trips)))
    graph = _unrolled(graph, _Budget(_MAX_NODES))
    size = graph.count()
    if size > min(_MAX_NODES, budget.nodes) or not _has_elements_in_range(graph):
        return None
    budget.nodes -= size
    for node in graph.nodes:
        node.remark = node.remark or Remark(loop=w.source, unrolled=trips)
    return graph


def _short_trips(w: WhileParts) -> int | None:
    """Return the trip count of a loop that may be unrolled, else None."""
    if (w.memory, w.applied, w.limit, w.parallel_iterations) != ("keep", "", 0, 0):
        return None
    values = known_values(w)
    if not values or w.before.effects() or w.after.effects():
        return None
    trips = len(next(iter(values.values())))
    if trips > MAX_TRIPS or trips * _num_nodes(w) > _MAX_NODES:
        return None
    return trips if any(map(_takes_moving_element, w.after.walk())) else None


def _num_nodes(w: WhileParts) -> int:
    """Return about how many nodes a trip has once the loops in it are unrolled."""
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


def _takes_moving_element(node: Node) -> bool:
    """Return whether a node reads or stores at a position of a small array that is no constant."""
    if node.op not in ELEMENT_POSITIONS or not _is_small(node.operands[0]):
        return False
    return not all(map(is_constant, node.operands[ELEMENT_POSITIONS[node.op] :]))


def _has_elements_in_range(graph: Graph) -> bool:
    """Return whether straight code takes small arrays at known positions alone, all in range.

    An array that has others as well would be taken apart and selected from. An error at a known
    position would come where it stands, but what the trips before it compute in vain is not run.
    """
    known, others = set[Value](), set[Value]()
    for node in graph.walk():
        if node.op not in ELEMENT_POSITIONS:
            continue
        array, positions = node.operands[0], node.operands[ELEMENT_POSITIONS[node.op] :]
        numbers = [as_integer(x) for x in positions]
        if None not in numbers:
            if not _are_in_range(array, numbers):
                return False
            known.add(_origin(array))
        elif _is_small(array):
            others.add(_origin(array))
    return bool(known) and known.isdisjoint(others)


def _are_in_range(array: Value, positions: Sequence[int | None]) -> bool:
    dims = array.tensor.dims[: len(positions)]
    return all(
        isinstance(dim, int) and position is not None and -dim <= position < dim
        for dim, position in zip(dims, positions, strict=True)
    )


def _origin(array: Value) -> Value:
    """Return the array of which another is a version that stores have made."""
    while (
        (node := array.node) is not None and node.op in ELEMENT_POSITIONS and node.op is not gather
    ):
        array = node.operands[0]
    return array


def _is_small(value: Value) -> bool:
    type = value.type
    if not isinstance(type, TensorType) or not type.dims:
        return False
    size = size_of(type.dims)
    return size is not None and size <= _MAX_ELEMENTS
