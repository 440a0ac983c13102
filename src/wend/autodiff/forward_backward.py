"""Reverse mode for reuse: a forward graph, and a backward graph per set of seeded results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wend.autodiff.split_residuals import with_min_cut
from wend.autodiff.vjp import linear_blocks
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph
from wend.ops import maybe
from wend.passes.dce import dce
from wend.passes.dedup_callees import dedup_callees
from wend.passes.lower_linear_blocks import lower_linear_blocks
from wend.passes.specialize_zeros import specialize_zeros


@dataclass(frozen=True, slots=True)
class Backward:
    """A backward graph for cotangents of some of the results.

    Attributes:
        graph: (residuals…, cotangents of those results…) → cotangents of the connected params, a
            maybe where only the run can decide whether one arrives.
        connected: for each param differentiated, whether it gets a cotangent.
    """

    graph: Graph
    connected: tuple[bool, ...]


class ForwardBackward:
    """A graph in three forms: itself, forward with residuals, and backward.

    The general backward graph consists of linear blocks. Only a run decides which results have
    cotangents; the general graph is specialized once for each such set, which removes all that only
    other cotangents need.

    Attributes:
        forward: the graph with the residuals as further results.
        wrt: the positions of the params to differentiate.
        seeded: the positions of the results that may have cotangents.
    """

    def __init__(self, graph: Graph, wrt: Sequence[int], seeded: Sequence[int]) -> None:
        self.wrt, self.seeded = tuple(wrt), tuple(seeded)
        pair = linear_blocks(graph, wrt, seeded, unknown=seeded)
        self.general = with_min_cut(pair, len(graph.results))
        self.forward = self.general.forward
        self._backwards: dict[tuple[frozenset[int], int | None], Backward] = {}

    def backward(self, seeded: Sequence[int], count: int | None = None) -> Backward:
        """Return the backward graph for cotangents of the results at these positions.

        `count`: the number of leading params whose cotangents matter; None: those of all.
        """
        key = frozenset(seeded), count
        if key not in self._backwards:
            self._backwards[key] = self._specialize(*key)
        return self._backwards[key]

    def _specialize(self, seeded: frozenset[int], count: int | None) -> Backward:
        graph = self.general.backward
        first = len(graph.params) - len(self.seeded)
        positions = {k: first + position for position, k in enumerate(self.seeded)}
        zero = [position for k, position in positions.items() if k not in seeded]
        nonzero = [position for k, position in positions.items() if k in seeded]
        graph = lower_linear_blocks(specialize_zeros(graph, zero, nonzero))
        reached = [k for k, flag in zip(self.wrt, self.general.connected, strict=True) if flag]
        cts = {
            k: ct
            for k, ct in zip(reached, graph.results, strict=True)
            if (ct.node is None or ct.node.op is not maybe.zero) and (count is None or k < count)
        }
        connected = tuple(k in cts for k in self.wrt)
        graph = dce(replace(graph, results=tuple(cts.values())))  # of what is recomputed
        return Backward(dedup_callees(graph), connected)
