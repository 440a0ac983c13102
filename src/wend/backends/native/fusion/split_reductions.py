"""Reductions of what is computed over the last axes and others, as two: the last, then the rest.

The first belongs to the loop that computes, and leaves a number for each row. It pays where what is
computed would not stay in the cache; else adding up rows by rows, in vectors, is as good.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from wend.backends.native.fusion.op_classes import is_lookup, operand_may_miss_cache, reduction_of
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_node, with_nodes
from wend.ir.types import Dim
from wend.ops import shaping

Computes: TypeAlias = Callable[[Node], bool]


def split_reductions(graph: Graph, computes: Computes) -> Graph:
    """Reduce what is computed over its last axes first.

    Args:
        graph: what is to be written.
        computes: whether a node computes arrays element by element.
    """
    if not any(_last_of(node, computes) for node in graph.walk()):
        return graph

    def put(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        last = _last_of(node, computes)
        if last:
            first = _over_last(node, operands[0], last)
            nodes.append(first)
            node = _over_rest(node, last)
            operands = [*first.results, *operands[1:]]
        copy = copy_node(
            node, operands, [split_reductions(region, computes) for region in node.regions]
        )
        nodes.append(copy)
        return copy.results

    return with_nodes(graph, put)


def _last_of(node: Node, computes: Computes) -> tuple[int, ...]:
    """The axes to begin with; none where a node is done as it is."""
    reduction = reduction_of(node)
    maker = node.operands[0].node if node.operands else None
    if reduction is None or maker is None or not operand_may_miss_cache(node.operands[0]):
        return ()
    if not (is_lookup(maker) or computes(maker)):
        return ()
    rank = len(node.operands[0].tensor.dims)
    count = 0
    while rank - 1 - count in reduction.axes:
        count += 1
    return tuple(range(rank - count, rank)) if 0 < count < len(reduction.axes) else ()


def _over_last(node: Node, value: Value, last: Sequence[int]) -> Node:
    keeps = node.op is shaping.sum_to or node.attrs["keepdims"]
    dims: list[Dim] = [*value.tensor.dims[: last[0]], *(1 for _ in last if keeps)]
    type = value.tensor.with_shape(tuple(dims))
    attrs = {"shape": type.dims} if node.op is shaping.sum_to else {**node.attrs, "axes": last}
    return Node(node.op, [value], attrs, [], [type], node.source)


def _over_rest(node: Node, last: Sequence[int]) -> Node:
    if node.op is shaping.sum_to:
        return node
    rest = tuple(sorted(set(node.attrs["axes"]) - set(last)))
    types = [result.type for result in node.results]
    return Node(node.op, node.operands, {**node.attrs, "axes": rest}, [], types, node.source)
