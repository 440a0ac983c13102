"""Reverse mode through calls with a user-defined derivative rule (D15).

The forward form of such a call replaces it. Its outs keep the user's rule at every order; its
residuals, which the rule consists of, are differentiated by their own computation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wend.autodiff.cotangents import Cotangent, instantiate_or_zeros
from wend.autodiff.jvp_transpose import transpose_jvp_rule
from wend.autodiff.region_transpose import transpose_region
from wend.autodiff.transpose import BackwardPass, Transposer
from wend.base.errors import NotDifferentiableError, explain
from wend.base.source import at
from wend.base.zero import ZERO
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import without_maybe
from wend.ops.build import Build
from wend.ops.creating import is_constant
from wend.ops.custom import CustomJvpParts, CustomVjpParts
from wend.passes.dce import select_results


def pull_back_custom_vjp(
    t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]
) -> None:
    """Run `fwd` in place of the call, and `bwd` on the cotangents of its results."""
    _pull_back_outs(bwd, node, CustomVjpParts.of(node), cts)


def pull_back_custom_jvp(
    t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]
) -> None:
    """Do the same with a `bwd` that is the transpose of the user's jvp."""
    jvp = CustomJvpParts.of(node)
    _refuse_captured(bwd, node, jvp.name, jvp.captured, jvp.callee)
    parts = transpose_jvp_rule(t, node, jvp)
    if parts is not None:
        _pull_back_outs(bwd, node, parts, cts)


def pull_back_custom_vjp_forward(
    t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]
) -> None:
    """Apply the rule again to the outs; differentiate the residuals by their own computation."""
    parts = CustomVjpParts.of(node)
    replacement = _pull_back_residuals(t, bwd, node, parts, cts)
    if any(ct is not ZERO for ct in cts[: parts.outs]):
        _refuse_captured(bwd, node, parts.name, parts.captured, parts.forward)
        _run_backward(bwd, node, replacement, parts, cts)


def _pull_back_outs(
    bwd: BackwardPass, node: Node, parts: CustomVjpParts, cts: Sequence[Cotangent]
) -> None:
    _refuse_captured(bwd, node, parts.name, parts.captured, parts.forward)
    scratch = Build("")
    scratch.source = node.source
    forward = scratch.custom_vjp_forward(parts, node.operands)
    bwd.replaced[node] = [forward]
    _run_backward(bwd, node, forward, parts, cts)


def _refuse_captured(
    bwd: BackwardPass, node: Node, name: str, captured: int, callee: Graph
) -> None:
    is_active = [operand in bwd.active for operand in node.operands]
    refuse_captured(node, name, captured, callee, is_active)


def refuse_captured(
    node: Node, name: str, captured: int, callee: Graph, is_active: Sequence[bool]
) -> None:
    """Check that no derivative is asked for with respect to a captured value.

    Raises:
        NotDifferentiableError: a captured value is active; the rule does not cover those.
    """
    count = len(node.operands)
    for k in range(count - captured, count):
        if is_active[k]:
            value = callee.params[k].name or f"<a traced {node.operands[k].type}>"
            raise NotDifferentiableError(
                explain(
                    f"{name}{at(node.source)}: a derivative is requested with respect to a value "
                    "that it closes over, or takes as a nondiff argument.",
                    f"it is {value}",
                    "its rule only defines derivatives with respect to its other arguments",
                    cure="pass the value as an argument that the rule covers, or keep it constant "
                    "with wend.stop_gradient.",
                )
            )


def _run_backward(
    bwd: BackwardPass,
    node: Node,
    replacement: Node,
    parts: CustomVjpParts,
    cts: Sequence[Cotangent],
) -> None:
    """Append the call of `bwd`; `replacement` gives the residuals."""
    b = bwd.b
    seeded = {i for i in parts.backwards[0].seeded if cts[i] is not ZERO}
    if not seeded:
        return
    backward = parts.backward_for(seeded)
    active_wrt = [k for k, i in enumerate(backward.wrt) if node.operands[i] in bwd.active]
    if not active_wrt:
        return
    graph, used = select_results(backward.graph, active_wrt)
    cts_and_outs = [(cts[i], node.results[i]) for i in backward.seeded]
    arguments = [
        _residual(b, node, replacement, parts, k)
        if k < parts.residuals
        else instantiate_or_zeros(b, *cts_and_outs[k - parts.residuals])
        for k in used
    ]
    call_node = b.call(graph, arguments)
    for k, ct in zip(active_wrt, call_node.results, strict=True):
        bwd.cts.add(b, node.operands[backward.wrt[k]], ct)


def _residual(b: Build, node: Node, replacement: Node, parts: CustomVjpParts, k: int) -> Value:
    """Return a residual, under its existing value if it has one, so that it is not kept twice."""
    value = parts.forward.results[parts.outs + k]
    if value in parts.forward.params:
        return node.operands[parts.forward.params.index(value)]
    if is_constant(value):
        assert value.node is not None
        b.source = node.source
        return b.constant(value.node.attrs["value"])
    first = parts.forward.results.index(value)
    return node.results[first] if first < parts.outs else replacement.results[first]


def _pull_back_residuals(
    t: Transposer, bwd: BackwardPass, node: Node, parts: CustomVjpParts, cts: Sequence[Cotangent]
) -> Node:
    """Pull back through the results that are no outs; return the node that replaces this one."""
    b, forward = bwd.b, parts.forward
    instantiated_cts = {
        i: b.instantiate(ct, node.results[i])
        for i, ct in enumerate(cts)
        if i >= parts.outs and isinstance(ct, Value)
    }
    seeds = {i: without_maybe(forward.result_types[i]) for i in instantiated_cts}
    active = [k for k, operand in enumerate(node.operands) if operand in bwd.active]
    transposed = transpose_region(t, forward, active, seeds)
    if not transposed.grads:
        return node
    residuals = transposed.residuals(forward.params)
    scratch = Build("")
    scratch.source = node.source
    extended_parts = replace(parts, forward=transposed.with_residuals(forward.name, residuals))
    replacement = scratch.custom_vjp_forward(extended_parts, node.operands)
    bwd.replaced[node] = [replacement]
    arguments = [
        node.operands[forward.params.index(value)] if value in forward.params else result
        for value, result in zip(
            residuals, replacement.results[len(forward.results) :], strict=True
        )
    ]
    backward = b.call(
        transposed.from_residuals(f"{forward.name}_backward", residuals),
        [*arguments, *instantiated_cts.values()],
    )
    for k, ct in zip(transposed.grads, backward.results, strict=True):
        bwd.cts.add(b, node.operands[k], ct)
    return replacement
