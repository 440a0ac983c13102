"""Transposition of a user's jvp in its tangents, into a forward and a backward graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from wend.autodiff.region_transpose import RegionTranspose, transpose_region
from wend.autodiff.transpose import Transposer
from wend.base.errors import NotDifferentiableError, explain
from wend.base.source import at
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_node, inline
from wend.ir.traverse import reached_values
from wend.ops.build import Build
from wend.ops.custom import CustomBackward, CustomJvpParts, CustomVjpParts
from wend.passes.dce import select_results
from wend.passes.inline import inline_calls

# Operations that read the size of an operand, not its elements.


def transpose_jvp_rule(t: Transposer, node: Node, parts: CustomJvpParts) -> CustomVjpParts | None:
    """Return the user's jvp as a forward and a backward graph; None where no operand is active.

    Raises:
        NotDifferentiableError: the jvp is not linear in its tangents.
    """
    jvp, count = parts.jvp, len(node.operands)
    linear = range(count, len(jvp.params))
    seeds = {i: jvp.results[i].type for i in range(parts.outs, len(jvp.results))}
    transposed = transpose_region(t, jvp, linear, seeds)
    if not transposed.grads:
        return None
    residuals = transposed.residuals(jvp.params[:count])
    with_residuals = transposed.with_residuals(f"{parts.name}_fwd", residuals)
    backward = transposed.from_residuals(f"{parts.name}_bwd", residuals)
    outs = range(parts.outs)
    if depends_on(with_residuals, outs, linear) or depends_on(
        _join(with_residuals, backward, transposed), None, linear
    ):
        tangents = [jvp.params[i] for i in linear]
        raise not_linear_error(node, parts.name, "jvp", "tangents", _culprit(transposed, tangents))
    chosen = [*outs, *range(len(jvp.results), len(with_residuals.results))]
    forward = with_zeros(with_residuals, chosen, dict(zip(linear, parts.wrt, strict=True)))
    wrt = tuple(parts.wrt[i - count] for i in transposed.grads)
    rule = CustomBackward(backward, parts.tangent_outs, wrt)
    return CustomVjpParts(parts.name, parts.captured, parts.outs, len(residuals), forward, (rule,))


def _join(forward: Graph, backward: Graph, transposed: RegionTranspose) -> Graph:
    """Return both graphs as one, for analysis: operands, tangents and cotangents → cotangents."""
    b = Build("joined")
    values = inline(forward, [b.param(param.type) for param in forward.params], b.nodes)
    seeds = [b.param(seed.type) for seed in transposed.seeds.values()]
    return b.finish(inline(backward, [*values[len(transposed.graph.results) :], *seeds], b.nodes))


def depends_on(graph: Graph, chosen: Iterable[int] | None, params: Iterable[int]) -> bool:
    """Return whether some results (None: all) depend on the elements of some params."""
    data_graph = _cut_size_dependences(inline_calls(graph))
    positions = range(len(graph.results)) if chosen is None else [*chosen]
    return not {*params}.isdisjoint(select_results(data_graph, positions)[1])


def with_zeros(graph: Graph, chosen: Sequence[int], replacements: Mapping[int, int]) -> Graph:
    """Return the graph with some of its results, and without params that matter by size alone.

    Args:
        graph: the graph.
        chosen: the results to have.
        replacements: for each param to be dropped, one of its type that stays: zeros like that take
            its place.
    """
    slim, used = select_results(graph, chosen)
    b = Build(graph.name)
    params = {
        k: b.param(param.type, param.name)
        for k, param in enumerate(graph.params)
        if k not in replacements
    }
    arguments = [params[k] if k in params else b.zeros_like(params[replacements[k]]) for k in used]
    return b.finish(inline(slim, arguments, b.nodes))


def _cut_size_dependences(graph: Graph) -> Graph:
    """Return the graph, for analysis only, with sizes depending on nothing."""
    b = Build(graph.name)
    mapping: dict[Value, Value] = {}
    for node in graph.nodes:
        operands = [mapping.get(v, v) for v in node.operands]
        if node.op.reads_shape:
            operands = [b.integer(0)]
        copy = copy_node(node, operands, [_cut_size_dependences(region) for region in node.regions])
        b.nodes.append(copy)
        mapping.update(zip(node.results, copy.results, strict=True))
    results = tuple(mapping.get(value, value) for value in graph.results)
    return Graph(graph.name, graph.params, tuple(b.nodes), results)


def _culprit(transposed: RegionTranspose, tangents: Iterable[Value]) -> Node | None:
    """Return the first node whose transpose reads something that depends on the tangents."""
    read = {*transposed.reads()} & reached_values(transposed.graph, tangents)
    culprits = (n for n in transposed.graph.nodes if read.intersection((*n.operands, *n.results)))
    return next(culprits, None)


def not_linear_error(
    node: Node, name: str, rule: str, what: str, culprit: Node | None = None
) -> NotDifferentiableError:
    """Return the error for a rule that cannot be transposed."""
    return NotDifferentiableError(
        explain(
            f"{name}{at(node.source)}: its {rule} is not linear in the {what}, so it cannot be "
            "transposed.",
            f"see {culprit.op.name}{at(culprit.source)}" if culprit else None,
            cure=f"let the {what} only be added, and multiplied by values that do not depend on "
            "them.",
        )
    )
