"""The transpose of one region: from cotangents of its results to cotangents of its params."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from wend.autodiff.activity import active_values
from wend.autodiff.backward import BackwardBuild, forward_reads
from wend.autodiff.cotangents import Cotangent, Cotangents
from wend.autodiff.residuals import min_cut_residuals, rematerialize
from wend.autodiff.transpose import BackwardPass, Transposer
from wend.base.lazy.dataclass import dataclass
from wend.base.zero import ZERO
from wend.ir.graph import Graph, Value
from wend.ir.rewrite import copy_nodes
from wend.ir.traverse import backward_slice
from wend.ir.types import Type
from wend.ops.build import Build


@dataclass(slots=True)
class RegionTranspose:
    """A transposed region.

    Attributes:
        graph: the region.
        bwd: the backward pass; its builder holds the backward nodes.
        seeds: cotangents of results, by their positions; params of the backward graph.
        grads: cotangents of the chosen params, by their positions.
    """

    graph: Graph
    bwd: BackwardPass
    seeds: dict[int, Value]
    grads: dict[int, Value]

    def reads(self) -> list[Value]:
        """Return the values of the region that its backward nodes read."""
        return forward_reads(self.bwd.b, self.grads.values())

    def residuals(self, params: Sequence[Value]) -> list[Value]:
        """Return the values to keep so that all reads can be recomputed from them and these params.

        The params that are needed come last.
        """
        available = {*params}
        cut = min_cut_residuals(self.reads(), available)
        needed = backward_slice(self.reads(), {*cut, *available})
        inputs = {*self.reads(), *(value for node in needed for value in node.operands)}
        return [*cut, *(param for param in params if param in inputs)]

    def append_forward(self, b: Build, mapping: dict[Value, Value]) -> None:
        """Append the region's nodes, some of them replaced; `mapping` has the params."""
        b.nodes += copy_nodes(self.graph.nodes, mapping, self.bwd.replaced)
        b.nodes += copy_nodes(self.bwd.b.forward_shape_reads, mapping)

    def append_backward(self, b: Build, mapping: dict[Value, Value]) -> dict[int, Value]:
        """Append the backward nodes; `mapping` has the seeds, and the residuals or all values."""
        b.nodes += rematerialize(backward_slice(self.reads(), set(mapping)), mapping)
        b.nodes += copy_nodes(self.bwd.b.nodes, mapping)
        return {i: mapping[grad] for i, grad in self.grads.items()}

    def with_residuals(self, name: str, residuals: Sequence[Value]) -> Graph:
        """Return the region with the residuals as further results."""
        b = Build(name)
        mapping = {param: b.param(param.type, param.name) for param in self.graph.params}
        self.append_forward(b, mapping)
        return b.finish([mapping[value] for value in (*self.graph.results, *residuals)])

    def from_residuals(self, name: str, residuals: Sequence[Value]) -> Graph:
        """Return the graph (residuals, seeds) → cotangents of params."""
        b = Build(name)
        mapping = {value: b.param(value.type) for value in (*residuals, *self.seeds.values())}
        return b.finish([*self.append_backward(b, mapping).values()])


def transpose_region(
    t: Transposer, graph: Graph, wrt: Iterable[int], seeds: Mapping[int, Type]
) -> RegionTranspose:
    """Pull cotangents of some results, of the given types, back to some params."""
    wrt = list(wrt)
    b = BackwardBuild(f"{graph.name}_backward")
    bwd = BackwardPass(b, Cotangents(), active_values(graph, [graph.params[i] for i in wrt]))
    seed_params = {i: b.param(type) for i, type in seeds.items()}
    for i, seed in seed_params.items():
        bwd.seed(graph.results[i], seed)
    t.pull_back(bwd, graph.nodes)
    cts: dict[int, Cotangent] = {
        i: bwd.cts.get(graph.params[i]) for i in wrt if graph.params[i] in bwd.active
    }
    grads = {i: ct for i, ct in cts.items() if isinstance(ct, Value)}
    return RegionTranspose(graph, bwd, seed_params, grads)


def seeds_of(cts: Sequence[Cotangent], types: Sequence[Type]) -> dict[int, Type]:
    """Return the seeded results, and the types of their cotangents inside the region."""
    return {i: type for i, (ct, type) in enumerate(zip(cts, types, strict=True)) if ct is not ZERO}
