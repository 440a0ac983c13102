"""Reads of elements in branches, moved before the branches."""

from __future__ import annotations

from collections.abc import Container, Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_nodes, lift, rewrite_nodes, with_operands
from wend.ir.traverse import backward_slice
from wend.ops.build import Build
from wend.ops.control import if_
from wend.ops.indexing import gather
from wend.passes.hoist import may_end_run


class BranchReads:
    """Moves reads that cannot fail out of branches.

    Attributes:
        of: the read in a branch that each moved one stands for.
    """

    def __init__(self, among: Container[Node] | None = None) -> None:
        self._among = among
        self.of: dict[Node, Node] = {}

    def moved(self, region: Graph) -> Graph:
        """Return a region in which reads of its branches come before them."""
        if not region.ops.issuperset((if_, gather)):
            return region

        def move(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
            if node.op is if_:
                node, operands = self._before(nodes, node, operands)
            nodes.append(with_operands(node, operands))
            return nodes[-1].results

        return rewrite_nodes(region, move)

    def _before(
        self, nodes: list[Node], node: Node, operands: list[Value]
    ) -> tuple[Node, list[Value]]:
        """Append the reads of the branches of a node; return it without them, and its operands."""
        branches = [self.moved(branch) for branch in node.regions]
        reads = [self._reads(branch) for branch in branches]
        if not any(reads):
            return with_operands(node, node.operands, branches), operands
        values: dict[Value, Value] = {}
        for branch, of_branch in zip(branches, reads, strict=True):
            sources = dict(zip(branch.params, operands[1:], strict=True))
            for read in of_branch:
                (result,) = read.results
                values[result] = lift([result], nodes, sources)[result]
                if (moved := values[result].node) is not None:
                    self.of[moved] = self.of.get(read, read)
        b = Build("")
        b.source = node.source
        arguments = [*operands[1:], *values.values()]
        new = b.if_(operands[0], arguments, [_with_values(branch, values) for branch in branches])
        return new, [*new.operands]

    def _reads(self, branch: Graph) -> list[Node]:
        return [
            node for node in branch.nodes if node.op is gather and self._is_movable(branch, node)
        ]

    def _is_movable(self, branch: Graph, read: Node) -> bool:
        array, *positions = read.operands
        is_wanted = self._among is None or self.of.get(read, read) in self._among
        if not is_wanted or array not in branch.params or read.results[0].tensor.shape != ():
            return False
        nodes = [read, *backward_slice(positions, branch.params)]
        return not any(node.regions or may_end_run(node) for node in nodes)


def _with_values(branch: Graph, values: dict[Value, Value]) -> Graph:
    """Return a branch that gets the values of reads, and reads no more."""
    params = [Value(x.type) for x in values]
    mapping = dict(zip(values, params, strict=True))
    nodes = [node for node in branch.nodes if not mapping.keys() & {*node.results}]
    copies = copy_nodes(nodes, mapping)
    results = tuple(mapping.get(x, x) for x in branch.results)
    return Graph(branch.name, (*branch.params, *params), tuple(copies), results)
