"""Reverse mode on whole graphs: a forward and a backward graph, or one joint graph (D12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from wend.autodiff.activity import active_values
from wend.autodiff.backward import BackwardBuild, build_backward_graph, forward_reads
from wend.autodiff.cotangents import Cotangents
from wend.autodiff.rule_call import pull_back_call
from wend.autodiff.rule_custom import (
    pull_back_custom_jvp,
    pull_back_custom_vjp,
    pull_back_custom_vjp_forward,
)
from wend.autodiff.rule_hosting import pull_back_host
from wend.autodiff.rule_if import pull_back_if
from wend.autodiff.rule_parallel_map import pull_back_parallel_map
from wend.autodiff.rule_scheduled import pull_back_scheduled
from wend.autodiff.rule_while import pull_back_while
from wend.autodiff.transpose import BackwardPass, Transposer
from wend.ir.graph import Graph, Value
from wend.ir.rewrite import copy_nodes, inline
from wend.ir.traverse import use_counts
from wend.ir.types import MaybeType, without_maybe
from wend.ops.build import Build
from wend.ops.control import call, if_, while_
from wend.ops.creating import is_constant
from wend.ops.custom import custom_jvp, custom_vjp, custom_vjp_forward
from wend.ops.hosting import FORWARD
from wend.ops.parallel_map import parallel_map
from wend.ops.schedules import scheduled
from wend.passes.dedup_callees import dedup_callees
from wend.passes.lower_linear_blocks import lower_linear_blocks
from wend.passes.pipeline import before_differentiating

_transposer = Transposer(
    {
        while_: pull_back_while,
        if_: pull_back_if,
        call: pull_back_call,
        parallel_map: pull_back_parallel_map,
        custom_vjp: pull_back_custom_vjp,
        custom_vjp_forward: pull_back_custom_vjp_forward,
        custom_jvp: pull_back_custom_jvp,
        scheduled: pull_back_scheduled,
        **dict.fromkeys(FORWARD, pull_back_host),
    }
)


class VJP(NamedTuple):
    """A graph split for reverse mode.

    Attributes:
        forward: the graph with the residuals as further results.
        backward: (residuals…, cotangents of the seeded results…) → cotangents of the connected
            params.
        connected: for each param differentiated, whether any path leads from it to a seeded
            result; the results of `backward` are those of the connected ones.
    """

    forward: Graph
    backward: Graph
    connected: tuple[bool, ...]


def vjp(
    graph: Graph, wrt: Sequence[int], seeded: Sequence[int], unknown: Sequence[int] = ()
) -> VJP:
    """Differentiate a graph in reverse.

    Args:
        graph: the graph to differentiate; it is not changed.
        wrt: positions of the params to differentiate.
        seeded: positions of the results whose cotangents are given.
        unknown: those of `seeded` whose cotangents may be absent: `backward` takes a maybe for
            each, and gives a maybe where nothing may arrive.
    """
    return _differentiate(graph, wrt, seeded, unknown, as_linear_blocks=False)


def linear_blocks(
    graph: Graph, wrt: Sequence[int], seeded: Sequence[int], unknown: Sequence[int] = ()
) -> VJP:
    """Differentiate like `vjp`, but leave a linear block for every node in the backward graph.

    `passes.specialize_zeros` specializes it to the cotangents that are known to arrive or not;
    `passes.lower_linear_blocks` guards the rest. `vjp` gives the result of both.
    """
    return _differentiate(graph, wrt, seeded, unknown, as_linear_blocks=True)


def joint(graph: Graph, wrt: Sequence[int], seed: int) -> tuple[Graph, tuple[bool, ...]]:
    """Return one graph of the results of `graph`, then the gradient of its scalar result `seed`.

    Returns:
        The graph, and for each of `wrt` whether it is connected; unconnected ones have no result.
    """
    pair = vjp(graph, wrt, [seed])
    b = Build(f"{graph.name}_and_grad")
    params = [b.param(param.type, param.name) for param in graph.params]
    values = inline(pair.forward, params, b.nodes)
    results, residuals = values[: len(graph.results)], values[len(graph.results) :]
    grads = inline(pair.backward, [*residuals, b.ones_like(results[seed])], b.nodes)
    return dedup_callees(b.finish([*results, *grads], len(graph.captures))), pair.connected


def _differentiate(
    graph: Graph,
    wrt: Sequence[int],
    seeded: Sequence[int],
    unknown: Sequence[int],
    as_linear_blocks: bool,
) -> VJP:
    graph = before_differentiating(lower_linear_blocks(graph))
    b = BackwardBuild(f"{graph.name}_backward")
    active = active_values(graph, [graph.params[i] for i in wrt])
    bwd = BackwardPass(
        b, Cotangents(spelled_out=as_linear_blocks), active, as_linear_blocks=as_linear_blocks
    )
    types = {i: without_maybe(graph.results[i].type) for i in seeded}
    seeds = [b.param(MaybeType(types[i]) if i in unknown else types[i]) for i in seeded]
    for i, seed in zip(seeded, seeds, strict=True):
        bwd.seed(graph.results[i], seed)
    _transposer.for_graph(graph).pull_back(bwd, graph.nodes)
    grads = {i: bwd.cts.get(graph.params[i]) for i in wrt}
    backward_results = [
        ct if unknown or as_linear_blocks else b.instantiate(ct, graph.params[i])
        for i, ct in grads.items()
        if isinstance(ct, Value)
    ]
    residuals = [value for value in forward_reads(b, backward_results) if not is_constant(value)]
    backward = build_backward_graph(b, residuals, seeds, backward_results)
    if not as_linear_blocks:
        backward = lower_linear_blocks(backward)
        # The specialized graph may read fewer residuals.
        used = use_counts(backward)
        live = [k for k, param in enumerate(backward.params[: len(residuals)]) if param in used]
        params = [backward.params[k] for k in live] + [*backward.params[len(residuals) :]]
        backward = replace(backward, params=tuple(params))
        residuals = [residuals[k] for k in live]
    connected = tuple(isinstance(grads[i], Value) for i in wrt)
    forward = _forward_graph(graph, bwd, residuals)
    return VJP(dedup_callees(forward), dedup_callees(backward), connected)


def _forward_graph(graph: Graph, bwd: BackwardPass, residuals: Sequence[Value]) -> Graph:
    b = Build(graph.name)
    mapping = {param: b.param(param.type, param.name) for param in graph.params}
    b.nodes += copy_nodes(graph.nodes, mapping, bwd.replaced)
    b.nodes += copy_nodes(bwd.b.forward_shape_reads, mapping)
    results = [mapping[value] for value in (*graph.results, *residuals)]
    return b.finish(results, len(graph.captures))
