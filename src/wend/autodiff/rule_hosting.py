"""Both modes through host calls: the call is recorded as it runs, and the record is pulled back.

The forward form replaces the node; its handle is a residual (D17). A pull is a node of the same
kind, so it has the same rule.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.autodiff.cotangents import Cotangent
from wend.autodiff.transpose import BackwardPass, Transposer
from wend.base.zero import ZERO, Zero
from wend.ir.graph import Node, Value
from wend.ir.op import Op
from wend.ops import hosting
from wend.ops.build import Build


def pull_back_host(t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]) -> None:
    """Append the pull of a host call, or of a pull."""
    b = bwd.b
    sources, targets = hosting.sources_of(node), hosting.targets_of(node)
    nonzero_cts = {
        k: b.instantiate(ct, node.results[i])
        for k, i in enumerate(targets)
        if isinstance(ct := cts[i], Value)
    }
    wrt = [k for k, i in enumerate(sources) if node.operands[i] in bwd.active]
    if not nonzero_cts or not wrt:
        return
    forward = node
    if node.op is not hosting.FORWARD[node.op]:
        scratch = Build("")
        scratch.source = node.source
        forward = _forward_form(scratch, node)
        bwd.replaced[node] = [forward]
    primals = [node.operands[i] for i in sources]
    pull = _pull(b, hosting.py_pull, forward, primals, nonzero_cts, wrt)
    for k, ct in zip(wrt, pull.results, strict=True):
        bwd.cts.add(b, node.operands[sources[k]], ct)


def jvp_host(
    b: Build, node: Node, tangents: Sequence[Value | Zero]
) -> tuple[Sequence[Value], Sequence[Value | Zero]]:
    """Transpose the pull, which is linear in its cotangents: so its point may be zeros.

    Returns:
        The results of the node, and a tangent or ZERO for each.
    """
    sources, targets = hosting.sources_of(node), hosting.targets_of(node)
    active = {k: t for k, i in enumerate(sources) if isinstance(t := tangents[i], Value)}
    if not targets or not active:
        b.nodes.append(node)
        return node.results, [ZERO] * len(node.results)
    forward = _forward_form(b, node)
    results = forward.results[: len(node.results)]
    primals = [node.operands[i] for i in sources]
    zeros = {k: b.zeros_like(results[i]) for k, i in enumerate(targets)}
    pull = _pull(b, hosting.py_pull_forward, forward, primals, zeros, list(active))
    primals += zeros.values()
    wrt = [len(sources) + k for k in zeros]
    pull_of_pull = _pull(b, hosting.py_pull, pull, primals, dict(enumerate(active.values())), wrt)
    result_tangents: list[Value | Zero] = [ZERO] * len(results)
    for i, tangent in zip(targets, pull_of_pull.results, strict=True):
        result_tangents[i] = tangent
    return results, result_tangents


def _forward_form(b: Build, node: Node) -> Node:
    """Return the forward form of a node, which gives a handle."""
    if node.op is hosting.FORWARD[node.op]:
        b.nodes.append(node)
        return node
    return b.emit_node(hosting.FORWARD[node.op], node.operands, **node.attrs)


def _pull(
    b: Build,
    op: Op,
    forward: Node,
    sources: Sequence[Value],
    cts: dict[int, Value],
    wrt: Sequence[int],
) -> Node:
    """Append a pull of what a node has recorded."""
    operands = [forward.results[-1], *sources, *cts.values()]
    return b.emit_node(op, operands, sources=len(sources), seeded=tuple(cts), wrt=tuple(wrt))
