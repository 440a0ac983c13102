"""Simplification of loops, above all of those whose trip count is known.

Loops that make no trip, or one, are replaced by their regions. The value of a counter after the
loop is a constant, so that a backward loop, which starts there, has a known trip count as well.
Carries that are equal in each trip are merged, and invariants that are numbers become constants.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import (
    copy_node,
    copy_nodes,
    rebuild_graph,
    rewrite_nodes,
    with_operands,
)
from wend.ir.types import symbols
from wend.ops.build import Build
from wend.ops.control import WhileParts, while_
from wend.ops.creating import is_constant
from wend.ops.loop_counters import are_equal_integers, known_values
from wend.passes.congruence import are_congruent
from wend.passes.unroll_loops import append_trips


def simplify_loops(graph: Graph) -> Graph:
    """Simplify the loops of a graph, inner ones first."""
    if while_ not in graph.ops:
        return graph
    read = {x for node in graph.nodes for x in node.operands} | {*graph.results}

    def simplify(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        copy = with_operands(node, operands, [simplify_loops(region) for region in node.regions])
        if copy.op is not while_:
            nodes.append(copy)
            return copy.results
        w = WhileParts.of(copy)
        values = known_values(w)
        trips = len(next(iter(values.values()))) if values else None
        b = Build("")
        b.nodes, b.source = nodes, copy.source
        if trips is not None and trips < 2 and not (w.before.effects() or w.after.effects()):
            pairs = zip(append_trips(nodes, w, trips), node.results, strict=True)
            # Of the sizes that change from trip to trip more is known than other nodes say
            results = [b.refine(value, result.type) for value, result in pairs]
        else:
            copy = _with_constants(_merge_equal_carries(copy, w))
            nodes.append(copy)
            forwarded = WhileParts.of(copy).forwarded
            results = [copy.results[forwarded.index(value)] for value in forwarded]
        for k, value in enumerate(w.forwarded):
            if value in values and node.results[k] in read:
                last = values[value]
                results[k] = b.integer(last.start + last.step * len(last))
        return results

    return rewrite_nodes(graph, simplify)


def _with_constants(node: Node) -> Node:
    """Return the loop with constants in its regions in place of invariants that are numbers."""
    w = WhileParts.of(node)
    numbers = [k for k, x in enumerate(w.invariants) if is_constant(x) and x.tensor.shape == ()]
    if not numbers:
        return node
    regions = [
        _with_constants_for(region, {invariants[k]: w.invariants[k] for k in numbers})
        for region, invariants in ((w.before, w.before_invariants), (w.after, w.after_invariants))
    ]
    return with_operands(node, node.operands, regions)


def _with_constants_for(region: Graph, constants: dict[Value, Value]) -> Graph:
    """Return a region in which constants are used in place of params."""
    read = {x for node in region.nodes for x in node.operands} | {*region.results}
    mapping = {}
    first: list[Node] = []
    for param, constant in constants.items():
        if param in read and constant.node is not None:
            first.append(copy_node(constant.node, ()))
            (mapping[param],) = first[-1].results
    if not first:
        return region
    nodes = [*first, *copy_nodes(region.nodes, mapping)]
    return rebuild_graph(region, region.params, nodes, [mapping.get(x, x) for x in region.results])


def _merge_equal_carries(node: Node, w: WhileParts) -> Node:
    """Return the loop with one carry read in place of those that equal it in every trip."""
    replaced: dict[int, int] = {}  # position of a carry -> that of an earlier one
    for i in range(len(w.carry)):
        for j in range(i):
            if j not in replaced and _are_equal_carries(w, j, i):
                replaced[i] = j
                break
    if not replaced:
        return node
    before = _substituted(
        w.before, {w.before_carry[i]: w.before_carry[j] for i, j in replaced.items()}
    )
    position = {value: k for k, value in reversed([*enumerate(before.results[1:])])}
    merged = {
        param: w.after_forwarded[position[value]]
        for param, value in zip(w.after_forwarded, before.results[1:], strict=True)
    }
    return with_operands(node, node.operands, (before, _substituted(w.after, merged)))


def _substituted(region: Graph, mapping: dict[Value, Value]) -> Graph:
    nodes = copy_nodes(region.nodes, mapping)
    return rebuild_graph(region, region.params, nodes, [mapping.get(x, x) for x in region.results])


def _are_equal_carries(w: WhileParts, i: int, j: int) -> bool:
    """Return whether two carries are equal at first and, if they are, in the next trip."""
    first, second = w.before_carry[i], w.before_carry[j]
    if first.type != second.type or symbols(first.type):
        return False
    if first not in w.forwarded or second not in w.forwarded:
        return False
    if not are_equal_integers(w.carry[i], w.carry[j]):
        return False
    pairs = {
        w.after_forwarded[w.forwarded.index(first)]: w.after_forwarded[w.forwarded.index(second)]
    }
    return are_congruent(w.next_carry[i], w.next_carry[j], pairs)
