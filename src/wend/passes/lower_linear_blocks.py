"""Lowers the linear blocks that only the run can decide: to an `if` on whether anything arrived."""

from __future__ import annotations

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import graph_of, on_operands, rename_dims
from wend.ir.types import Dim, Symbol
from wend.ops import maybe
from wend.ops.build import Build
from wend.ops.control import BlockParts, linear_block
from wend.passes.dce import dce
from wend.passes.merge_ifs import merge_ifs
from wend.passes.specialize_zeros import Specializer, specialize_zeros


def without_blocks(graph: Graph) -> Graph:
    """Specialise what is known, lower the rest; what a gradient is when it is handed out."""
    graph = specialize_zeros(graph)
    lowered = lower(graph)
    return graph if lowered is graph else dce(merge_ifs(specialize_zeros(lowered)))


def lower(graph: Graph) -> Graph:
    """Put a guarded `if` in place of every linear block, in regions too.

    Blocks in a row that pass on what may have arrived share one guard.
    """
    if not any(node.op is linear_block for node in graph.walk()):
        return graph
    b = Build(graph.name)
    mapping: dict[Value, Value] = {}
    dims: dict[Symbol, Dim] = {}
    groups: list[_Group] = []
    for node in graph.nodes:
        taking = next((group for group in groups if group.takes(node)), None)
        for group in [group for group in groups if group is not taking and group.feeds(node)]:
            group.emit(b, mapping, dims)
            groups.remove(group)
        if taking is not None:
            taking.members.append(node)
            continue
        if node.op is linear_block:
            groups.append(_Group(node))
            continue
        operands = [mapping.get(v, v) for v in node.operands]
        copy = on_operands(node, operands, [lower(region) for region in node.regions], dims)
        b.nodes.append(copy)
        mapping.update(zip(node.results, copy.results, strict=True))
    for group in groups:
        group.emit(b, mapping, dims)
    results = tuple(mapping.get(value, value) for value in graph.results)
    return graph_of(graph, graph.params, b.nodes, results)


class _Group:
    """Blocks that run when any of the first one's cotangents arrived."""

    def __init__(self, first: Node) -> None:
        self.members = [first]
        self.cotangents = list(dict.fromkeys(BlockParts.of(first).cotangents))

    @property
    def results(self) -> list[Value]:
        return [result for member in self.members for result in member.results]

    def feeds(self, node: Node) -> bool:
        return not {*self.results}.isdisjoint(node.operands)

    def takes(self, node: Node) -> bool:
        """Whether a node's cotangents arrive just where this group runs."""
        if node.op is linear_block:
            cotangents = BlockParts.of(node).cotangents
        elif node.op is maybe.autograd_add:
            cotangents = node.operands
        else:
            return False
        shared = self.cotangents if len(self.cotangents) == 1 else []
        return {*cotangents} <= {*self.results, *shared}

    def emit(self, b: Build, mapping: dict[Value, Value], dims: dict[Symbol, Dim]) -> None:
        """Append the guarded `if`."""
        cotangents = self.cotangents
        operands = dict.fromkeys(v for member in self.members for v in member.operands)
        forward = [v for v in operands if v not in {*cotangents, *self.results}]
        given = [mapping.get(v, v) for v in (*cotangents, *forward)]
        whole = Graph(
            "something", (*cotangents, *forward), tuple(self.members), tuple(self.results)
        )
        # A single one, where anything arrived, is it.
        known = {0: Build.present} if len(cotangents) == 1 else {}
        something = Specializer(opened=self.members[0]).region(
            whole, [value.type for value in given], known=known
        )
        nothing = Build("nothing")
        for value in given:
            nothing.param(value.type)
        branches = (
            nothing.finish([nothing.zero(result.type) for result in self.results]),
            lower(something.finish(something.values(whole))),
        )
        b.source = self.members[0].source
        predicate = b.any_nonzero(*given[: len(cotangents)])
        results = b.if_(predicate, given, branches).results
        mapping.update(zip(self.results, results, strict=True))
        rename_dims(dims, self.results, results)
