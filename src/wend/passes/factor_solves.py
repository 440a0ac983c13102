"""Linear solves as a factorization and solves with its factors.

Factors of a matrix that no trip of a loop changes are computed before the loop, equal ones once
(`cse.py`), and a derivative solves with those of the value: its matrix is the same or the
transpose. Complex systems stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Op
from wend.ir.rewrite import rewrite_nodes, with_operands
from wend.ir.traverse import use_counts
from wend.ops.build import Build
from wend.ops.control import while_
from wend.ops.linalg import lu_factor, lu_solve, solve
from wend.passes.hoist import hoist_from_all_trips

# Rows of a matrix whose factors take about as much time to record as to compute
_SMALL = 8
# (new nodes so far, node, new operands) → results; None: the node stays
_NodeRewriter: TypeAlias = Callable[[list[Node], Node, list[Value]], Sequence[Value] | None]
_Rewriter: TypeAlias = Callable[[Graph], _NodeRewriter]


def factor_solves(graph: Graph) -> Graph:
    """Replace each solve by a factorization and a solve with the factors."""
    return _rewritten(graph, solve, _factored, {})


def factor_solves_once(graph: Graph) -> Graph:
    """Do that in a graph to be differentiated: factors that loops do not change stand before them.

    Else each trip would record its factors. Small ones take less time to compute again.
    """
    factored = factor_solves(graph)
    if factored is graph:
        return graph
    return _join_small(hoist_from_all_trips(factored, lambda node: node.op is lu_factor))


def _join_small(graph: Graph, *, is_in_loop: bool = False) -> Graph:
    """Replace small factors that one solve of the same trip reads by the whole solve."""
    if while_ not in graph.ops and not is_in_loop:
        return graph

    def rewrite(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        is_inner = is_in_loop or node.op is while_
        regions = [_join_small(region, is_in_loop=is_inner) for region in node.regions]
        copy = with_operands(node, operands, regions)
        nodes.append(copy)
        return copy.results

    graph = rewrite_nodes(graph, rewrite)
    is_joined = is_in_loop and any(_is_small(node) for node in graph.nodes)
    return (
        _rewritten(graph, lu_solve, partial(_joined, joins=_is_small), {}) if is_joined else graph
    )


def _is_small(node: Node) -> bool:
    size = node.operands[0].tensor.dims[-1] if node.op is lu_solve else None
    return isinstance(size, int) and size <= _SMALL


def join_factors(graph: Graph) -> Graph:
    """Replace factors that only one solve reads by the whole solve, which copies less."""
    return _rewritten(graph, lu_solve, _joined, {})


def _rewritten(graph: Graph, op: Op, rewriter: _Rewriter, done: dict[Graph, Graph]) -> Graph:
    """Return the graph with nodes of an operation rewritten, at any depth; each graph once."""
    if op not in graph.ops:
        return graph
    if graph in done:
        return done[graph]
    rewrite = rewriter(graph)

    def rewrite_node(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        if node.op is op and (results := rewrite(nodes, node, operands)) is not None:
            return results
        regions = [_rewritten(region, op, rewriter, done) for region in node.regions]
        copy = with_operands(node, operands, regions)
        nodes.append(copy)
        return copy.results

    result = done[graph] = rewrite_nodes(graph, rewrite_node)
    return result


def _factored(graph: Graph) -> _NodeRewriter:
    def rewrite(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value] | None:
        a, y = operands
        if a.tensor.dtype.kind == "c" or a.tensor.rank != 2:
            return None
        b = _building(nodes, node)
        factors, exchanges = b.emit_node(lu_factor, [a], of=node.op.name).results
        return [b.emit(lu_solve, factors, exchanges, y, transposed=False)]

    return rewrite


def _joined(graph: Graph, joins: Callable[[Node], bool] | None = None) -> _NodeRewriter:
    counts = use_counts(graph)

    def rewrite(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value] | None:
        factors, _, y = operands
        factoring = factors.node
        if (
            factoring is None
            or factoring.op is not lu_factor
            or node.attrs["transposed"]
            or any(counts[x] > 1 for x in node.operands[:2])
            or (joins is not None and not joins(node))
        ):
            return None
        return [_building(nodes, node).solve(factoring.operands[0], y)]

    return rewrite


def _building(nodes: list[Node], node: Node) -> Build:
    b = Build("")
    b.nodes, b.source = nodes, node.source
    return b
