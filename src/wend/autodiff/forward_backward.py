"""The forward form of a graph, and its backward form for any choice of cotangents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from wend.autodiff.vjp import linear_blocks
from wend.ir.graph import Graph
from wend.ops import maybe
from wend.passes.dedup_callees import dedup_callees
from wend.passes.lower_linear_blocks import without_blocks
from wend.passes.specialize_zeros import specialize_zeros


@dataclass(frozen=True, slots=True)
class Backward:
    """A backward graph for the cotangents of some results.

    Attributes:
        graph: (residuals…, cotangents of those results…) → cotangents of the connected params, a
            maybe where only the run can tell whether one arrives.
        connected: for each param differentiated, whether it gives its cotangent.
    """

    graph: Graph
    connected: tuple[bool, ...]


class ForwardBackward:
    """A graph in its three forms: itself, forward with residuals, and backward.

    There is one general backward graph, of linear blocks. Which results have cotangents is known
    when it is to run, so it is specialised to that, once for each choice: nothing that only the
    others would need is left.

    Attributes:
        forward: after the graph's own results it gives the residuals.
        wrt: the params that are differentiated, by position.
        seeded: the results that may have cotangents.
    """

    def __init__(self, graph: Graph, wrt: Sequence[int], seeded: Sequence[int]) -> None:
        self.wrt, self.seeded = tuple(wrt), tuple(seeded)
        self.general = linear_blocks(graph, wrt, seeded, unknown=seeded)
        self.forward = self.general.forward
        self._backwards: dict[frozenset[int], Backward] = {}

    def backward(self, given: Sequence[int]) -> Backward:
        """The backward form where these results, by position, have cotangents."""
        key = frozenset(given)
        if key not in self._backwards:
            self._backwards[key] = self._specialised(key)
        return self._backwards[key]

    def _specialised(self, given: frozenset[int]) -> Backward:
        graph = self.general.backward
        first = len(graph.params) - len(self.seeded)
        places = {k: first + place for place, k in enumerate(self.seeded)}
        zero = [place for k, place in places.items() if k not in given]
        there = [place for k, place in places.items() if k in given]
        graph = without_blocks(specialize_zeros(graph, zero, there))
        is_there = [r.node is None or r.node.op is not maybe.zero for r in graph.results]
        results = tuple(r for r, kept in zip(graph.results, is_there, strict=True) if kept)
        found = iter(is_there)
        connected = tuple(next(found) if reached else False for reached in self.general.connected)
        return Backward(dedup_callees(replace(graph, results=results)), connected)
