"""Chunks: the elements of a `parallel_map` in groups, which threads take as they come (D54).

A chunk is batched as all elements would be, so its loops run in lanes or one element after the
other. Only maps of such loops get chunks; array operations are split among threads by themselves.
The size of a chunk follows from the number of elements and the kind of the loops, so results are
the same whatever runs them. What depends on no element is computed before the chunks. A sum over
the elements is that over the sums of the chunks.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.ir.builder import new_symbol
from wend.ir.graph import Graph, Node, Remark, Value
from wend.ir.rewrite import copy_node, keep_names, rewrite_nodes, with_operands
from wend.ir.types import Dim, TensorType, Type
from wend.ops.build import Build
from wend.ops.control import while_
from wend.ops.parallel_map import LIST, STACK, SUM, ParallelMapParts, parallel_map
from wend.passes.batch_lanes import MIN_IN_LANES
from wend.passes.batch_maps import batch_maps_around_lanes
from wend.passes.batch_nodes import may_run_once
from wend.passes.dce import dce
from wend.passes.lane_maps import refilled_loops, runs_in_lanes, suitable_lanes

# The least elements of a chunk that runs in loops, not in lanes
_MIN_IN_LOOPS = 16
# A chunk fills the lanes at least this often. Lanes that are refilled idle while the last elements
# of a chunk end, so these need more.
_MIN_LANE_GROUPS, _MIN_REFILLS = 4, 64
# More chunks would balance no better
_MAX_CHUNKS = 64


def chunk_maps(graph: Graph) -> Graph:
    """Split the `parallel_map` nodes of a graph whose elements have loops of their own."""
    if parallel_map not in graph.ops:
        return graph
    return _chunked(dce(graph))


def _chunked(graph: Graph) -> Graph:
    def split(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        if node.op is not parallel_map:
            nodes.append(
                with_operands(node, operands, [_chunked(region) for region in node.regions])
            )
            return nodes[-1].results
        copy = with_operands(node, operands)
        chunk = _chunk_of(copy)
        if chunk is None:
            nodes.append(copy)
            return copy.results
        b = Build("")
        b.nodes, b.source = nodes, node.source
        results = _append_chunks(b, copy, ParallelMapParts.of(copy), chunk)
        keep_names(copy.results, results)
        return results

    return rewrite_nodes(graph, split)


def _chunk_of(node: Node) -> int | None:
    """Return how many elements a chunk of a map has; None where the map stays whole."""
    p = ParallelMapParts.of(node)
    if not all(map(_is_ranked, (x.type for x in node.operands))) or LIST in p.forms:
        return None
    if not any(inner.op is while_ for inner in p.body.walk()):
        return None
    size = p.mapped[0].tensor.dims[0]
    if isinstance(size, int) and size < 2 * _MIN_IN_LOOPS:
        return None
    batched = batch_maps_around_lanes(_alone(node))
    maps = [inner for inner in batched.walk() if inner.op is parallel_map]
    if maps:
        return _size_of_chunks(size, max(map(_least_elements, maps)))
    has_lanes = any(x.remark is not None and x.remark.lanes for x in batched.walk())
    return _size_of_chunks(size, MIN_IN_LANES) if has_lanes else None


def _least_elements(node: Node) -> int:
    """Return the least elements of a chunk, for what one of its maps costs besides its trips."""
    if not runs_in_lanes(node):
        return _MIN_IN_LOOPS
    body = node.regions[0]
    return (_MIN_REFILLS if refilled_loops(body) else _MIN_LANE_GROUPS) * suitable_lanes(body)


def _is_ranked(type: Type) -> bool:
    return isinstance(type, TensorType) and type.shape is not None


def _alone(node: Node) -> Graph:
    """Return a graph of one node."""
    b = Build("")
    params = [b.param(x.type) for x in node.operands]
    copy = copy_node(node, params)
    b.nodes.append(copy)
    return b.finish(copy.results)


def _size_of_chunks(size: Dim, least: int) -> int | None:
    """Return the size of a chunk, a divisor of the number of elements if one is near."""
    if not isinstance(size, int):
        return least
    if size < 2 * least:
        return None
    first = max(least, -(-size // _MAX_CHUNKS))
    even = (k for k in range(first, min(2 * first, size // 2) + 1) if size % k == 0)
    return next(even, first)


def _append_chunks(b: Build, node: Node, p: ParallelMapParts, chunk: int) -> list[Value]:
    """Append what replaces the map, and return its results."""
    fixed, body = _without_invariants(b, p)
    size = p.mapped[0].tensor.dims[0]
    own: Dim = chunk if isinstance(size, int) and size % chunk == 0 else new_symbol()
    inner = Build("chunk")
    inner.source = p.source
    mapped = [inner.param(x.tensor.with_shape((own, *x.tensor.dims[1:]))) for x in p.mapped]
    starts = [inner.param(x.type) for x in p.starts]
    invariants = [inner.param(x.type) for x in fixed]
    zeros = [inner.zeros_like(x) for x in starts]
    map_of_chunk = inner.parallel_map(mapped, zeros, invariants, body, p.forms, **p.limits)
    results = [
        inner.insert_axes(x, axes=(0,)) if form == SUM else x
        for form, x in zip(p.forms, map_of_chunk.results, strict=True)
    ]
    rows = [form == STACK for form in p.forms]
    new = b.chunked_map(
        p.mapped,
        [*p.starts, *fixed],
        inner.finish(results),
        chunk,
        rows,
        p.limits.get("threads"),
    )
    new.remark = Remark(chunk=chunk, threads=p.limits.get("threads"))
    return [
        b.refine(_total(b, p.start_of(k), x) if form == SUM else x, old.type)
        for k, (form, x, old) in enumerate(zip(p.forms, new.results, node.results, strict=True))
    ]


def _total(b: Build, start: Value, parts: Value) -> Value:
    return b.add(start, b.refine(b.reduce_sum(parts, axes=(0,)), start.type))


def _without_invariants(b: Build, p: ParallelMapParts) -> tuple[list[Value], Graph]:
    """Hoist invariant nodes out of the body; return the invariants and the body that is left."""
    size = p.mapped[0].tensor.dims[0]
    outer = dict(zip(p.body_invariants, p.invariants, strict=True))
    computed: list[Value] = []
    for node in p.body.nodes:
        is_ranked = all(_is_ranked(x.type) for x in node.results)
        if is_ranked and outer.keys() >= {*node.operands} and may_run_once(node, size):
            copy = copy_node(node, [outer[x] for x in node.operands])
            b.nodes.append(copy)
            outer.update(zip(node.results, copy.results, strict=True))
            if node.operands:
                computed += node.results
    inner = Build(p.body.name)
    params = [inner.param(x.type) for x in p.elements]
    fixed = [inner.param(x.type) for x in (*p.body_invariants, *computed)]
    replaced = dict(zip((*p.body_invariants, *computed), fixed, strict=True))
    mapping: dict[Value, Value] = {**dict(zip(p.elements, params, strict=True)), **replaced}
    for node in p.body.nodes:
        if not all(x in replaced for x in node.results):
            inner.nodes.append(copy_node(node, [mapping[x] for x in node.operands]))
            mapping.update(zip(node.results, inner.nodes[-1].results, strict=True))
    body = inner.finish([mapping[x] for x in p.body.results])
    return [*p.invariants, *(outer[x] for x in computed)], body
