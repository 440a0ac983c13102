"""The adjoint of a call with `recompute`: it is run again in the backward pass (D15).

Nothing of its inside is kept: the backward call takes the operands and the cotangents, runs the
callee's nodes again and then their transposes. It is marked `recompute` itself, so that the next
order keeps nothing of its inside either.
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
from wend.passes.dce import with_results


def pull_back_checkpoint(
    t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]
) -> None:
    """Append the backward call of one that keeps nothing."""
    b, parts = bwd.b, CallParts.of(node)
    ready = [
        b.instantiate(ct, result) if isinstance(ct, Value) else ct
        for ct, result in zip(cts, node.results, strict=True)
    ]
    active = [k for k, operand in enumerate(parts.operands) if operand in bwd.active]
    again = _run_again(t, parts.callee, active, ready)
    if again is None:
        return
    graph, grads, used = again
    given = [*parts.operands, *(ct for ct in ready if isinstance(ct, Value))]
    backward = b.call(graph, [given[k] for k in used], recompute=True)
    for k, ct in zip(grads, backward.results, strict=True):
        bwd.cts.add(b, parts.operands[k], ct)


def _run_again(
    t: Transposer, callee: Graph, active: Sequence[int], cts: Sequence[Cotangent]
) -> tuple[Graph, list[int], list[int]] | None:
    """The graph (operands, cotangents) → cotangents of operands, cut down to what they need.

    Also which operands those are, and which params are left.
    """
    seeds = {i: without_maybe(type) for i, type in seeds_of(cts, callee.result_types).items()}
    done = transpose_region(t, callee, active, seeds)
    if not done.grads:
        return None
    b = Build(f"{callee.name}_again")
    mapping = {param: b.param(param.type, param.name) for param in callee.params}
    mapping.update({seed: b.param(seed.type) for seed in done.seeds.values()})
    done.run_forward(b, mapping)
    for node in b.nodes:
        node.remark = Remark(is_rematerialized=True)
    found = done.run_backward(b, mapping)
    whole = b.finish([*found.values()])
    graph, used = with_results(whole, range(len(whole.results)))
    return graph, [*found], used
