"""Forwarding of results: what a loop or branch only passes on is read where it comes from."""

from __future__ import annotations

from collections.abc import Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import rewrite_nodes, with_operands
from wend.ops.control import IfParts, if_
from wend.passes.canonicalize_loops import canonicalize_loops


def forward_results(graph: Graph) -> Graph:
    """Replace results of loops and branches by the operands that they are, in regions too.

    A loop is taken to end: a result that no trip changes is its start.
    """
    return _forwarded(canonicalize_loops(graph))


def _forwarded(graph: Graph) -> Graph:
    if if_ not in graph.ops:
        return graph

    def forward(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        copy = with_operands(node, operands, list(map(_forwarded, node.regions)))
        nodes.append(copy)
        if node.op is not if_:
            return copy.results
        parts = IfParts.of(copy)
        return [_source(parts, k, result) for k, result in enumerate(copy.results)]

    return rewrite_nodes(graph, forward)


def _source(parts: IfParts, k: int, result: Value) -> Value:
    """Return the operand that a result is, whichever branch runs; else the result."""
    places = {
        branch.params.index(branch.results[k]) if branch.results[k] in branch.params else None
        for branch in parts.branches
    }
    (place,) = places if len(places) == 1 else (None,)
    if place is None or parts.operands[place].type != result.type:
        return result
    return parts.operands[place]
