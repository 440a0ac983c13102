"""What loop nests save: operations that need no loop of their own, arrays that are never stored."""

from __future__ import annotations

from collections.abc import Iterator

from wend.backends.native.fusion.op_classes import is_constant, is_layout
from wend.backends.native.target.loop_nest import LoopNestParts, loop_nest
from wend.backends.protocol import FusedLoop
from wend.ir.graph import Graph, Node
from wend.ops.control import while_


def fused_loops(graph: Graph, *, is_inside: bool = False) -> Iterator[FusedLoop]:
    """The nests of a graph that do more than one operation.

    Args:
        graph: with its nests.
        is_inside: whether it is a part of a loop.
    """
    for node in graph.nodes:
        if node.op is loop_nest:
            working = computing(node)
            if len(working) > 1:
                yield _fused(node, working, is_inside=is_inside)
            continue
        for region in node.regions:
            yield from fused_loops(region, is_inside=is_inside or node.op is while_)


def computing(node: Node) -> list[Node]:
    """The operations of a nest that do more than say where elements are."""
    return [x for x in LoopNestParts.of(node).body.nodes if not is_constant(x) and not is_layout(x)]


def _fused(node: Node, working: list[Node], *, is_inside: bool) -> FusedLoop:
    stored = {*LoopNestParts.of(node).body.results}
    sizes = [x.results[0].tensor.nbytes for x in working if x.results[0] not in stored]
    known = [size for size in sizes if size is not None]
    return FusedLoop(
        len(working),
        [*dict.fromkeys(x.source for x in working if x.source is not None)],
        len(sizes),
        sum(known) if len(known) == len(sizes) else None,
        is_inside,
    )
