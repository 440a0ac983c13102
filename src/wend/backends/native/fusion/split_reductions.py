"""Splits reductions of computed values in two: over the last axes, then over the others.

The first part fuses with the loop that computes the operand and leaves one number per row. This
pays where the operand would not stay in the cache; otherwise accumulating rows in vectors is as
fast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from wend.backends.native.fusion.op_classes import is_lookup, operand_may_miss_cache, reduction_of
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_node, rewrite_nodes
from wend.ir.types import Dim
from wend.ops import shaping

Computes: TypeAlias = Callable[[Node], bool]


def split_reductions(graph: Graph, computes: Computes) -> Graph:
    """Split the reductions of computed values over their last axes and others.

    Args:
        graph: the graph to lower.
        computes: whether a node computes arrays element by element.
    """
    if all(op.step is None for op in graph.ops):
        return graph
    if not any(_split_axes(node, computes) for node in graph.walk()):
        return graph

    def rewrite(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        last_axes = _split_axes(node, computes)
        if last_axes:
            first = _reduce_last(node, operands[0], last_axes)
            nodes.append(first)
            node = _reduce_remaining(node, last_axes)
            operands = [*first.results, *operands[1:]]
        copy = copy_node(
            node, operands, [split_reductions(region, computes) for region in node.regions]
        )
        nodes.append(copy)
        return copy.results

    return rewrite_nodes(graph, rewrite)


def _split_axes(node: Node, computes: Computes) -> tuple[int, ...]:
    """Return the last axes to reduce first; empty if the node is not split."""
    reduction = reduction_of(node)
    producer = node.operands[0].node if node.operands else None
    if reduction is None or producer is None or not operand_may_miss_cache(node.operands[0]):
        return ()
    if not (is_lookup(producer) or computes(producer)):
        return ()
    rank = len(node.operands[0].tensor.dims)
    count = 0
    while rank - 1 - count in reduction.axes:
        count += 1
    return tuple(range(rank - count, rank)) if 0 < count < len(reduction.axes) else ()


def _reduce_last(node: Node, value: Value, last_axes: Sequence[int]) -> Node:
    keeps_dims = node.op is shaping.sum_to or node.attrs["keepdims"]
    dims: list[Dim] = [*value.tensor.dims[: last_axes[0]], *(1 for _ in last_axes if keeps_dims)]
    type = value.tensor.with_shape(tuple(dims))
    attrs = {"shape": type.dims} if node.op is shaping.sum_to else {**node.attrs, "axes": last_axes}
    return Node(node.op, [value], attrs, [], [type], node.source)


def _reduce_remaining(node: Node, last_axes: Sequence[int]) -> Node:
    if node.op is shaping.sum_to:
        return node
    remaining_axes = tuple(sorted(set(node.attrs["axes"]) - set(last_axes)))
    types = [result.type for result in node.results]
    return Node(
        node.op, node.operands, {**node.attrs, "axes": remaining_axes}, [], types, node.source
    )
