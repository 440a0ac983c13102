"""Linearization: a graph split into a part that runs once and a linear graph of its tangents.

The linear part is the transpose of the backward pass. So it reads exactly the residuals that
reverse mode chose to keep, and needs no rules of its own; a `While` becomes a loop over the
records, counted by the trips of the forward loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wend.autodiff.vjp import vjp
from wend.ir.graph import Graph
from wend.ir.rewrite import inline
from wend.ops.build import Build
from wend.passes.dedup_callees import dedup_callees


class Linearized(NamedTuple):
    """A graph split for many tangents at one point.

    Attributes:
        forward: the graph with the residuals as further results.
        linear: (the chosen results…, residuals…, tangents of the params…) → tangents of the
            connected ones among the chosen results.
        connected: for each of those, whether it has a tangent.
    """

    forward: Graph
    linear: Graph
    connected: tuple[bool, ...]


def linearize(graph: Graph, wrt: Sequence[int], chosen: Sequence[int]) -> Linearized:
    """Split a graph.

    Args:
        graph: the graph to differentiate; it is not changed.
        wrt: positions of the params whose tangents are given.
        chosen: positions of the results whose tangents are wanted.
    """
    pair = vjp(graph, wrt, chosen)
    count = len(pair.backward.params) - len(chosen)
    residuals, seeds = pair.backward.params[:count], pair.backward.params[count:]
    grad_positions = range(len(pair.backward.results))
    transpose = vjp(pair.backward, range(count, count + len(chosen)), grad_positions)
    b = Build(f"{graph.name}_linear")
    results = [b.param(seed.type) for seed in seeds]
    residual_params = [b.param(residual.type) for residual in residuals]
    tangents = [b.param(graph.params[i].type) for i in wrt]
    # The backward pass is linear: run on zeros, only its trip counts remain.
    zeros = [b.zeros_like(result) for result in results]
    values = inline(transpose.forward, [*residual_params, *zeros], b.nodes)
    active = [t for t, flag in zip(tangents, pair.connected, strict=True) if flag]
    grads = values[: len(grad_positions)]  # zeros of the cotangents' types, which are never maybes
    active = [b.instantiate(t, grad) for t, grad in zip(active, grads, strict=True)]
    result_tangents = inline(transpose.backward, [*values[len(grad_positions) :], *active], b.nodes)
    return Linearized(pair.forward, dedup_callees(b.finish(result_tangents)), transpose.connected)
