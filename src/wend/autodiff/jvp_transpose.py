"""The transpose of a user's jvp in its tangents: a forward and a backward graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wend.autodiff.region_transpose import RegionTranspose, transpose_region
from wend.autodiff.transpose import Transposer
from wend.base.errors import NotDifferentiableError, explain
from wend.base.source import at
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import inline
from wend.ir.traverse import reached_values
from wend.ir.types import TensorType
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
    kept = done.kept()
    whole = done.with_residuals(f"{parts.name}_fwd", kept)
    chosen = [*range(parts.outs), *range(len(jvp.results), len(whole.results))]
    forward = without_params(whole, chosen, linear)
    if forward is None:
        tangents = [jvp.params[i] for i in linear]
        raise not_linear(node, parts.name, "jvp", "tangents", _culprit(done, tangents))
    backward = Backward(
        done.from_residuals(f"{parts.name}_bwd", kept),
        parts.moved,
        tuple(parts.wrt[i - count] for i in done.grads),
    )
    return CustomVjpParts(parts.name, parts.captured, parts.outs, len(kept), forward, (backward,))


def without_params(graph: Graph, chosen: Sequence[int], dropped: range) -> Graph | None:
    """The graph with some of its results and without some of its params; None if these matter."""
    _, needed = with_results(inline_calls(graph), chosen)
    if any(k in dropped for k in needed):
        return None
    if any(k in dropped and not _is_static(param) for k, param in enumerate(graph.params)):
        graph = inline_calls(graph)
    slim, used = with_results(graph, chosen)
    b = Build(graph.name)
    params = {
        k: b.param(param.type, param.name)
        for k, param in enumerate(graph.params)
        if k not in dropped
    }
    # A call with a rule of its own may take one for another result: it goes on taking something.
    given = [params[k] if k in params else b.zeros_like(graph.params[k]) for k in used]
    return b.finish(inline(slim, given, b.nodes))


def _is_static(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.is_static


def _culprit(done: RegionTranspose, tangents: Iterable[Value]) -> Node | None:
    """What computes, of the tangents, something that the transpose reads."""
    moved = reached_values(done.graph, tangents)
    return next((value.node for value in done.reads() if value in moved and value.node), None)


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
