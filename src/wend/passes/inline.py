"""Inlining of calls.

Calls with a derivative rule become their primal function: a graph about to run needs no rule. A
call marked `recompute` stays: inlined next to its recomputation, the two would be merged, and the
residuals it must not keep would be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import inline, rename_dims, rewrite_nodes, with_operands
from wend.ir.types import Dim, Symbol
from wend.ops.control import call, while_
from wend.ops.custom import RULED
from wend.ops.schedules import scheduled
from wend.passes.view_positions import VIEWS


def inline_calls(graph: Graph) -> Graph:
    """Replace calls by the bodies of their callees, in regions too."""
    return _inlined(graph, lambda node, _: node.op in _INLINED)


def inline_writes_to_views(graph: Graph) -> Graph:
    """Replace calls in loops that take a view and may write to it, so that its array is written."""
    return _inlined(graph, lambda node, is_in_loop: is_in_loop and _may_write_to_view(node))


def _inlined(
    graph: Graph, is_chosen: Callable[[Node, bool], bool], *, is_in_loop: bool = False
) -> Graph:
    """Return a graph with some of its calls replaced by the bodies of their callees.

    `is_chosen` takes a node, and whether it is in a loop. Calls in these bodies are replaced, too.
    """
    if graph.ops.isdisjoint(_INLINED):
        return graph
    dims: dict[Symbol, Dim] = {}  # symbols of the calls' results, as named in the caller

    def inline_node(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        if is_chosen(node, is_in_loop) and not node.attrs.get("recompute"):
            callee = _inlined(
                node.regions[0], lambda x, _: x.op is call or is_chosen(x, is_in_loop)
            )
            results = inline(callee, operands, nodes)
            rename_dims(dims, node.results, results)
            return results
        is_inner = is_in_loop or node.op is while_
        regions = [_inlined(x, is_chosen, is_in_loop=is_inner) for x in node.regions]
        nodes.append(with_operands(node, operands, regions, dims))
        return nodes[-1].results

    return rewrite_nodes(graph, inline_node)


def _may_write_to_view(node: Node) -> bool:
    """Return whether a node calls a function that may write to a view which it takes."""
    takes_view = any(x.node is not None and x.node.op in VIEWS for x in node.operands)
    return (
        node.op is call and takes_view and any(x.updates is not None for x in node.regions[0].ops)
    )


# The first region of each is the callee.
_INLINED = {call, scheduled, *RULED}
