"""The transpose of graphs that are linear in some params: user rules read the other way round."""

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
    forward = _without(whole, chosen, linear)
    if forward is None:
        raise _not_linear(node, parts.name, "jvp", "tangents", done, linear)
    backward = Backward(
        done.from_residuals(f"{parts.name}_bwd", kept),
        parts.moved,
        tuple(parts.wrt[i - count] for i in done.grads),
    )
    return CustomVjpParts(
        parts.name, parts.captured, parts.outs, len(kept), forward, (backward,)
    )


def transposed_backward(
    t: Transposer, node: Node, name: str, backward: Graph, residuals: int
) -> tuple[Graph, list[int]]:
    """A backward graph as one from residuals and tangents of operands to tangents of outs.

    Returns:
        The graph, and which of the cotangents that `backward` takes it has a result for.

    Raises:
        NotDifferentiableError: `bwd` is not linear in the cotangents.
    """
    linear = range(residuals, len(backward.params))
    seeds = {i: result.type for i, result in enumerate(backward.results)}
    done = transpose_region(t, backward, linear, seeds)
    b = Build(f"{name}_jvp")
    mapping = {param: b.param(param.type) for param in backward.params}
    mapping.update({seed: b.param(seed.type) for seed in done.seeds.values()})
    done.run_forward(b, mapping)
    found = done.run_backward(b, mapping)
    graph = _without(b.finish([*found.values()]), range(len(found)), linear)
    if graph is None:
        raise _not_linear(node, name, "bwd", "cotangents", done, linear)
    return graph, [i - residuals for i in found]


def _without(graph: Graph, chosen: Sequence[int], dropped: range) -> Graph | None:
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


def _not_linear(
    node: Node, name: str, rule: str, what: str, done: RegionTranspose, linear: Iterable[int]
) -> NotDifferentiableError:
    moved = reached_values(done.graph, [done.graph.params[i] for i in linear])
    culprits = [value.node for value in done.reads() if value in moved and value.node]
    return NotDifferentiableError(
        explain(
            f"{name}{at(node.source)}: its {rule} is not linear in the {what}, so it cannot be "
            "transposed.",
            f"see {culprits[0].op.name}{at(culprits[0].source)}" if culprits else None,
            cure=f"let the {what} only be added, and multiplied by what does not depend on them.",
        )
    )
