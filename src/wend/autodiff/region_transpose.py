"""The transpose of one region as a whole: what its params get from its results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from wend.autodiff.activity import active_values
from wend.autodiff.backward import BackwardBuild, forward_reads
from wend.autodiff.cotangents import Cotangent, Cotangents
from wend.autodiff.residuals import min_cut_residuals, rematerialize
from wend.autodiff.transpose import BackwardPass, Transposer
from wend.base.zero import ZERO
from wend.ir.graph import Graph, Value
from wend.ir.rewrite import copy_nodes
from wend.ir.traverse import backward_slice
from wend.ir.types import Type
from wend.ops.build import Build


@dataclass(slots=True)
class RegionTranspose:
    """A region pulled back.

    Attributes:
        graph: the region.
        bwd: the pass; its builder holds the backward nodes.
        seeds: cotangents of results, by their positions; params of the backward graph.
        grads: what arrived at the chosen params, by their positions.
    """

    graph: Graph
    bwd: BackwardPass
    seeds: dict[int, Value]
    grads: dict[int, Value]

    def reads(self) -> list[Value]:
        """The values of the region that its backward nodes read."""
        return forward_reads(self.bwd.b, self.grads.values())

    def kept(self, at_hand: Sequence[Value]) -> list[Value]:
        """Values to keep so that all that is read can be had again; of params only those `at_hand`.

        Of those the ones that are needed come last.
        """
        free = {*at_hand}
        kept = min_cut_residuals(self.reads(), free)
        needed = backward_slice(self.reads(), {*kept, *free})
        inputs = {*self.reads(), *(value for node in needed for value in node.operands)}
        return [*kept, *(param for param in at_hand if param in inputs)]

    def run_forward(self, b: Build, mapping: dict[Value, Value]) -> None:
        """Append the region's nodes, as the backward nodes want them; `mapping` has its params."""
        b.nodes += copy_nodes(self.graph.nodes, mapping, self.bwd.replaced)
        b.nodes += copy_nodes(self.bwd.b.forward_shape_reads, mapping)

    def run_backward(self, b: Build, mapping: dict[Value, Value]) -> dict[int, Value]:
        """Append the backward nodes; `mapping` has the seeds, and what was kept or all values."""
        b.nodes += rematerialize(backward_slice(self.reads(), set(mapping)), mapping)
        b.nodes += copy_nodes(self.bwd.b.nodes, mapping)
        return {i: mapping[grad] for i, grad in self.grads.items()}

    def with_residuals(self, name: str, kept: Sequence[Value]) -> Graph:
        """The region with what was kept as further results."""
        b = Build(name)
        mapping = {param: b.param(param.type, param.name) for param in self.graph.params}
        self.run_forward(b, mapping)
        return b.finish([mapping[value] for value in (*self.graph.results, *kept)])

    def from_residuals(self, name: str, kept: Sequence[Value]) -> Graph:
        """What was kept, then the seeds, to the cotangents that arrived."""
        b = Build(name)
        mapping = {value: b.param(value.type) for value in (*kept, *self.seeds.values())}
        return b.finish([*self.run_backward(b, mapping).values()])


def transpose_region(
    t: Transposer, graph: Graph, wrt: Iterable[int], seeds: Mapping[int, Type]
) -> RegionTranspose:
    """Pull cotangents of some results, of the types given, back to some params."""
    wrt = list(wrt)
    b = BackwardBuild(f"{graph.name}_backward")
    bwd = BackwardPass(b, Cotangents(), active_values(graph, [graph.params[i] for i in wrt]))
    given = {i: b.param(type) for i, type in seeds.items()}
    for i, seed in given.items():
        bwd.seed(graph.results[i], seed)
    t.pull_back(bwd, graph.nodes)
    arrived: dict[int, Cotangent] = {
        i: bwd.cts.get(graph.params[i]) for i in wrt if graph.params[i] in bwd.active
    }
    grads = {i: ct for i, ct in arrived.items() if isinstance(ct, Value)}
    return RegionTranspose(graph, bwd, given, grads)


def seeds_of(cts: Sequence[Cotangent], types: Sequence[Type]) -> dict[int, Type]:
    """The results with a cotangent, and the types under which a region is given those."""
    return {i: type for i, (ct, type) in enumerate(zip(cts, types, strict=True)) if ct is not ZERO}
