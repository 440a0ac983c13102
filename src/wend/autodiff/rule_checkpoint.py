"""The adjoint of a call with `recompute`: the callee runs again in the backward pass (D15).

No residuals are kept: the backward call takes the operands and the cotangents, and runs the
callee's nodes, then their transposes. It is marked `recompute` itself, so that the next order of
differentiation keeps no residuals either.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.autodiff.cotangents import Cotangent
from wend.autodiff.region_transpose import seeds_of, transpose_region
from wend.autodiff.transpose import BackwardPass, Transposer
from wend.ir.graph import Graph, Node, Remark, Value
from wend.ir.types import without_maybe
from wend.ops.build import Build
from wend.ops.control import CallParts
from wend.passes.dce import select_results


def pull_back_checkpoint(
    t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]
) -> None:
    """Append the backward call, which recomputes the callee."""
    pull_back_recomputed(t, bwd, node, CallParts.of(node).callee, cts)


def pull_back_recomputed(
    t: Transposer, bwd: BackwardPass, node: Node, callee: Graph, cts: Sequence[Cotangent]
) -> None:
    """Append a backward call, which recomputes a graph of the node's operands and results."""
    b, operands = bwd.b, node.operands
    instantiated_cts = [
        b.instantiate(ct, result) if isinstance(ct, Value) else ct
        for ct, result in zip(cts, node.results, strict=True)
    ]
    active = [k for k, operand in enumerate(operands) if operand in bwd.active]
    recomputation = recompute_and_transpose(t, callee, active, instantiated_cts)
    if recomputation is None:
        return
    graph, grads, used = recomputation
    arguments = [*operands, *(ct for ct in instantiated_cts if isinstance(ct, Value))]
    backward = b.call(graph, [arguments[k] for k in used], recompute=True)
    for k, ct in zip(grads, backward.results, strict=True):
        bwd.cts.add(b, operands[k], ct)


def recompute_and_transpose(
    t: Transposer, callee: Graph, active: Sequence[int], cts: Sequence[Cotangent]
) -> tuple[Graph, list[int], list[int]] | None:
    """Return the graph (operands, cotangents) → cotangents of operands, without unused params.

    Also return which operands get one, and which params remain. None if no operand gets one.
    """
    seeds = {i: without_maybe(type) for i, type in seeds_of(cts, callee.result_types).items()}
    transposed = transpose_region(t, callee, active, seeds)
    if not transposed.grads:
        return None
    b = Build(f"{callee.name}_again")
    mapping = {param: b.param(param.type, param.name) for param in callee.params}
    mapping.update({seed: b.param(seed.type) for seed in transposed.seeds.values()})
    transposed.append_forward(b, mapping)
    for node in b.nodes:
        node.remark = Remark(is_rematerialized=True)
    grads = transposed.append_backward(b, mapping)
    whole = b.finish([*grads.values()])
    graph, used = select_results(whole, range(len(whole.results)))
    return graph, [*grads], used
