"""Backward passes through executed nodes; the backward operations run at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from wend.autodiff.cotangents import Cotangent, Cotangents
from wend.autodiff.transpose import BackwardPass, Transposer
from wend.backends.compiled_graph import CompiledGraph
from wend.base.errors import NotDifferentiableError, explain
from wend.base.source import at
from wend.base.zero import ZERO, Zero
from wend.ir.graph import Node, Value
from wend.ir.traverse import operands_first
from wend.ir.types import MaybeType
from wend.ops.control import call
from wend.ops.hosting import HOST_CALLS
from wend.tape.eager_recording import CallPullback, EagerBuild
from wend.tape.recorded_value import ExecutedNode, RecordedValue


def backward_slice(targets: Iterable[Value], tape: int) -> list[ExecutedNode]:
    """Return the nodes that values depend on and that a tape follows, operands first."""

    def operands(value: Value) -> Sequence[Value]:
        assert isinstance(value, RecordedValue)
        return value.node.operands if value.node is not None and value.tapes & tape else ()

    nodes: dict[ExecutedNode, None] = {}
    for value in operands_first(targets, operands):
        if isinstance(value.node, ExecutedNode) and value.tapes & tape:  # type: ignore[attr-defined]
            nodes[value.node] = None
    return list(nodes)


def pull_back(
    b: EagerBuild,
    tape: int,
    seeds: Sequence[tuple[Value, Value]],
    sources: Sequence[Value],
) -> list[Value | None]:
    """Return the cotangents of `sources`, given those of the targets.

    Args:
        b: runs the backward operations, which are recorded if a tape follows them.
        tape: the bit of the tape.
        seeds: pairs of a target and its cotangent.
        sources: recorded values, possibly intermediate ones.

    Returns:
        For each source its cotangent; None if no path leads from it to a target.
    """
    nodes = backward_slice([target for target, _ in seeds], tape)
    bwd = BackwardPass(b, Cotangents(), _active_values(nodes, sources, tape))  # type: ignore[arg-type]
    for target, ct in seeds:
        bwd.seed(target, ct)
    source_set, source_cts = set(sources), dict[Value, Cotangent]()
    # Like compiled code, a backward pass computes inf and NaN without warnings.
    with np.errstate(all="ignore"):
        for node in reversed(nodes):
            # All users of these results have been pulled back, so their cotangents are complete,
            # and it is known whether an optional one is absent.
            for result in node.results:
                arrived = bwd.cts.get(result)
                if isinstance(arrived, RecordedValue) and isinstance(arrived.type, MaybeType):
                    is_zero = arrived.concrete is ZERO
                    bwd.cts.set(result, ZERO if is_zero else b.present(arrived))
            source_cts.update(
                (value, bwd.cts.get(value)) for value in node.results if value in source_set
            )
            _transposer.pull_back(bwd, [node])
        for value in source_set - source_cts.keys():
            source_cts[value] = bwd.cts.get(value)
        b.source = None
        return [_instantiate(b, source_cts[value], value) for value in sources]


def _instantiate(b: EagerBuild, ct: Cotangent, source: Value) -> Value | None:
    return None if isinstance(ct, Zero) else b.instantiate(ct, source)


def _active_values(nodes: Iterable[Node], sources: Iterable[Value], tape: int) -> set[Value]:
    """Return the values that depend on the sources."""
    active = set(sources)
    for node in nodes:
        if not active.isdisjoint(node.operands):
            active.update(v for v in node.results if v.tapes & tape)  # type: ignore[attr-defined]
    return active


def _pull_back_call(t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]) -> None:
    """Run the backward graph of a call on the residuals that its forward form returned."""
    del t
    assert isinstance(node, ExecutedNode)
    pullback: CallPullback = node.pullback
    b: Any = bwd.b
    result_cts = {
        k: b.instantiate(ct, node.results[k]) for k, ct in enumerate(cts) if ct is not ZERO
    }
    with b.on_backend(pullback.backend):
        if max(result_cts) < pullback.result_count:
            connected, operand_cts = _run_backward(b, node, pullback, result_cts)
        else:
            connected, operand_cts = _rerun_forward(b, node, pullback, result_cts)
    cotangents = iter(operand_cts)
    for k, is_connected in zip(pullback.wrt, connected, strict=True):
        if is_connected:
            ct = next(cotangents)
            if node.operands[k] in bwd.active:
                bwd.cts.add(b, node.operands[k], b.instantiate(ct, node.operands[k]))


def _run_backward(
    b: EagerBuild, node: ExecutedNode, pullback: CallPullback, result_cts: dict[int, Value]
) -> tuple[Sequence[bool], Sequence[Value]]:
    backward = pullback.compiled.forward_backward(pullback.wrt).backward([*result_cts])
    seeds = [result_cts[k] for k in sorted(result_cts)]
    operands = [*node.results[pullback.result_count :], *seeds]
    return backward.connected, b.call(backward.graph, operands).results


def _rerun_forward(
    b: EagerBuild, node: ExecutedNode, pullback: CallPullback, result_cts: dict[int, Value]
) -> tuple[Sequence[bool], Sequence[Value]]:
    """Differentiate a call whose forward form must be differentiated too, for second derivatives.

    The residuals for that were not saved, so the forward form runs again in a form that saves them.

    Raises:
        NotDifferentiableError: it calls Python, which must not run twice.
    """
    for inner in node.regions[0].walk():
        if inner.op in HOST_CALLS:
            raise NotDifferentiableError(
                explain(
                    f"the gradient of a gradient{at(node.source)} would run "
                    f"`{node.regions[0].name}` again, with the Python called{at(inner.source)}.",
                    "two tapes, one inside the other, follow a compiled function",
                    cure="take both gradients by functions, wend.grad(wend.grad(f)), or run the "
                    "function as Python: wend.config(eager=True).",
                )
            )
    compiled = CompiledGraph.of(node.regions[0])
    forms = compiled.residual_pair(pullback.wrt, tuple(sorted(result_cts)))
    residuals = b.call(forms.forward, node.operands).results
    seeds = [result_cts[k] for k in sorted(result_cts)]
    return forms.connected, b.call(forms.backward, [*residuals, *seeds]).results


_transposer = Transposer({call: _pull_back_call})
