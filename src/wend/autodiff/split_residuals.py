"""The residuals between a forward graph and a backward graph that run apart."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from wend.autodiff.residuals import min_cut_residuals, rematerialize
from wend.ir.rewrite import inline
from wend.ir.traverse import backward_slice
from wend.ops.build import Build

if TYPE_CHECKING:
    from wend.autodiff.vjp import VJP


_MAX_NODES = 2000  # the cut of a graph of this size takes 0.2 s


def with_min_cut(pair: VJP, count: int) -> VJP:
    """Return a pair that keeps a minimum cut of its residuals, and recomputes the others.

    Graphs that are inlined into one keep nothing between them, and need no cut.

    Args:
        pair: the graphs.
        count: the number of results of the forward graph that are no residuals.
    """
    forward, backward = pair.forward, pair.backward
    residuals = forward.results[count:]
    if len(forward.nodes) > _MAX_NODES:
        return pair
    cut = min_cut_residuals(residuals, set())
    if {*cut} == {*residuals}:
        return pair
    b = Build(backward.name)
    mapping = {value: b.param(value.type) for value in cut}
    seeds = [b.param(param.type, param.name) for param in backward.params[len(residuals) :]]
    b.nodes += rematerialize(backward_slice(residuals, {*cut}), mapping)
    results = inline(backward, [*(mapping[value] for value in residuals), *seeds], b.nodes)
    return pair._replace(
        forward=replace(forward, results=(*forward.results[:count], *cut)),
        backward=b.finish(results),
    )
