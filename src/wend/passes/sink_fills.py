"""Arrays of one number, and of 0, 1, 2, …, are computed by the loops that read their elements.

A loop that reads an array which repeats a number, or counts, would load what its own code computes
in registers, and would not know that it reads at neighbouring positions. Such arrays, which `hoist`
has taken out of loops, move back to the operations that read them element by element
(rematerialization: Briggs, Cooper and Torczon, 1992).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_node, copy_nodes, rewrite_nodes, with_operands
from wend.ops import creating, shaping
from wend.ops.control import WhileParts, while_
from wend.ops.indexing import gather
from wend.passes.dce import dce
from wend.passes.lane_maps import is_elementwise

_FILLS = creating.iota, shaping.broadcast_to


def sink_fills(graph: Graph) -> Graph:
    """Move arrays that repeat a number, or count, into the loops that read their elements."""
    if while_ not in graph.ops or graph.ops.isdisjoint(_FILLS):
        return graph

    def sink(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        copy = with_operands(node, operands)
        if copy.op is while_:
            copy = _with_fills(copy)
        nodes.append(with_operands(copy, copy.operands, [sink_fills(x) for x in copy.regions]))
        return nodes[-1].results

    sunk = rewrite_nodes(graph, sink)
    return graph if sunk is graph else dce(sunk)


def _is_fill(node: Node) -> bool:
    """Return whether a node gives an array of known size that counts, or repeats a number."""
    if node.op not in _FILLS or not node.results[0].tensor.is_static:
        return False
    return node.results[0].tensor.shape != () and all(x.tensor.shape == () for x in node.operands)


def _readers(region: Graph) -> Mapping[Value, Sequence[Node]]:
    readers: dict[Value, list[Node]] = defaultdict(list)
    for node in region.nodes:
        for x in dict.fromkeys(node.operands):
            readers[x].append(node)
    return readers


def _is_read_by_element(
    value: Value, region: Graph, readers: Mapping[Value, Sequence[Node]]
) -> bool:
    """Return whether an array is read by element, also where loops of the region take it."""
    if value in region.results:
        return False
    for node in readers.get(value, ()):
        if node.op is while_:
            w = WhileParts.of(node)
            positions = [k for k, x in enumerate(w.invariants) if x is value]
            if value in w.carry or not all(_is_sinkable(w, k) for k in positions):
                return False
        elif node.op is gather:
            if node.operands[0] is value:
                return False
        elif not is_elementwise(node):
            return False
    return True


def _is_sinkable(w: WhileParts, k: int) -> bool:
    """Return whether both regions of a loop read an invariant by element."""
    params = (w.before, w.before_invariants[k]), (w.after, w.after_invariants[k])
    return all(_is_read_by_element(param, region, _readers(region)) for region, param in params)


def _with_fills(loop: Node) -> Node:
    """Return a loop that computes the arrays it reads by element."""
    w = WhileParts.of(loop)
    fills = {
        k: x.node
        for k, x in enumerate(w.invariants)
        if x.node is not None and _is_fill(x.node) and _is_sinkable(w, k)
    }
    if not fills:
        return loop
    numbers = list(dict.fromkeys(x for node in fills.values() for x in node.operands))
    regions = []
    for region, invariants in ((w.before, w.before_invariants), (w.after, w.after_invariants)):
        params = [Value(x.type) for x in numbers]
        inner = dict(zip(numbers, params, strict=True))
        copies = {
            invariants[k]: copy_node(node, [inner[x] for x in node.operands])
            for k, node in fills.items()
        }
        mapping = {old: copy.results[0] for old, copy in copies.items()}
        nodes = (*copies.values(), *copy_nodes(region.nodes, mapping))
        others = [x for x in region.params if x not in copies]
        results = tuple(mapping.get(x, x) for x in region.results)
        regions.append(Graph(region.name, (*others, *params), nodes, results))
    unmoved = [x for k, x in enumerate(w.invariants) if k not in fills]
    return copy_node(loop, [*w.carry, *unmoved, *numbers], regions)
