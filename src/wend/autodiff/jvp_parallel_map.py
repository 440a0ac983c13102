"""Forward mode of `parallel_map`: one node, whose region computes values and tangents."""

from __future__ import annotations

from collections.abc import Sequence

from wend.autodiff.jvp_interpreter import JvpInterpreter, JvpResult, Tangent
from wend.base.zero import ZERO, Zero
from wend.ir.graph import Graph, Node, Value
from wend.ops.build import Build
from wend.ops.parallel_map import SUM, ParallelMapParts


def jvp_parallel_map(
    p: JvpInterpreter, b: Build, node: Node, tangents: Sequence[Tangent]
) -> JvpResult:
    """Append the node of values and tangents."""
    parts = ParallelMapParts.of(node)
    count, after = len(parts.mapped), len(parts.mapped) + len(parts.starts)
    starts = tangents[count:after]
    region_tangents = [*tangents[:count], *tangents[after:]]
    frame, tangent_params = p.jvp_region(parts.body, [t is not ZERO for t in region_tangents])
    active = [
        frame.tangent(value) is not ZERO
        or (form == SUM and starts[parts.forms[:k].count(SUM)] is not ZERO)
        for k, (value, form) in enumerate(zip(parts.body.results, parts.forms, strict=True))
    ]
    chosen = [k for k, flag in enumerate(active) if flag]
    results = [frame.values[value] for value in parts.body.results]
    results += frame.tangents_of([parts.body.results[k] for k in chosen])
    mapped_tangents = [t for t in tangents[:count] if not isinstance(t, Zero)]
    inner = frame.b.params[: len(parts.body.params)]
    params = [
        *inner[:count],
        *tangent_params[: len(mapped_tangents)],
        *inner[count:],
        *tangent_params[len(mapped_tangents) :],
    ]
    body = Graph(frame.b.name, tuple(params), tuple(frame.b.nodes), tuple(results))
    start_tangents = [
        b.zeros_like(parts.start_of(k)) if isinstance(t, Zero) else t
        for k in chosen
        if parts.forms[k] == SUM
        for t in [starts[parts.forms[:k].count(SUM)]]
    ]
    new = b.parallel_map(
        [*parts.mapped, *mapped_tangents],
        [*parts.starts, *start_tangents],
        [*parts.invariants, *_nonzero(tangents[after:])],
        body,
        [*parts.forms, *(parts.forms[k] for k in chosen)],
        **parts.options,
    )
    values, result_tangents = new.results[: len(active)], iter(new.results[len(active) :])
    return JvpResult(values, [next(result_tangents) if flag else ZERO for flag in active])


def _nonzero(tangents: Sequence[Tangent]) -> list[Value]:
    return [tangent for tangent in tangents if not isinstance(tangent, Zero)]
