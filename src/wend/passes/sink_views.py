"""Views that enter a branch are made in it.

A branch that takes a view of an array, and the array, may write to the array through the view: so
the array is read and written at positions, and the view is not made (`fold_views.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_node, copy_nodes, rewrite_nodes, with_operands
from wend.ops.build import Build
from wend.ops.control import IfParts, if_
from wend.ops.indexing import gather
from wend.passes.view_positions import VIEWS


def sink_views(graph: Graph) -> Graph:
    """Make views in the branches that take them, where these take their arrays as well."""
    if if_ not in graph.ops:
        return graph

    def sink(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        copy = with_operands(node, operands)
        copy = _with_views_inside(copy) if node.op is if_ else copy
        nodes.append(with_operands(copy, copy.operands, [sink_views(x) for x in copy.regions]))
        return nodes[-1].results

    return rewrite_nodes(graph, sink)


def _with_views_inside(node: Node) -> Node:
    """Return an `if` whose branches make the views of arrays that they take."""
    operands = IfParts.of(node).operands
    views = {x for x in operands if (chain := _chain(x)) and chain[0].operands[0] in operands}
    if not views:
        return node
    others = [x for x in operands if x not in views]
    chains = list(dict.fromkeys(node for x in operands if x in views for node in _chain(x)))
    read = [x for view in chains for x in view.operands]
    results = {x for view in chains for x in view.results}
    outer = list(dict.fromkeys([*others, *(x for x in read if x not in results)]))
    branches = [_with_params(x, operands, outer, chains) for x in node.regions]
    return copy_node(node, [node.operands[0], *outer], branches)


def _with_params(
    branch: Graph, operands: Sequence[Value], outer: Sequence[Value], views: Sequence[Node]
) -> Graph:
    """Return a branch that takes other values, from which it makes its former operands."""
    b = Build(branch.name)
    mapping = {x: b.param(x.type) for x in outer}
    b.nodes += copy_nodes(views, mapping)
    mapping |= {param: mapping[x] for param, x in zip(branch.params, operands, strict=True)}
    b.nodes += copy_nodes(branch.nodes, mapping)
    return b.finish([mapping[x] for x in branch.results])


def _chain(x: Value) -> Sequence[Node]:
    """Return the nodes that make a view from its array; none where it is no view."""
    nodes: list[Node] = []
    while x.node is not None and x.node.op in VIEWS and x.node.op is not gather:  # which may fail
        nodes.insert(0, x.node)
        x = x.node.operands[0]
    return nodes
