"""Reverse mode through calls with a rule of the user's own (D15).

The forward form of such a call stands in its place: its outs keep the user's rule, at every order;
its residuals are differentiated as what they are, since they are what the rule is made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wend.autodiff.backward import is_constant
from wend.autodiff.cotangents import Cotangent, or_zeros
from wend.autodiff.jvp_transpose import transposed_rule
from wend.autodiff.region_transpose import transpose_region
from wend.autodiff.transpose import BackwardPass, Transposer
from wend.base.errors import NotDifferentiableError, explain
from wend.base.source import at
from wend.base.zero import ZERO
from wend.ir.graph import Graph, Node, Value
from wend.ir.types import without_maybe
from wend.ops.build import Build
from wend.ops.custom import CustomJvpParts, CustomVjpParts
from wend.passes.dce import with_results


def pull_back_custom_vjp(
    t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]
) -> None:
    """Run `fwd` in place of the call, and `bwd` on the cotangents of its results."""
    _pull_back_outs(bwd, node, CustomVjpParts.of(node), cts)


def pull_back_custom_jvp(
    t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]
) -> None:
    """The same, with a `bwd` that is the transpose of the user's jvp."""
    jvp = CustomJvpParts.of(node)
    _refuse_captured(bwd, node, jvp.name, jvp.captured, jvp.callee)
    parts = transposed_rule(t, node, jvp)
    if parts is not None:
        _pull_back_outs(bwd, node, parts, cts)


def pull_back_custom_vjp_forward(
    t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]
) -> None:
    """The rule again for the outs; what `fwd` computed besides is differentiated as it is."""
    parts = CustomVjpParts.of(node)
    stand_in = _pull_back_others(t, bwd, node, parts, cts)
    if any(ct is not ZERO for ct in cts[: parts.outs]):
        _refuse_captured(bwd, node, parts.name, parts.captured, parts.forward)
        _run_backward(bwd, node, stand_in, parts, cts)


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
    moving = [operand in bwd.active for operand in node.operands]
    refuse_captured(node, name, captured, callee, moving)


def refuse_captured(
    node: Node, name: str, captured: int, callee: Graph, moving: Sequence[bool]
) -> None:
    """A rule says nothing about values that the function closes over.

    Raises:
        NotDifferentiableError: a derivative with respect to one of them is asked for.
    """
    count = len(node.operands)
    for k in range(count - captured, count):
        if moving[k]:
            value = callee.params[k].name or f"<a traced {node.operands[k].type}>"
            raise NotDifferentiableError(
                explain(
                    f"{name}{at(node.source)}: a derivative is asked for with respect to a value "
                    "that it closes over, or takes as a nondiff argument.",
                    f"it is {value}",
                    "its rule says only what the derivatives by its other arguments are",
                    cure="pass the value as an argument that the rule knows, or hold it constant "
                    "by wend.stop_gradient.",
                )
            )


def _run_backward(
    bwd: BackwardPass, node: Node, stand_in: Node, parts: CustomVjpParts, cts: Sequence[Cotangent]
) -> None:
    """Append the call of `bwd`; `stand_in` is what gives the residuals."""
    b = bwd.b
    seeded = {i for i in parts.backwards[0].given if cts[i] is not ZERO}
    if not seeded:
        return
    backward = parts.backward_for(seeded)
    wanted = [k for k, i in enumerate(backward.wrt) if node.operands[i] in bwd.active]
    if not wanted:
        return
    graph, used = with_results(backward.graph, wanted)
    seeded_by = [(cts[i], node.results[i]) for i in backward.given]
    given = [
        _residual(b, node, stand_in, parts, k)
        if k < parts.residuals
        else or_zeros(b, *seeded_by[k - parts.residuals])
        for k in used
    ]
    found = b.call(graph, given)
    for k, ct in zip(wanted, found.results, strict=True):
        bwd.cts.add(b, node.operands[backward.wrt[k]], ct)


def _residual(b: Build, node: Node, stand_in: Node, parts: CustomVjpParts, k: int) -> Value:
    """A residual under the name it has already, if it has one: then it is not kept twice."""
    place = parts.outs + k
    value = parts.forward.results[place]
    if value in parts.forward.params:
        return node.operands[parts.forward.params.index(value)]
    if is_constant(value):
        assert value.node is not None
        b.source = node.source
        return b.constant(value.node.attrs["value"])
    first = parts.forward.results.index(value)
    return node.results[first] if first < parts.outs else stand_in.results[first]


def _pull_back_others(
    t: Transposer, bwd: BackwardPass, node: Node, parts: CustomVjpParts, cts: Sequence[Cotangent]
) -> Node:
    """Pull back through results that are no outs; return the node that stands for this one."""
    b, forward = bwd.b, parts.forward
    ready = {
        i: b.instantiate(ct, node.results[i])
        for i, ct in enumerate(cts)
        if i >= parts.outs and isinstance(ct, Value)
    }
    seeds = {i: without_maybe(forward.result_types[i]) for i in ready}
    active = [k for k, operand in enumerate(node.operands) if operand in bwd.active]
    done = transpose_region(t, forward, active, seeds)
    if not done.grads:
        return node
    kept = done.kept(forward.params)
    scratch = Build("")
    scratch.source = node.source
    more = replace(parts, forward=done.with_residuals(forward.name, kept))
    stand_in = scratch.custom_vjp_forward(more, node.operands)
    bwd.replaced[node] = [stand_in]
    given = [
        node.operands[forward.params.index(value)] if value in forward.params else result
        for value, result in zip(kept, stand_in.results[len(forward.results) :], strict=True)
    ]
    found = b.call(done.from_residuals(f"{forward.name}_backward", kept), [*given, *ready.values()])
    for k, ct in zip(done.grads, found.results, strict=True):
        bwd.cts.add(b, node.operands[k], ct)
    return stand_in
