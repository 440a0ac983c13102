"""Pulls cotangents back through recorded values, by running the backward operations at once."""

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
from wend.tape.recorded_value import Ran, RecordedValue


def backward_slice(targets: Iterable[Value], tape: int) -> list[Ran]:
    """The nodes that lead to values, of those that a tape follows, operands first."""

    def operands(value: Value) -> Sequence[Value]:
        assert isinstance(value, RecordedValue)
        return value.node.operands if value.node is not None and value.tapes & tape else ()

    found: dict[Ran, None] = {}
    for value in operands_first(targets, operands):
        if isinstance(value.node, Ran) and value.tapes & tape:  # type: ignore[attr-defined]
            found[value.node] = None
    return list(found)


def pull_back(
    b: EagerBuild,
    tape: int,
    seeds: Sequence[tuple[Value, Value]],
    sources: Sequence[Value],
) -> list[Value | None]:
    """The cotangents of `sources`, from pairs of a target and its cotangent.

    Args:
        b: where the backward operations run, and are recorded if a tape follows them.
        tape: the bit of the tape that is asked.
        seeds: the targets with their cotangents.
        sources: recorded values, also ones that others are computed from.

    Returns:
        For each source its cotangent; None where no path leads from it to a target.
    """
    nodes = backward_slice([target for target, _ in seeds], tape)
    bwd = BackwardPass(b, Cotangents(), _active(nodes, sources, tape))  # type: ignore[arg-type]
    for target, ct in seeds:
        bwd.seed(target, ct)
    wanted, found = set(sources), dict[Value, Cotangent]()
    # A backward pass computes inf and NaN without warnings, as compiled ones do.
    with np.errstate(all="ignore"):
        for node in reversed(nodes):
            # All that reads these has been pulled back: they are complete, and whether one that
            # may be absent has arrived is known.
            for result in node.results:
                arrived = bwd.cts.get(result)
                if isinstance(arrived, RecordedValue) and isinstance(arrived.type, MaybeType):
                    is_zero = arrived.concrete is ZERO
                    bwd.cts.set(result, ZERO if is_zero else b.present(arrived))
            found.update((value, bwd.cts.get(value)) for value in node.results if value in wanted)
            _transposer.pull_back(bwd, [node])
        for value in wanted - found.keys():
            found[value] = bwd.cts.get(value)
        b.source = None
        return [_instantiated(b, found[value], value) for value in sources]


def _instantiated(b: EagerBuild, ct: Cotangent, source: Value) -> Value | None:
    return None if isinstance(ct, Zero) else b.instantiate(ct, source)


def _active(nodes: Iterable[Node], sources: Iterable[Value], tape: int) -> set[Value]:
    """The values that depend on the sources."""
    active = set(sources)
    for node in nodes:
        if not active.isdisjoint(node.operands):
            active.update(v for v in node.results if v.tapes & tape)  # type: ignore[attr-defined]
    return active


def _pull_back_call(t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]) -> None:
    """Run the backward graph of a call on the residuals that its forward form gave."""
    del t
    assert isinstance(node, Ran)
    pullback: CallPullback = node.pullback
    b: Any = bwd.b
    arrived = {k: b.instantiate(ct, node.results[k]) for k, ct in enumerate(cts) if ct is not ZERO}
    with b.on(pullback.backend):
        if max(arrived) < pullback.own:
            connected, found = _backward(b, node, pullback, arrived)
        else:
            connected, found = _again(b, node, pullback, arrived)
    cotangents = iter(found)
    for k, is_connected in zip(pullback.wrt, connected, strict=True):
        if is_connected:
            ct = next(cotangents)
            if node.operands[k] in bwd.active:
                bwd.cts.add(b, node.operands[k], b.instantiate(ct, node.operands[k]))


def _backward(
    b: EagerBuild, node: Ran, pullback: CallPullback, arrived: dict[int, Value]
) -> tuple[Sequence[bool], Sequence[Value]]:
    backward = pullback.compiled.forward_backward(pullback.wrt).backward([*arrived])
    seeds = [arrived[k] for k in sorted(arrived)]
    given = [*node.results[pullback.own :], *seeds]
    return backward.connected, b.call(backward.graph, given).results


def _again(
    b: EagerBuild, node: Ran, pullback: CallPullback, arrived: dict[int, Value]
) -> tuple[Sequence[bool], Sequence[Value]]:
    """The gradient of a gradient: the forward form is differentiated too.

    What that needs was not kept, so it runs once more, now as one that keeps it.

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
    forms = compiled.residual_pair(pullback.wrt, tuple(sorted(arrived)))
    residuals = b.call(forms.forward, node.operands).results
    seeds = [arrived[k] for k in sorted(arrived)]
    return forms.connected, b.call(forms.backward, [*residuals, *seeds]).results


_transposer = Transposer({call: _pull_back_call})
