"""Report of what fusion saves: fused operations, and arrays that are never stored."""

from __future__ import annotations

from collections.abc import Iterator

from wend.backends.native.fusion.op_classes import is_constant, is_layout
from wend.backends.native.target.loop_nest import LoopNestParts, loop_nest
from wend.backends.protocol import FusedLoop
from wend.ir.graph import Graph, Node
from wend.ops.control import while_


def fused_loops(graph: Graph, *, is_inside: bool = False) -> Iterator[FusedLoop]:
    """Yield the nests of a graph that fuse more than one operation.

    Args:
        graph: the graph after fusion.
        is_inside: whether it is part of a loop.
    """
    for node in graph.nodes:
        if node.op is loop_nest:
            operations = computing_nodes(node)
            if len(operations) > 1:
                yield _fused(node, operations, is_inside=is_inside)
            continue
        for region in node.regions:
            yield from fused_loops(region, is_inside=is_inside or node.op is while_)


def computing_nodes(node: Node) -> list[Node]:
    """Return the nodes of a nest that are neither constants nor layout operations."""
    return [x for x in LoopNestParts.of(node).body.nodes if not is_constant(x) and not is_layout(x)]


def _fused(node: Node, operations: list[Node], *, is_inside: bool) -> FusedLoop:
    stored = {*LoopNestParts.of(node).body.results}
    sizes = [x.results[0].tensor.nbytes for x in operations if x.results[0] not in stored]
    known_sizes = [size for size in sizes if size is not None]
    return FusedLoop(
        len(operations),
        [*dict.fromkeys(x.source for x in operations if x.source is not None)],
        len(sizes),
        sum(known_sizes) if len(known_sizes) == len(sizes) else None,
        is_inside,
    )
