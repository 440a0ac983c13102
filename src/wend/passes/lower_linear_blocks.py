"""Lowering of linear blocks that only the run can decide, to an `if` on the incoming cotangents."""

from __future__ import annotations

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import rebuild_graph, rename_dims, with_operands
from wend.ir.types import Dim, Symbol
from wend.ops import maybe
from wend.ops.build import Build
from wend.ops.control import BlockParts, linear_block
from wend.passes.dce import dce
from wend.passes.merge_ifs import merge_ifs
from wend.passes.specialize_zeros import specialize_zeros, specializer


def lower_linear_blocks(graph: Graph) -> Graph:
    """Specialize what is known statically and guard the rest; the form of a gradient handed out."""
    graph = specialize_zeros(graph)
    lowered = guard_linear_blocks(graph)
    return graph if lowered is graph else dce(merge_ifs(specialize_zeros(lowered)))


def guard_linear_blocks(graph: Graph) -> Graph:
    """Replace every linear block by a guarded `if`, in regions too.

    Consecutive blocks whose cotangents arrive together share one guard.
    """
    if linear_block not in graph.ops:
        return graph
    b = Build(graph.name)
    mapping: dict[Value, Value] = {}
    dims: dict[Symbol, Dim] = {}
    groups: list[_GuardGroup] = []
    for node in graph.nodes:
        group_of_node = next((group for group in groups if group.accepts(node)), None)
        for group in [
            group for group in groups if group is not group_of_node and group.feeds(node)
        ]:
            group.emit(b, mapping, dims)
            groups.remove(group)
        if group_of_node is not None:
            group_of_node.members.append(node)
            continue
        if node.op is linear_block:
            groups.append(_GuardGroup(node))
            continue
        operands = [mapping.get(v, v) for v in node.operands]
        copy = with_operands(
            node, operands, [guard_linear_blocks(region) for region in node.regions], dims
        )
        b.nodes.append(copy)
        mapping.update(zip(node.results, copy.results, strict=True))
    for group in groups:
        group.emit(b, mapping, dims)
    results = tuple(mapping.get(value, value) for value in graph.results)
    return rebuild_graph(graph, graph.params, b.nodes, results)


class _GuardGroup:
    """Linear blocks that run when any of the first one's cotangents arrived."""

    def __init__(self, first: Node) -> None:
        self.members = [first]
        self.cotangents = list(dict.fromkeys(BlockParts.of(first).cotangents))

    @property
    def results(self) -> list[Value]:
        return [result for member in self.members for result in member.results]

    def feeds(self, node: Node) -> bool:
        return not {*self.results}.isdisjoint(node.operands)

    def accepts(self, node: Node) -> bool:
        """Return whether a node's cotangents arrive exactly where this group runs."""
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
        operands_now = [mapping.get(v, v) for v in (*cotangents, *forward)]
        body = Graph("something", (*cotangents, *forward), tuple(self.members), tuple(self.results))
        # With a single cotangent, the guard says that it is the one that arrived.
        param_facts = {0: Build.present} if len(cotangents) == 1 else {}
        then = specializer(opened=self.members[0]).region(
            body, [value.type for value in operands_now], known=param_facts
        )
        otherwise = Build("nothing")
        for value in operands_now:
            otherwise.param(value.type)
        branches = (
            otherwise.finish([otherwise.zero(result.type) for result in self.results]),
            guard_linear_blocks(then.b.finish(then.values(body))),
        )
        b.source = self.members[0].source
        predicate = b.any_nonzero(*operands_now[: len(cotangents)])
        results = b.if_(predicate, operands_now, branches).results
        mapping.update(zip(self.results, results, strict=True))
        rename_dims(dims, self.results, results)
