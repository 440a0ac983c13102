"""The transpose of a user's jvp in its tangents: a forward and a backward graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from wend.autodiff.region_transpose import RegionTranspose, transpose_region
from wend.autodiff.transpose import Transposer
from wend.base.errors import NotDifferentiableError, explain
from wend.base.source import at
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_node, inline
from wend.ir.traverse import reached_values
from wend.ops import shaping
from wend.ops.build import Build
from wend.ops.custom import Backward, CustomJvpParts, CustomVjpParts
from wend.passes.dce import with_results
from wend.passes.inline import inline_calls


def transposed_rule(t: Transposer, node: Node, parts: CustomJvpParts) -> CustomVjpParts | None:
    """The user's jvp as a forward and a backward graph; None where nothing moves.

    Raises:
        NotDifferentiableError: the jvp is not linear in its tangents.
    """
    jvp, count = parts.jvp, len(node.operands)
    linear = range(count, len(jvp.params))
    seeds = {i: jvp.results[i].type for i in range(parts.outs, len(jvp.results))}
    done = transpose_region(t, jvp, linear, seeds)
    if not done.grads:
        return None
    kept = done.kept(jvp.params[:count])
    whole = done.with_residuals(f"{parts.name}_fwd", kept)
    chosen = [*range(parts.outs), *range(len(jvp.results), len(whole.results))]
    forward = without_params(whole, chosen, dict(zip(linear, parts.wrt, strict=True)))
    if forward is None:
        tangents = [jvp.params[i] for i in linear]
        raise not_linear(node, parts.name, "jvp", "tangents", _culprit(done, tangents))
    backward = Backward(
        done.from_residuals(f"{parts.name}_bwd", kept),
        parts.moved,
        tuple(parts.wrt[i - count] for i in done.grads),
    )
    return CustomVjpParts(parts.name, parts.captured, parts.outs, len(kept), forward, (backward,))


def without_params(
    graph: Graph, chosen: Sequence[int], stand_ins: Mapping[int, int]
) -> Graph | None:
    """The graph with some of its results, without params that matter to them by size alone.

    Args:
        graph: the graph.
        chosen: the results to have.
        stand_ins: for each param to be dropped one of its type that stays.

    Returns:
        The graph, or None where what is in those params matters.
    """
    _, needed = with_results(inline_calls(_without_sizes(graph)), chosen)
    if any(k in stand_ins for k in needed):
        return None
    slim, used = with_results(graph, chosen)
    b = Build(graph.name)
    params = {
        k: b.param(param.type, param.name)
        for k, param in enumerate(graph.params)
        if k not in stand_ins
    }
    # Sizes are asked of zeros then. So are calls with a rule that take them for other results.
    given = [params[k] if k in params else b.zeros_like(params[stand_ins[k]]) for k in used]
    return b.finish(inline(slim, given, b.nodes))


def _without_sizes(graph: Graph) -> Graph:
    """The graph, to look at only, with sizes depending on nothing."""
    b = Build(graph.name)
    mapping: dict[Value, Value] = {}
    for node in graph.nodes:
        operands = [mapping.get(v, v) for v in node.operands]
        if node.op in (shaping.shape_of, shaping.dim_of):
            operands = [b.integer(0)]
        copy = copy_node(node, operands, [_without_sizes(region) for region in node.regions])
        b.nodes.append(copy)
        mapping.update(zip(node.results, copy.results, strict=True))
    results = tuple(mapping.get(value, value) for value in graph.results)
    return Graph(graph.name, graph.params, tuple(b.nodes), results)


def _culprit(done: RegionTranspose, tangents: Iterable[Value]) -> Node | None:
    """The first node whose transpose reads something that depends on the tangents."""
    read = {*done.reads()} & reached_values(done.graph, tangents)
    found = (n for n in done.graph.nodes if read.intersection((*n.operands, *n.results)))
    return next(found, None)


def not_linear(
    node: Node, name: str, rule: str, what: str, culprit: Node | None = None
) -> NotDifferentiableError:
    """The error for a rule that cannot be transposed."""
    return NotDifferentiableError(
        explain(
            f"{name}{at(node.source)}: its {rule} is not linear in the {what}, so it cannot be "
            "transposed.",
            f"see {culprit.op.name}{at(culprit.source)}" if culprit else None,
            cure=f"let the {what} only be added, and multiplied by what does not depend on them.",
        )
    )
