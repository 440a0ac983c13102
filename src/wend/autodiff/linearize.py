"""A function split in two: a part that runs once, and its tangents as a linear function.

The linear part is the transpose of the backward pass. So it reads just the residuals that reverse
mode found and chose to keep, and needs no rules of its own; a `While` becomes a loop over the
records, counted by the trips of the first one.
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
    """A function split for many tangents at one point.

    Attributes:
        forward: the function; after its own results it gives the residuals.
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
        graph: what to differentiate; it is not changed.
        wrt: positions of the params whose tangents will be given.
        chosen: positions of the results whose tangents are wanted.
    """
    pair = vjp(graph, wrt, chosen)
    count = len(pair.backward.params) - len(chosen)
    residuals, seeds = pair.backward.params[:count], pair.backward.params[count:]
    found = range(len(pair.backward.results))
    again = vjp(pair.backward, range(count, count + len(chosen)), found)
    b = Build(f"{graph.name}_linear")
    results = [b.param(seed.type) for seed in seeds]
    kept = [b.param(residual.type) for residual in residuals]
    tangents = [b.param(graph.params[i].type) for i in wrt]
    # The backward pass is linear: of its run on zeros nothing is left but trip counts.
    zeros = [b.zeros_like(result) for result in results]
    values = inline(again.forward, [*kept, *zeros], b.nodes)
    moving = [t for t, flag in zip(tangents, pair.connected, strict=True) if flag]
    grads = values[: len(found)]  # zeros, of the types of cotangents: those are never maybes
    moving = [b.instantiate(t, grad) for t, grad in zip(moving, grads, strict=True)]
    moved = inline(again.backward, [*values[len(found) :], *moving], b.nodes)
    return Linearized(pair.forward, dedup_callees(b.finish(moved)), again.connected)
