"""Forward mode on whole graphs: values and tangents in one graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wend.autodiff.jvp_custom import ResultsAndTangents, jvp_custom_jvp, jvp_custom_vjp
from wend.autodiff.jvp_if import jvp_call, jvp_graph, jvp_if
from wend.autodiff.jvp_interpreter import JvpFrame, JvpInterpreter, JvpResult, Tangent
from wend.autodiff.jvp_parallel_map import jvp_parallel_map
from wend.autodiff.jvp_while import jvp_while
from wend.autodiff.rule_hosting import jvp_host
from wend.base.zero import ZERO, Zero
from wend.ir.graph import Graph, Node, Value
from wend.ops.build import Build
from wend.ops.control import call, if_, while_
from wend.ops.custom import custom_jvp, custom_vjp, custom_vjp_forward
from wend.ops.hosting import FORWARD
from wend.ops.parallel_map import parallel_map
from wend.ops.schedules import ScheduledParts, scheduled
from wend.passes.dedup_callees import dedup_callees
from wend.passes.pipeline import before_differentiating


def _jvp_custom_jvp(
    p: JvpInterpreter, b: Build, node: Node, tangents: Sequence[Tangent]
) -> JvpResult:
    return JvpResult(*jvp_custom_jvp(b, node, tangents))


def _jvp_custom_vjp(
    p: JvpInterpreter, b: Build, node: Node, tangents: Sequence[Tangent]
) -> JvpResult:
    def jvp_call(
        builder: Build, graph: Graph, operands: Sequence[Value], tangents_in: Sequence[Tangent]
    ) -> ResultsAndTangents:
        result = jvp_graph(p, builder, graph, operands, tangents_in)
        return result.results, result.tangents

    return JvpResult(*jvp_custom_vjp(jvp_call, b, node, tangents))


def _jvp_host(p: JvpInterpreter, b: Build, node: Node, tangents: Sequence[Tangent]) -> JvpResult:
    return JvpResult(*jvp_host(b, node, tangents))


def _jvp_scheduled(
    p: JvpInterpreter, b: Build, node: Node, tangents: Sequence[Tangent]
) -> JvpResult:
    """Append the plain form with its tangents, and the call itself for what only that computes."""
    parts = ScheduledParts.of(node)
    plain = jvp_graph(p, b, parts.plain, parts.operands, tangents, recompute=True)
    run = b.scheduled(parts.operands, parts.callee, parts.plain, outs=parts.outs)
    return JvpResult([*plain.results[: parts.outs], *run.results[parts.outs :]], plain.tangents)


_interpreter = JvpInterpreter(
    {
        while_: jvp_while,
        if_: jvp_if,
        call: jvp_call,
        parallel_map: jvp_parallel_map,
        scheduled: _jvp_scheduled,
        custom_jvp: _jvp_custom_jvp,
        custom_vjp: _jvp_custom_vjp,
        custom_vjp_forward: _jvp_custom_vjp,
        **dict.fromkeys(FORWARD, _jvp_host),
    }
)


class JVP(NamedTuple):
    """A graph with its tangents.

    Attributes:
        graph: (params…, tangents of the active params…) → (results…, tangents of the connected
            results…).
        connected: for each result, whether it has a tangent; the others are constant in the params.
    """

    graph: Graph
    connected: tuple[bool, ...]


def jvp(graph: Graph, wrt: Sequence[int]) -> JVP:
    """Differentiate a graph forward.

    Args:
        graph: the graph to differentiate; it is not changed.
        wrt: positions of the params whose tangents are given, in rising order.
    """
    graph = before_differentiating(graph)
    frame = JvpFrame(Build(f"{graph.name}_jvp"))
    frame.add_params(graph.params, [i in set(wrt) for i in range(len(graph.params))])
    _interpreter.run(frame, graph.nodes)
    tangents = [frame.tangent(result) for result in graph.results]
    nonzero = [tangent for tangent in tangents if not isinstance(tangent, Zero)]
    values = [frame.values[result] for result in graph.results]
    connected = tuple(tangent is not ZERO for tangent in tangents)
    return JVP(dedup_callees(frame.b.finish([*values, *nonzero])), connected)
