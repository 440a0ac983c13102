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
from wend.ops import lists, shaping
from wend.ops.build import Build
from wend.ops.custom import Backward, CustomJvpParts, CustomVjpParts
from wend.passes.dce import with_results
from wend.passes.inline import inline_calls

# What they give depends on how great something is, not on what is in it.
_SIZES = {shaping.shape_of, shaping.dim_of, lists.list_len, lists.list_zeros}


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
    backward = done.from_residuals(f"{parts.name}_bwd", kept)
    outs = range(parts.outs)
    if depends(whole, outs, linear) or depends(_joined(whole, backward, done), None, linear):
        tangents = [jvp.params[i] for i in linear]
        raise not_linear(node, parts.name, "jvp", "tangents", _culprit(done, tangents))
    chosen = [*outs, *range(len(jvp.results), len(whole.results))]
    forward = with_zeros(whole, chosen, dict(zip(linear, parts.wrt, strict=True)))
    wrt = tuple(parts.wrt[i - count] for i in done.grads)
    rule = Backward(backward, parts.moved, wrt)
    return CustomVjpParts(parts.name, parts.captured, parts.outs, len(kept), forward, (rule,))


def _joined(forward: Graph, backward: Graph, done: RegionTranspose) -> Graph:
    """Both graphs as one, to look at: operands, tangents and cotangents → cotangents."""
    b = Build("joined")
    params = [b.param(param.type) for param in forward.params]
    values = inline(forward, params, b.nodes)
    seeds = [b.param(seed.type) for seed in done.seeds.values()]
    return b.finish(inline(backward, [*values[len(done.graph.results) :], *seeds], b.nodes))


def depends(graph: Graph, chosen: Iterable[int] | None, params: Iterable[int]) -> bool:
    """Whether some results (None: all) depend on what is in some params, not on sizes alone."""
    look_at = _without_sizes(inline_calls(graph))
    wanted = range(len(graph.results)) if chosen is None else [*chosen]
    return not {*params}.isdisjoint(with_results(look_at, wanted)[1])


def with_zeros(graph: Graph, chosen: Sequence[int], replacements: Mapping[int, int]) -> Graph:
    """The graph with some of its results, and without params that matter by size alone.

    Args:
        graph: the graph.
        chosen: the results to have.
        replacements: for each param to be dropped one of its type that stays: zeros like that take
            its place.
    """
    slim, used = with_results(graph, chosen)
    b = Build(graph.name)
    params = {
        k: b.param(param.type, param.name)
        for k, param in enumerate(graph.params)
        if k not in replacements
    }
    given = [params[k] if k in params else b.zeros_like(params[replacements[k]]) for k in used]
    return b.finish(inline(slim, given, b.nodes))


def _without_sizes(graph: Graph) -> Graph:
    """The graph, to look at only, with sizes depending on nothing."""
    b = Build(graph.name)
    mapping: dict[Value, Value] = {}
    for node in graph.nodes:
        operands = [mapping.get(v, v) for v in node.operands]
        if node.op in _SIZES:
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
