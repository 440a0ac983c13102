"""The `chunk_call` op: a `chunked_map` whose region is compiled as a function of its own.

Each thread runs that function on a workspace of its own, so nothing in it is shared but the arrays
that it reads.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import NoGradient, Op
from wend.ir.rewrite import rewrite_nodes, with_operands
from wend.ir.types import Type
from wend.ops.chunked_map import ChunkedMapParts, chunked_map


def _infer(*types: Type, number: int, results: tuple[Type, ...]) -> tuple[Type, ...]:
    return results


chunk_call = Op("chunk_call", _infer, None, NoGradient())


@dataclass(frozen=True, slots=True)
class DetachedMaps:
    """A graph without the regions of its `chunked_map` nodes, and these nodes by number."""

    graph: Graph
    maps: Sequence[ChunkedMapParts]


def detach_maps(graph: Graph) -> DetachedMaps:
    """Replace `chunked_map` nodes by calls of what will be functions."""
    maps: list[ChunkedMapParts] = []

    def detach(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        copy = with_operands(node, operands, [rewrite_nodes(r, detach) for r in node.regions])
        if node.op is chunked_map:
            types = tuple(x.type for x in node.results)
            attrs = {"number": len(maps), "results": types}
            copy, whole = Node(chunk_call, operands, attrs, (), types, node.source), copy
            maps.append(ChunkedMapParts.of(whole))
        nodes.append(copy)
        return copy.results

    if chunked_map not in graph.ops:
        return DetachedMaps(graph, ())
    return DetachedMaps(rewrite_nodes(graph, detach), maps)
