"""Reverse mode on whole graphs: a forward and a backward graph, or one joint graph (D12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wend.autodiff.activity import active_values
from wend.autodiff.cotangents import Cotangents
from wend.autodiff.residuals import forward_reads, is_constant
from wend.autodiff.rule_call import pull_back_call
from wend.autodiff.rule_custom import (
    pull_back_custom_jvp,
    pull_back_custom_vjp,
    pull_back_custom_vjp_forward,
)
from wend.autodiff.rule_if import pull_back_if
from wend.autodiff.rule_while import pull_back_while
from wend.autodiff.transpose import BackwardBuild, Pass, Transposer
from wend.ir.graph import Graph, Value
from wend.ir.rewrite import copy_nodes, inline
from wend.ir.types import without_maybe
from wend.ops.build import Build
from wend.ops.control import call, if_, while_
from wend.ops.custom import custom_jvp, custom_vjp, custom_vjp_forward

_transposer = Transposer(
    {
        while_: pull_back_while,
        if_: pull_back_if,
        call: pull_back_call,
        custom_vjp: pull_back_custom_vjp,
        custom_vjp_forward: pull_back_custom_vjp_forward,
        custom_jvp: pull_back_custom_jvp,
    }
)


@dataclass(frozen=True, slots=True)
class VJP:
    """A function split for reverse mode.

    Attributes:
        forward: the function; after its own results it gives the residuals.
        backward: (residuals…, cotangents of the seeded results…) → cotangents of the params that
            are connected to them.
        connected: for each param differentiated, whether any path leads from it to a seeded
            result; the results of `backward` are those of the connected ones.
    """

    forward: Graph
    backward: Graph
    connected: tuple[bool, ...]


def vjp(graph: Graph, wrt: Sequence[int], seeded: Sequence[int]) -> VJP:
    """Differentiate a graph in reverse.

    Args:
        graph: what to differentiate; it is not changed.
        wrt: positions of the params to have cotangents of.
        seeded: positions of the results whose cotangents will be given.
    """
    b = BackwardBuild(f"{graph.name}_backward")
    this = Pass(b, Cotangents(), active_values(graph, [graph.params[i] for i in wrt]))
    seeds = [b.param(without_maybe(graph.results[i].type)) for i in seeded]
    for i, seed in zip(seeded, seeds, strict=True):
        this.seed(graph.results[i], seed)
    _transposer.pull_back(this, graph.nodes)
    grads = [this.cts.get(graph.params[i]) for i in wrt]
    found = [
        b.instantiate(grad, graph.params[i])
        for i, grad in zip(wrt, grads, strict=True)
        if isinstance(grad, Value)
    ]
    reads = forward_reads(b, found)
    constants = [value for value in reads if is_constant(value)]
    residuals = [value for value in reads if not is_constant(value)]
    connected = tuple(isinstance(grad, Value) for grad in grads)
    forward = _forward_graph(graph, this, residuals)
    return VJP(forward, _backward_graph(b, seeds, residuals, constants, found), connected)


def joint(graph: Graph, wrt: Sequence[int], seed: int) -> tuple[Graph, tuple[bool, ...]]:
    """One graph that gives the results of `graph`, then the gradient of its scalar result `seed`.

    Returns:
        The graph, and for each of `wrt` whether it is connected; of those not, there is no result.
    """
    pair = vjp(graph, wrt, [seed])
    b = Build(f"{graph.name}_and_grad")
    params = [b.param(param.type, param.name) for param in graph.params]
    values = inline(pair.forward, params, b.nodes)
    results, residuals = values[: len(graph.results)], values[len(graph.results) :]
    grads = inline(pair.backward, [*residuals, b.ones_like(results[seed])], b.nodes)
    return b.finish([*results, *grads], len(graph.captures)), pair.connected


def _forward_graph(graph: Graph, this: Pass, residuals: Sequence[Value]) -> Graph:
    b = Build(graph.name)
    mapping = {param: b.param(param.type, param.name) for param in graph.params}
    b.nodes += copy_nodes(graph.nodes, mapping, this.replaced)
    b.nodes += copy_nodes(this.b.extras, mapping)
    results = [mapping[value] for value in (*graph.results, *residuals)]
    return b.finish(results, len(graph.captures))


def _backward_graph(
    b: BackwardBuild,
    seeds: Sequence[Value],
    residuals: Sequence[Value],
    constants: Sequence[Value],
    found: Sequence[Value],
) -> Graph:
    out = Build(b.name)
    mapping = {value: out.param(value.type) for value in (*residuals, *seeds)}
    out.nodes += copy_nodes([value.node for value in constants if value.node], mapping)
    out.nodes += copy_nodes(b.nodes, mapping)
    return out.finish([mapping[value] for value in found])
