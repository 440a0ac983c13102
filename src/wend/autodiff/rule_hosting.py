"""Both modes through calls of Python: they are run recorded, and what was recorded is pulled back.

The forward form stands in the node's place; its handle is a residual (D17). A pull is a node of the
same kind, so it has the same rule.
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
    """Append the pull of a call of Python, or of a pull."""
    b = bwd.b
    sources, targets = hosting.sources_of(node), hosting.targets_of(node)
    arrived = {
        k: b.instantiate(ct, node.results[i])
        for k, i in enumerate(targets)
        if isinstance(ct := cts[i], Value)
    }
    wrt = [k for k, i in enumerate(sources) if node.operands[i] in bwd.active]
    if not arrived or not wrt:
        return
    forward = node
    if node.op is not hosting.FORWARD[node.op]:
        scratch = Build("")
        scratch.source = node.source
        forward = _recorded(scratch, node)
        bwd.replaced[node] = [forward]
    given = [node.operands[i] for i in sources]
    pulled = _pull(b, hosting.py_pull, forward, given, arrived, wrt)
    for k, ct in zip(wrt, pulled.results, strict=True):
        bwd.cts.add(b, node.operands[sources[k]], ct)


def jvp_host(
    b: Build, node: Node, tangents: Sequence[Value | Zero]
) -> tuple[Sequence[Value], Sequence[Value | Zero]]:
    """The transpose of the pull, which is linear in its cotangents: zeros are as good as any.

    Returns:
        The results of the node, and a tangent or ZERO for each.
    """
    sources, targets = hosting.sources_of(node), hosting.targets_of(node)
    moving = {k: t for k, i in enumerate(sources) if isinstance(t := tangents[i], Value)}
    if not targets or not moving:
        b.nodes.append(node)
        return node.results, [ZERO] * len(node.results)
    forward = _recorded(b, node)
    results = forward.results[: len(node.results)]
    given = [node.operands[i] for i in sources]
    zeros = {k: b.zeros_like(results[i]) for k, i in enumerate(targets)}
    pulled = _pull(b, hosting.py_pull_forward, forward, given, zeros, list(moving))
    given += zeros.values()
    wrt = [len(sources) + k for k in zeros]
    moved = _pull(b, hosting.py_pull, pulled, given, dict(enumerate(moving.values())), wrt)
    found: list[Value | Zero] = [ZERO] * len(results)
    for i, tangent in zip(targets, moved.results, strict=True):
        found[i] = tangent
    return results, found


def _recorded(b: Build, node: Node) -> Node:
    """The node that stands for one, and gives a handle."""
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
    return b.emit_node(op, operands, sources=len(sources), given=tuple(cts), wrt=tuple(wrt))
