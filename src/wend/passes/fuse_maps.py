"""Fusion of `parallel_map` nodes: one that reads the results of another, element by element.

The backward node of a gradient reads what the forward node has recorded. Where nothing between the
two joins elements, each element runs forward and backward in one go, and its records are freed
before the next. Elementwise operations between them, such as those of a loss, join none.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
from wend.ir.rewrite import inline, rewrite_nodes, with_operands
from wend.ir.types import Dim, TensorType
from wend.ops import shaping
from wend.ops.build import Build
from wend.ops.parallel_map import SUM, ParallelMapParts, element_type, parallel_map
from wend.passes.dce import dce
from wend.passes.lane_maps import is_elementwise


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
    """Two nodes to fuse, and the nodes between them that the second one needs.

    Attributes:
        first: the node whose results the second one reads.
        second: the other.
        before: what does not depend on these results.
        between: elementwise operations that do.
    """

    first: Node
    second: Node
    before: Sequence[Node]
    between: Sequence[Node]


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
    if len(sizes) != 1 or p.limits != q.limits:
        return None
    nodes = graph.nodes[i + 1 : j]
    depending = {*results}
    for node in nodes:
        if not depending.isdisjoint(node.operands):
            depending.update(node.results)
    if depending.isdisjoint(q.mapped) or not depending.isdisjoint((*q.starts, *q.invariants)):
        return None
    needed = {*second.operands}
    before: list[Node] = []
    between: list[Node] = []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.results):
            (before if depending.isdisjoint(node.results) else between).append(node)
            needed.update(node.operands)
    (size,) = sizes
    is_apart = sums.isdisjoint(needed) and all(_is_of_rows(node, size) for node in between)
    if not is_apart or not all(map(_may_move, before)):
        return None
    return _Pair(first, second, before[::-1], between[::-1])


def _is_of_rows(node: Node, size: Dim) -> bool:
    """Return whether each row of a node's results follows from a row of each of its operands."""
    types = [x.type for x in (*node.operands, *node.results)]
    are_rows = all(isinstance(x, TensorType) and x.shape and x.shape[0] == size for x in types)
    return are_rows and is_elementwise(node) and _may_move(node)


def _may_move(node: Node) -> bool:
    nodes = [node, *(inner for region in node.regions for inner in region.walk())]
    return all(x.op.effect is Effect.NONE and not x.op.may_fail(x) for x in nodes)


def _spread_number(x: Value) -> Value | None:
    """Return the number of which an array is made, if its rows have a known shape."""
    if x.node is None or x.node.op is not shaping.broadcast_to:
        return None
    number = x.node.operands[0]
    is_known = all(isinstance(dim, int) for dim in x.tensor.dims[1:])
    return number if number.tensor.shape == () and is_known else None


def _fuse_pair(graph: Graph, pair: _Pair) -> Graph:
    first, second = pair.first, pair.second
    p, q = ParallelMapParts.of(first), ParallelMapParts.of(second)
    computed = {*first.results, *(x for node in pair.between for x in node.results)}
    others = [x for node in pair.between for x in node.operands if x not in computed]
    numbers = {x: number for x in others if (number := _spread_number(x)) is not None}
    read = [*(x for x in others if x not in numbers), *q.mapped]
    mapped = list(dict.fromkeys([*p.mapped, *(x for x in read if x not in computed)]))
    shared = list(dict.fromkeys([*p.invariants, *q.invariants, *numbers.values()]))
    inner = Build(p.body.name)
    elements = {x: inner.param(element_type(x.type)) for x in mapped}
    fixed = {x: inner.param(x.type) for x in shared}
    forward = inline(
        p.body, [*(elements[x] for x in p.mapped), *(fixed[x] for x in p.invariants)], inner.nodes
    )
    elements.update(zip(first.results, forward, strict=True))
    for x, number in numbers.items():
        elements[x] = inner.broadcast_to(fixed[number], x.tensor.dims[1:])  # type: ignore[arg-type]
    for node in pair.between:
        inner.source = node.source
        copy = inner.emit_node(node.op, [elements[x] for x in node.operands], **node.attrs)
        elements.update(zip(node.results, copy.results, strict=True))
    backward = inline(
        q.body, [*(elements[x] for x in q.mapped), *(fixed[x] for x in q.invariants)], inner.nodes
    )
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
