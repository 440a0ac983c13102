"""Forward mode through calls with a user-defined derivative rule.

Each rule gets the node on operands of the graph under construction, but not yet appended, and a
tangent or ZERO for each operand. It appends the computation and returns the results, and a
tangent or ZERO for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from wend.autodiff.cotangents import instantiate_or_zeros
from wend.autodiff.jvp_transpose import depends_on, not_linear_error, with_zeros
from wend.autodiff.rule_custom import refuse_captured
from wend.autodiff.vjp import vjp
from wend.base.zero import ZERO, Zero
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import inline
from wend.ops.build import Build
from wend.ops.custom import CustomJvpParts, CustomVjpParts, custom_vjp

Tangent: TypeAlias = Value | Zero
ResultsAndTangents: TypeAlias = tuple[Sequence[Value], Sequence[Tangent]]
# Appends a call of a graph with its tangents: (b, graph, operands, tangents) → both.
JvpCall: TypeAlias = Callable[
    [Build, Graph, Sequence[Value], Sequence[Tangent]], ResultsAndTangents
]


def jvp_custom_jvp(b: Build, node: Node, tangents: Sequence[Tangent]) -> ResultsAndTangents:
    """Call the user's jvp for the tangents; Zero tangents that it takes become arrays of zeros.

    The outs are those of the node: their derivative is the rule's at every order.
    """
    parts = CustomJvpParts.of(node)
    active = [isinstance(tangent, Value) for tangent in tangents]
    refuse_captured(node, parts.name, parts.captured, parts.callee, active)
    b.nodes.append(node)
    if not any(active[i] for i in parts.wrt):
        return node.results, [ZERO] * len(node.results)
    wrt_tangents = [instantiate_or_zeros(b, tangents[i], node.operands[i]) for i in parts.wrt]
    jvp_results = b.call(parts.jvp, [*node.operands, *wrt_tangents]).results
    out_tangents = dict(zip(parts.tangent_outs, jvp_results[parts.outs :], strict=True))
    return node.results, [out_tangents.get(i, ZERO) for i in range(parts.outs)]


def jvp_custom_vjp(
    jvp_call: JvpCall, b: Build, node: Node, tangents: Sequence[Tangent]
) -> ResultsAndTangents:
    """Apply the transpose of the user's bwd, which must be linear, to the residuals of their fwd.

    For a `custom_vjp` and for its forward form, whose further results get the tangents that their
    own computation gives them.

    Raises:
        NotDifferentiableError: `bwd` is not linear in the cotangents.
    """
    parts = CustomVjpParts.of(node)
    active = [isinstance(tangent, Value) for tangent in tangents]
    active_wrt = {i for i in parts.backwards[0].wrt if active[i]}
    if node.op is custom_vjp or active_wrt:
        refuse_captured(node, parts.name, parts.captured, parts.forward, active)
    if node.op is custom_vjp:
        if not active_wrt:
            b.nodes.append(node)
            return node.results, [ZERO] * len(node.results)
        node = b.custom_vjp_forward(parts, node.operands)
        return node.results[: parts.outs], _out_tangents(b, node, parts, tangents)
    b.nodes.append(node)
    outs = _out_tangents(b, node, parts, tangents) if active_wrt else [ZERO] * parts.outs
    further = range(parts.outs, len(node.results))
    forward = Graph(
        parts.forward.name,
        parts.forward.params,
        parts.forward.nodes,
        tuple(parts.forward.results[i] for i in further),
    )
    _, further_tangents = jvp_call(b, forward, node.operands, tangents)
    return node.results, [*outs, *further_tangents]


def _out_tangents(
    b: Build, node: Node, parts: CustomVjpParts, tangents: Sequence[Tangent]
) -> list[Tangent]:
    """Return the tangents of the outs of a forward form."""
    backward = parts.backwards[0]
    residuals = node.results[parts.outs : parts.outs + parts.residuals]
    transposed, connected = _transpose_bwd(node, parts)
    outs = [node.results[i] for i in backward.seeded]
    wrt_tangents = [instantiate_or_zeros(b, tangents[i], node.operands[i]) for i in backward.wrt]
    call_results = b.call(transposed, [*outs, *residuals, *wrt_tangents]).results
    tangent_of = dict(zip((backward.seeded[k] for k in connected), call_results, strict=True))
    return [tangent_of.get(i, ZERO) for i in range(parts.outs)]


def _transpose_bwd(node: Node, parts: CustomVjpParts) -> tuple[Graph, list[int]]:
    """Return the first backward graph as (outs, residuals, tangents) → tangents of outs.

    The outs are operands for their sizes only. Also return which of their tangents there are.
    """
    graph = parts.backwards[0].graph
    residuals, linear = graph.params[: parts.residuals], graph.params[parts.residuals :]
    cotangents = range(parts.residuals, len(graph.params))
    pair = vjp(graph, cotangents, range(len(graph.results)))
    b = Build(f"{parts.name}_jvp")
    for ct in linear:
        b.param(ct.type)
    residual_params = [b.param(residual.type) for residual in residuals]
    tangents = [b.param(result.type) for result in graph.results]
    cts = [b.param(ct.type) for ct in linear]
    values = inline(pair.forward, [*residual_params, *cts], b.nodes)[len(graph.results) :]
    results = inline(pair.backward, [*values, *tangents], b.nodes)
    replacements = {len(b.params) - len(cts) + k: k for k in range(len(cts))}
    whole = b.finish(results)
    if depends_on(whole, None, replacements):
        raise not_linear_error(node, parts.name, "bwd", "cotangents")
    connected = [k for k, is_connected in enumerate(pair.connected) if is_connected]
    return with_zeros(whole, range(len(results)), replacements), connected
