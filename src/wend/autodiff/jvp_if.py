"""Forward mode of `If` and `Call`: regions of values become regions of values and tangents."""

from __future__ import annotations

from collections.abc import Sequence

from wend.autodiff.jvp_interpreter import JvpInterpreter, JvpResult, Tangent
from wend.base.zero import ZERO, Zero
from wend.ir.graph import Graph, Node, Value
from wend.ops.build import Build
from wend.ops.control import CallParts, IfParts


def jvp_if(p: JvpInterpreter, b: Build, node: Node, tangents: Sequence[Tangent]) -> JvpResult:
    """Append the branches with their tangents; a branch gives zeros for an inactive result."""
    parts = IfParts.of(node)
    branches, active = _jvp_regions(p, parts.branches, tangents[1:])
    node_with_tangents = b.if_(parts.selector, [*parts.operands, *_nonzero(tangents)], branches)
    return _jvp_result(node_with_tangents, active)


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
    (callee,), active = _jvp_regions(p, (graph,), tangents)
    return _jvp_result(
        b.call(callee, [*operands, *_nonzero(tangents)], recompute=recompute), active
    )


def _jvp_regions(
    p: JvpInterpreter, regions: Sequence[Graph], tangents: Sequence[Tangent]
) -> tuple[list[Graph], list[bool]]:
    """Return regions with tangents as further params and results, and which results have one."""
    active = [tangent is not ZERO for tangent in tangents]
    frames = [p.jvp_region(region, active)[0] for region in regions]
    active_results = [
        any(frame.tangent(value) is not ZERO for frame, value in zip(frames, results, strict=True))
        for results in zip(*(region.results for region in regions), strict=True)
    ]
    graphs = []
    for frame, region in zip(frames, regions, strict=True):
        active_values = [
            value for value, flag in zip(region.results, active_results, strict=True) if flag
        ]
        results = [frame.values[value] for value in region.results]
        graphs.append(frame.b.finish([*results, *frame.tangents_of(active_values)]))
    return graphs, active_results


def _nonzero(tangents: Sequence[Tangent]) -> list[Value]:
    return [tangent for tangent in tangents if not isinstance(tangent, Zero)]


def _jvp_result(node: Node, active: Sequence[bool]) -> JvpResult:
    results, tangents = node.results[: len(active)], iter(node.results[len(active) :])
    return JvpResult(results, [next(tangents) if flag else ZERO for flag in active])
