"""Inlining of calls.

Calls with a derivative rule become their primal function: a graph about to run needs no rule. A
call marked `recompute` stays: inlined next to its recomputation, the two would be merged, and the
residuals it must not keep would be kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import inline, rename_dims, rewrite_nodes, with_operands
from wend.ir.types import Dim, Symbol
from wend.ops.control import call
from wend.ops.custom import RULED
from wend.ops.schedules import scheduled


def inline_calls(graph: Graph) -> Graph:
    """Replace calls by the bodies of their callees, in regions too."""
    if graph.ops.isdisjoint(_INLINED):
        return graph
    dims: dict[Symbol, Dim] = {}  # symbols of the calls' results, as named in the caller

    def inline_node(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        if node.op in _INLINED and not node.attrs.get("recompute"):
            results = inline(inline_calls(node.regions[0]), operands, nodes)
            rename_dims(dims, node.results, results)
            return results
        regions = [inline_calls(region) for region in node.regions]
        nodes.append(with_operands(node, operands, regions, dims))
        return nodes[-1].results

    return rewrite_nodes(graph, inline_node)


# The first region of each is the callee.
_INLINED = {call, scheduled, *RULED}
