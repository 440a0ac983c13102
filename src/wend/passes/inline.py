"""Puts the bodies of called functions in place of the calls.

Of a call with a derivative rule only the value is left: what has been differentiated, and is now
to be run, needs no rule. A call that is to be run again in a backward pass stays one: in one place
with its second run, the two would be merged, and what was not to be kept would be.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import inline, on_operands, rename_dims, with_nodes
from wend.ir.types import Dim, Symbol
from wend.ops.control import call
from wend.ops.custom import RULED


def inline_calls(graph: Graph) -> Graph:
    """Replace calls by what they call, in regions too."""
    dims: dict[Symbol, Dim] = {}  # sizes that only the calls knew, as they are called here

    def put(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        if node.op in _INLINED and not node.attrs.get("recompute"):
            results = inline(inline_calls(node.regions[0]), operands, nodes)
            rename_dims(dims, node.results, results)
            return results
        regions = [inline_calls(region) for region in node.regions]
        nodes.append(on_operands(node, operands, regions, dims))
        return nodes[-1].results

    return with_nodes(graph, put)


# The first region of each is what it calls.
_INLINED = {call, *RULED}
