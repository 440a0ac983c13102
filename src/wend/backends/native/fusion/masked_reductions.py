"""Reduces what a mask picks without picking it: `x[mask].sum()` and its kin, in one nest.

What is not picked counts as what a reduction starts with. So neither positions nor what is picked
are in memory, and what computes the mask is done in the same loops.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.backends.native.analysis.liveness import LastUses
from wend.ir.dtypes import INT64
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import on_operands, with_nodes
from wend.ops import indexing, reducing, shaping
from wend.ops.build import Build

_STARTS = {reducing.reduce_sum: 0, reducing.reduce_prod: 1}
_STARTS |= {reducing.reduce_any: 0, reducing.reduce_all: 1}


def fuse_masked_reductions(graph: Graph) -> Graph:
    """Let reductions go over all of what a mask picks from, where nobody else wants the picked."""
    uses, b = LastUses(graph), Build(graph.name)
    picked = {node for node in graph.nodes if _is_but_reduced(uses, node)}
    masks = {v: node.operands[0] for node in picked for v in node.results}  # by positions
    found: dict[Value, Value] = {}  # by what is picked

    def put(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        if node in picked:
            return node.results
        if node.op is indexing.gather and node.operands[1] in masks:
            found[node.results[0]] = operands[0]
            masks[node.results[0]] = masks[node.operands[1]]
            return node.results
        b.nodes, b.source = nodes, node.source
        if node.operands and node.operands[0] in masks:
            mask = now.get(masks[node.operands[0]], masks[node.operands[0]])
            axes = tuple(range(len(mask.tensor.dims)))
            if node.op is shaping.dim_of:
                return (b.reduce_sum(b.cast(mask, INT64), axes=axes),)
            x = found[node.operands[0]]
            other = b.full_like(x, _STARTS[node.op])
            return (b.emit(node.op, b.select(mask, x, other), axes=axes, keepdims=False),)
        nodes.append(on_operands(node, operands, list(map(fuse_masked_reductions, node.regions))))
        now.update(zip(node.results, nodes[-1].results, strict=True))
        return nodes[-1].results

    now: dict[Value, Value] = {}
    return with_nodes(graph, put)


def _is_but_reduced(uses: LastUses, node: Node) -> bool:
    """Whether all that is done with the positions in a mask is to reduce what is there."""
    if node.op is not indexing.nonzero or any(map(uses.is_result, node.results)):
        return False
    takers = [taker for value in node.results for taker in uses.users(value)]
    return bool(takers) and all(
        _is_size(taker) or _is_reduced(uses, taker, node) for taker in takers
    )


def _is_size(node: Node) -> bool:
    return node.op is shaping.dim_of


def _is_reduced(uses: LastUses, node: Node, picking: Node) -> bool:
    """Whether a node picks by all positions of a mask from an array as large, to be reduced."""
    if node.op is not indexing.gather or node.operands[1:] != picking.results:
        return False
    (picked,) = node.results
    if node.operands[0].tensor.dims != picking.operands[0].tensor.dims or uses.is_result(picked):
        return False
    return all(
        _is_size(taker) or (taker.op in _STARTS and not taker.attrs["keepdims"])
        for taker in uses.users(picked)
    )
