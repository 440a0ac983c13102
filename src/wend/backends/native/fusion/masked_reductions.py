"""Fuses masked reductions such as `x[mask].sum()` into one nest, without a compacted array.

Elements outside the mask count as the identity of the reduction. Neither the positions nor the
selected elements are stored, and the mask is computed in the same loops.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.backends.native.analysis.liveness import LastUses
from wend.ir.dtypes import INT64
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import rewrite_nodes, with_operands
from wend.ops import indexing, shaping
from wend.ops.build import Build


def fuse_masked_reductions(graph: Graph) -> Graph:
    """Reduce over whole arrays where the selected elements have no other use."""
    if indexing.nonzero not in graph.ops:
        return graph
    uses, b = LastUses(graph), Build(graph.name)
    picked = {node for node in graph.nodes if _is_only_reduced(uses, node)}
    # By the positions in a mask, and by the elements that are selected there
    masks = {v: node.operands[0] for node in picked for v in node.results}
    sources: dict[Value, Value] = {}  # by selected elements

    def rewrite(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        if node in picked:
            return node.results
        if node.op is indexing.gather and node.operands[1] in masks:
            sources[node.results[0]] = operands[0]
            masks[node.results[0]] = masks[node.operands[1]]
            return node.results
        b.nodes, b.source = nodes, node.source
        if node.operands and node.operands[0] in masks:
            mask = copies.get(masks[node.operands[0]], masks[node.operands[0]])
            axes = tuple(range(len(mask.tensor.dims)))
            if node.op is shaping.dim_of:
                return (b.reduce_sum(b.cast(mask, INT64), axes=axes),)
            x = sources[node.operands[0]]
            assert node.op.identity is not None
            x = b.select(mask, x, b.full_like(x, node.op.identity))
            return (b.emit(node.op, x, axes=axes, keepdims=False),)
        nodes.append(with_operands(node, operands, list(map(fuse_masked_reductions, node.regions))))
        copies.update(zip(node.results, nodes[-1].results, strict=True))
        return nodes[-1].results

    copies: dict[Value, Value] = {}
    return rewrite_nodes(graph, rewrite)


def _is_only_reduced(uses: LastUses, node: Node) -> bool:
    """Return whether the positions in a mask are only used to reduce the selected elements."""
    if node.op is not indexing.nonzero or any(map(uses.is_result, node.results)):
        return False
    users = [user for value in node.results for user in uses.users(value)]
    return bool(users) and all(_is_size(user) or _is_reduced(uses, user, node) for user in users)


def _is_size(node: Node) -> bool:
    return node.op is shaping.dim_of


def _has_identity(node: Node) -> bool:
    return node.op.identity is not None and node.op is not shaping.sum_to


def _is_reduced(uses: LastUses, node: Node, nonzero: Node) -> bool:
    """Return whether a node selects by all positions of a mask, only to be reduced."""
    if node.op is not indexing.gather or node.operands[1:] != nonzero.results:
        return False
    (picked,) = node.results
    if node.operands[0].tensor.dims != nonzero.operands[0].tensor.dims or uses.is_result(picked):
        return False
    return all(
        _is_size(user) or (_has_identity(user) and not user.attrs["keepdims"])
        for user in uses.users(picked)
    )
