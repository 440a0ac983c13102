"""Puts the bodies of called functions in place of the calls."""

from __future__ import annotations

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_node, inline, rename_dims
from wend.ir.types import Dim, Symbol
from wend.ops.control import CallParts, call


def inline_calls(graph: Graph) -> Graph:
    """Replace every `call` by what it calls, in regions too."""
    mapping: dict[Value, Value] = {}
    dims: dict[Symbol, Dim] = {}  # sizes that only the calls knew, as they are called here
    nodes: list[Node] = []
    for node in graph.nodes:
        operands = [mapping.get(v, v) for v in node.operands]
        if node.op is call:
            results = inline(inline_calls(CallParts.of(node).callee), operands, nodes)
            rename_dims(dims, node.results, results)
        else:
            regions = [inline_calls(region) for region in node.regions]
            copy = copy_node(node, operands, regions, dims)
            nodes.append(copy)
            results = copy.results
        mapping.update(zip(node.results, results, strict=True))
    new_results = tuple(mapping.get(value, value) for value in graph.results)
    return Graph(graph.name, graph.params, tuple(nodes), new_results, graph.captures)
