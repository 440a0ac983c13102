"""Forward mode of `If`, and of `Call`: the regions of values are regions of values and tangents."""

from __future__ import annotations

from collections.abc import Sequence

from wend.autodiff.jvp_interpreter import JvpInterpreter, JvpResult, Tangent
from wend.base.zero import ZERO, Zero
from wend.ir.graph import Graph, Node, Value
from wend.ops.build import Build
from wend.ops.control import CallParts, IfParts


def jvp_if(p: JvpInterpreter, b: Build, node: Node, tangents: Sequence[Tangent]) -> JvpResult:
    """Append the branches with their tangents; one that moves nothing gives zeros."""
    parts = IfParts.of(node)
    branches, moves = _jvp_regions(p, parts.branches, tangents[1:])
    found = b.if_(parts.selector, [*parts.operands, *_given(tangents)], branches)
    return _pushed(found, moves)


def jvp_call(p: JvpInterpreter, b: Build, node: Node, tangents: Sequence[Tangent]) -> JvpResult:
    """Append a call of the callee with its tangents."""
    parts = CallParts.of(node)
    return jvp_graph(p, b, parts.callee, parts.operands, tangents, recompute=parts.recompute)


def jvp_graph(
    p: JvpInterpreter,
    b: Build,
    graph: Graph,
    operands: Sequence[Value],
    tangents: Sequence[Tangent],
    *,
    recompute: bool = False,
) -> JvpResult:
    """Append a call of a graph with its tangents."""
    (callee,), moves = _jvp_regions(p, (graph,), tangents)
    return _pushed(b.call(callee, [*operands, *_given(tangents)], recompute=recompute), moves)


def _jvp_regions(
    p: JvpInterpreter, regions: Sequence[Graph], tangents: Sequence[Tangent]
) -> tuple[list[Graph], list[bool]]:
    """Regions with tangents as further params and results; and which results have one."""
    given = [tangent is not ZERO for tangent in tangents]
    ahead = [p.jvp_region(region, given)[0] for region in regions]
    moves = [
        any(side.tangent(value) is not ZERO for side, value in zip(ahead, results, strict=True))
        for results in zip(*(region.results for region in regions), strict=True)
    ]
    graphs = []
    for side, region in zip(ahead, regions, strict=True):
        moving = [value for value, flag in zip(region.results, moves, strict=True) if flag]
        results = [side.values[value] for value in region.results]
        graphs.append(side.b.finish([*results, *side.tangents_of(moving)]))
    return graphs, moves


def _given(tangents: Sequence[Tangent]) -> list[Value]:
    return [tangent for tangent in tangents if not isinstance(tangent, Zero)]


def _pushed(node: Node, moves: Sequence[bool]) -> JvpResult:
    results, moved = node.results[: len(moves)], iter(node.results[len(moves) :])
    return JvpResult(results, [next(moved) if flag else ZERO for flag in moves])
