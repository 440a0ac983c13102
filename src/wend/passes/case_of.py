"""Branches out of nodes of an existing graph (libnnc: case-of), of which one runs, or none."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from wend.base.lazy.dataclass import dataclass
from wend.ir.dtypes import INT64
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_nodes
from wend.ir.types import TensorType
from wend.ops.build import Build
from wend.passes.graph_regions import ancestors, check_equal_types, fail, name_of, text_of


@dataclass(frozen=True, slots=True)
class BranchesFromGraph:
    """A graph in which one node with branches stands for some nodes of another one.

    Attributes:
        graph: the new graph; it has the params and results of the old one.
        node: the node with the branches.
        outputs: its results, values of the new graph.
    """

    graph: Graph
    node: Node
    outputs: tuple[Value, ...]

    def with_results(self, *results: Value) -> Graph:
        """Return the new graph with other results."""
        return replace(self.graph, results=results)


def case_of(
    graph: Graph,
    branches: Sequence[Collection[Node]],
    index: Value,
    outputs: Sequence[Sequence[Value]],
) -> BranchesFromGraph:
    """Replace nodes of a graph by branches, of which an index chooses one.

    An output is what the chosen branch gives for it. Where the index names no branch it is a value
    that is passed through, and gradients pass with it. Outside the branches every value that a
    branch gives for an output stands for the output.

    Args:
        graph: the graph.
        branches: the nodes of each branch.
        index: an integer; below zero, and beyond the last branch, none runs.
        outputs: for each output the value to pass through, then that of each branch.

    Raises:
        GraphError: the nodes are no branches; there is an error for each rule that they break.

    Example:
        >>> import wend, numpy as np
        >>> from wend.ir import case_of
        >>> fun = wend.function(lambda x, k: np.exp(x))
        >>> graph = fun.get_concrete_function(1.0, np.int64(0)).graph
        >>> x, k = graph.params
        >>> exp = graph.results[0]
        >>> case_of(graph, [[exp.node]], k, [(x, exp)]).graph.count("if")
        1
    """
    rows = [tuple(row) for row in outputs]
    members = [{*branch} for branch in branches]
    _check_branches(graph, members, index, rows)
    inside = set[Node]().union(*members)
    reads = [x for node in graph.nodes if node in inside for x in node.operands]
    passed = [row[0] for row in rows]
    outer = [x for x in dict.fromkeys((*reads, *passed)) if x.node not in inside]
    for x in (index, *outer):
        if x.node is not None and not inside.isdisjoint(ancestors([x.node], graph.nodes)):
            fail(f"case_of: {name_of(x)} goes into a branch, and needs what comes out of one")
    b = Build(graph.name)
    b.params = [*graph.params]
    others = [node for node in graph.nodes if node not in inside]
    needed = ancestors([x.node for x in (index, *outer) if x.node is not None], graph.nodes)
    b.nodes += [node for node in others if node in needed]
    chosen = [
        _branch(f"branch{k}", graph, nodes, outer, [row[k + 1] for row in rows])
        for k, nodes in enumerate(members)
    ]
    passing = _branch("none", graph, set(), outer, passed)
    none = b.integer(len(chosen))
    selector = b.select(b.lt(index, none), index, none)
    selector = b.select(b.lt(index, b.integer(0)), none, selector)
    node = b.if_(selector, outer, [*chosen, passing])
    mapping = {
        x: result
        for row, result in zip(rows, node.results, strict=True)
        for x in row[1:]
        if x.node in inside
    }
    b.nodes += copy_nodes([node for node in others if node not in needed], mapping)
    results = [mapping.get(x, x) for x in graph.results]
    new = replace(b.finish(results), captures=graph.captures)
    return BranchesFromGraph(new, node, node.results)


def _branch(
    name: str, graph: Graph, nodes: set[Node], outer: Sequence[Value], results: Sequence[Value]
) -> Graph:
    b = Build(name)
    mapping = {x: b.param(x.type, x.name) for x in outer}
    b.nodes += copy_nodes([node for node in graph.nodes if node in nodes], mapping)
    return b.finish([mapping[x] for x in results])


def _check_branches(
    graph: Graph,
    members: Sequence[set[Node]],
    index: Value,
    rows: Sequence[Sequence[Value]],
) -> None:
    branch_of: dict[Node, int] = {}
    all_nodes = {*graph.nodes}
    for k, nodes in enumerate(members):
        for node in nodes:
            if node not in all_nodes:
                fail(f"case_of: {text_of(node)} of branch {k} is no node of the graph")
            if branch_of.setdefault(node, k) != k:
                fail(f"case_of: {text_of(node)} is in two branches, {branch_of[node]} and {k}")
    if index.type != TensorType(INT64, ()):
        fail(f"case_of: the index is {index.type}, not i64[]")
    if not rows:
        fail("case_of: there are no outputs", "name what the branches give.")
    for row in rows:
        if len(row) != len(members) + 1:
            fail(
                f"case_of: an output has {len(row)} values for {len(members)} branches",
                "name the value to pass through, then that of each branch.",
            )
        for k, x in enumerate(row[1:]):
            check_equal_types("case_of: an output", row[0], x)
            if x.node in branch_of and branch_of[x.node] != k:
                fail(f"case_of: {name_of(x)} is given by another branch than {k}")
        if row[0].node in branch_of:
            fail(f"case_of: {name_of(row[0])} is passed through, and is in a branch")
    _check_uses(graph, branch_of, {x for row in rows for x in row[1:]})


def _check_uses(graph: Graph, branch_of: dict[Node, int], merged: set[Value]) -> None:
    """Check that what a branch gives is read in it, or is an output."""
    uses = [(branch_of.get(node), text_of(node), x) for node in graph.nodes for x in node.operands]
    uses += [(None, "a result of the graph", x) for x in graph.results]
    for user, text, x in uses:
        if x.node not in branch_of or branch_of[x.node] == user:
            continue
        if user is not None:
            fail(
                f"case_of: {text} in branch {user} reads {name_of(x)} of branch {branch_of[x.node]}"
            )
        if x not in merged:
            fail(
                f"case_of: {text} reads {name_of(x)} of a branch, which is no output",
                "name it as an output, beside what the other branches give there.",
            )
