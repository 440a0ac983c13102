"""Fusion of `parallel_map` nodes: one that reads the results of another, element by element.

The backward node of a gradient reads what the forward node has recorded. Where nothing between the
two joins elements, each element runs forward and backward in one go, and its records are freed
before the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.rewrite import inline, rewrite_nodes, with_operands
from wend.ir.types import TensorType
from wend.ops.build import Build
from wend.ops.parallel_map import SUM, ParallelMapParts, element_type, parallel_map
from wend.passes.dce import dce


def fuse_maps(graph: Graph) -> Graph:
    """Fuse pairs of `parallel_map` nodes, in regions too."""
    if parallel_map not in graph.ops:
        return graph
    fused = _fused(graph)
    return graph if fused is graph else dce(fused)


def _fused(graph: Graph) -> Graph:
    def descend(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        nodes.append(with_operands(node, operands, [_fused(region) for region in node.regions]))
        return nodes[-1].results

    graph = rewrite_nodes(graph, descend)
    while (pair := _find_pair(graph)) is not None:
        graph = _fuse_pair(graph, pair)
    return graph


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two nodes to fuse, and the nodes between them that the second one needs."""

    first: Node
    second: Node
    before: Sequence[Node]


def _find_pair(graph: Graph) -> _Pair | None:
    maps = [k for k, node in enumerate(graph.nodes) if node.op is parallel_map]
    for j in maps:
        for i in (i for i in reversed(maps) if i < j):
            pair = _pair(graph, i, j)
            if pair is not None:
                return pair
    return None


def _pair(graph: Graph, i: int, j: int) -> _Pair | None:
    first, second = graph.nodes[i], graph.nodes[j]
    p, q, results = ParallelMapParts.of(first), ParallelMapParts.of(second), {*first.results}
    sizes = {x.type.dims[0] for x in (*p.mapped, *q.mapped) if isinstance(x.type, TensorType)}
    sums = {x for x, form in zip(first.results, p.forms, strict=True) if form == SUM}
    is_elementwise = not results.isdisjoint(q.mapped) and sums.isdisjoint(q.mapped)
    if len(sizes) != 1 or not is_elementwise or p.limits != q.limits:
        return None
    between = graph.nodes[i + 1 : j]
    needed = {x for x in second.operands if x not in results}
    before: list[Node] = []
    for node in reversed(between):
        if not needed.isdisjoint(node.results):
            before.append(node)
            needed.update(node.operands)
    is_joined = not results.isdisjoint(needed) or not results.isdisjoint((*q.starts, *q.invariants))
    return (
        None if is_joined or not all(map(_may_move, before)) else _Pair(first, second, before[::-1])
    )


def _may_move(node: Node) -> bool:
    nodes = [node, *(inner for region in node.regions for inner in region.walk())]
    return all(x.op.effect is Effect.NONE and not x.op.may_fail(x) for x in nodes)


def _fuse_pair(graph: Graph, pair: _Pair) -> Graph:
    first, second = pair.first, pair.second
    p, q = ParallelMapParts.of(first), ParallelMapParts.of(second)
    place = {x: k for k, x in enumerate(first.results)}
    mapped = list(dict.fromkeys([*p.mapped, *(x for x in q.mapped if x not in place)]))
    shared = list(dict.fromkeys([*p.invariants, *q.invariants]))
    inner = Build(p.body.name)
    elements = {x: inner.param(element_type(x.type)) for x in mapped}
    fixed = {x: inner.param(x.type) for x in shared}
    forward = inline(
        p.body, [*(elements[x] for x in p.mapped), *(fixed[x] for x in p.invariants)], inner.nodes
    )
    read = [forward[place[x]] if x in place else elements[x] for x in q.mapped]
    backward = inline(q.body, [*read, *(fixed[x] for x in q.invariants)], inner.nodes)
    b = Build("")
    b.source = first.source
    node = b.parallel_map(
        mapped,
        [*p.starts, *q.starts],
        shared,
        inner.finish([*forward, *backward]),
        [*p.forms, *q.forms],
        **p.limits,
    )
    old = (*first.results, *second.results)
    new = [b.refine(x, y.type) for x, y in zip(node.results, old, strict=True)]
    mapping = dict(zip(old, new, strict=True))
    nodes: list[Node] = []
    for other in graph.nodes:
        if other is first:
            nodes += [*pair.before, *b.nodes]
        elif other is not second and other not in pair.before:
            nodes.append(with_operands(other, [mapping.get(x, x) for x in other.operands]))
            mapping.update(zip(other.results, nodes[-1].results, strict=True))
    results = tuple(mapping.get(x, x) for x in graph.results)
    return Graph(graph.name, graph.params, tuple(nodes), results, graph.captures)
