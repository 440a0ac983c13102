"""Forward mode through calls with a rule of the user's own.

Each rule is given the node, on operands of the graph under construction but not yet in it, and a
tangent or ZERO for each operand. It appends what gives the results, and returns those and a
tangent or ZERO for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from wend.autodiff.cotangents import or_zeros
from wend.autodiff.jvp_transpose import depends, not_linear, with_zeros
from wend.autodiff.rule_custom import refuse_captured
from wend.autodiff.vjp import vjp
from wend.base.zero import ZERO, Zero
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import inline
from wend.ops.build import Build
from wend.ops.custom import CustomJvpParts, CustomVjpParts, custom_vjp

Tangent: TypeAlias = Value | Zero
Moved: TypeAlias = tuple[Sequence[Value], Sequence[Tangent]]
# Appends a call of a graph with its tangents: (b, graph, operands, tangents) → what has moved.
JvpCall: TypeAlias = Callable[[Build, Graph, Sequence[Value], Sequence[Tangent]], Moved]


def jvp_custom_jvp(b: Build, node: Node, tangents: Sequence[Tangent]) -> Moved:
    """The user's jvp gives the tangents; Zero ones that it takes become arrays of zeros.

    The outs are those of the node: their derivative is the rule's at every order.
    """
    parts = CustomJvpParts.of(node)
    moving = [isinstance(tangent, Value) for tangent in tangents]
    refuse_captured(node, parts.name, parts.captured, parts.callee, moving)
    b.nodes.append(node)
    if not any(moving[i] for i in parts.wrt):
        return node.results, [ZERO] * len(node.results)
    given = [or_zeros(b, tangents[i], node.operands[i]) for i in parts.wrt]
    found = b.call(parts.jvp, [*node.operands, *given]).results
    moved = dict(zip(parts.moved, found[parts.outs :], strict=True))
    return node.results, [moved.get(i, ZERO) for i in range(parts.outs)]


def jvp_custom_vjp(jvp_call: JvpCall, b: Build, node: Node, tangents: Sequence[Tangent]) -> Moved:
    """The transpose of the user's bwd, which must be linear, on the residuals of their fwd.

    For a `custom_vjp` and for its forward form, whose further results have the tangents that their
    own computation gives them.

    Raises:
        NotDifferentiableError: `bwd` is not linear in the cotangents.
    """
    parts = CustomVjpParts.of(node)
    moving = [isinstance(tangent, Value) for tangent in tangents]
    ruled = {i for i in parts.backwards[0].wrt if moving[i]}
    if node.op is custom_vjp or ruled:
        refuse_captured(node, parts.name, parts.captured, parts.forward, moving)
    if node.op is custom_vjp:
        if not ruled:
            b.nodes.append(node)
            return node.results, [ZERO] * len(node.results)
        node = b.custom_vjp_forward(parts, node.operands)
        return node.results[: parts.outs], _outs_moved(b, node, parts, tangents)
    b.nodes.append(node)
    outs = _outs_moved(b, node, parts, tangents) if ruled else [ZERO] * parts.outs
    others = range(parts.outs, len(node.results))
    forward = Graph(
        parts.forward.name,
        parts.forward.params,
        parts.forward.nodes,
        tuple(parts.forward.results[i] for i in others),
    )
    _, found = jvp_call(b, forward, node.operands, tangents)
    return node.results, [*outs, *found]


def _outs_moved(
    b: Build, node: Node, parts: CustomVjpParts, tangents: Sequence[Tangent]
) -> list[Tangent]:
    """The tangents of the outs of a forward form."""
    backward = parts.backwards[0]
    residuals = node.results[parts.outs : parts.outs + parts.residuals]
    transposed, places = _transposed(node, parts)
    outs = [node.results[i] for i in backward.given]
    given = [or_zeros(b, tangents[i], node.operands[i]) for i in backward.wrt]
    found = b.call(transposed, [*outs, *residuals, *given]).results
    moved = dict(zip((backward.given[k] for k in places), found, strict=True))
    return [moved.get(i, ZERO) for i in range(parts.outs)]


def _transposed(node: Node, parts: CustomVjpParts) -> tuple[Graph, list[int]]:
    """The first backward graph as outs, residuals and tangents of operands → tangents of outs.

    The outs are there for their sizes. Also which of their tangents there are.
    """
    graph = parts.backwards[0].graph
    residuals, linear = graph.params[: parts.residuals], graph.params[parts.residuals :]
    cotangents = range(parts.residuals, len(graph.params))
    pair = vjp(graph, cotangents, range(len(graph.results)))
    b = Build(f"{parts.name}_jvp")
    for ct in linear:
        b.param(ct.type)
    kept = [b.param(residual.type) for residual in residuals]
    tangents = [b.param(result.type) for result in graph.results]
    cts = [b.param(ct.type) for ct in linear]
    values = inline(pair.forward, [*kept, *cts], b.nodes)[len(graph.results) :]
    found = inline(pair.backward, [*values, *tangents], b.nodes)
    replacements = {len(b.params) - len(cts) + k: k for k in range(len(cts))}
    whole = b.finish(found)
    if depends(whole, None, replacements):
        raise not_linear(node, parts.name, "bwd", "cotangents")
    places = [k for k, is_connected in enumerate(pair.connected) if is_connected]
    return with_zeros(whole, range(len(found)), replacements), places
