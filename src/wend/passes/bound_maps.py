"""Maps with a limit to how many elements are computed together, as loops over so many of them.

Such a map is whole until here: it is differentiated and fused with its backward map as any other,
its errors tell the numbers of elements, and the loop is over what is left. So a chunk runs forward
and backward in one go where all elements would, and its records are freed before the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import keep_names, rewrite_nodes, with_operands
from wend.ir.types import TensorType
from wend.ops.build import Build
from wend.ops.parallel_map import CHUNK, SUM, ParallelMapParts, element_type, parallel_map
from wend.passes.lower_parallel_maps import append_loop


def bound_maps(graph: Graph) -> Graph:
    """Replace maps with a `chunk` by loops over chunks of their elements, in regions too.

    Where the number of elements is not known, or a result has no rows, the chunks are of one.
    """
    if parallel_map not in graph.ops:
        return graph

    def bound(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        copy = with_operands(node, operands, list(map(bound_maps, node.regions)))
        chunk = node.attrs.get(CHUNK) if node.op is parallel_map else None
        if chunk is None:
            nodes.append(copy)
            return copy.results
        b = Build(graph.name)
        b.nodes, b.source = nodes, node.source
        size = _known_size(copy)
        results = append_loop(b, copy) if size is None else _in_chunks(b, copy, chunk, size)
        keep_names(copy.results, results)
        return results

    return rewrite_nodes(graph, bound)


def _known_size(node: Node) -> int | None:
    """Return the number of elements, if they can be taken in chunks."""
    p = ParallelMapParts.of(node)
    rows = [*p.mapped, *(x for x, form in zip(node.results, p.forms, strict=True) if form != SUM)]
    sizes = {x.type.dims[0] for x in rows if isinstance(x.type, TensorType) and x.type.is_static}
    are_arrays = all(isinstance(x.type, TensorType) and x.type.is_static for x in rows)
    (size,) = sizes if are_arrays else (None,)
    return size if isinstance(size, int) else None


def _in_chunks(b: Build, node: Node, chunk: int, size: int) -> list[Value]:
    """Append a loop over whole chunks, and a map of what is left; return the results."""
    p, count = ParallelMapParts.of(node), size // chunk
    whole = count * chunk
    if size <= chunk:
        return _map(b, p, p.mapped, p.starts)
    firsts = _loop(b, p, [_rows(b, x, 0, whole) for x in p.mapped], chunk, count)
    if whole == size:
        return firsts
    sums = [x for x, form in zip(firsts, p.forms, strict=True) if form == SUM]
    lasts = _map(b, p, [_rows(b, x, whole, size) for x in p.mapped], sums)
    return [
        last if form == SUM else b.concat(first, last, axis=0)
        for first, last, form in zip(firsts, lasts, p.forms, strict=True)
    ]


def _map(
    b: Build, p: ParallelMapParts, mapped: Sequence[Value], starts: Sequence[Value]
) -> list[Value]:
    """Append the map of some of the elements, all at once; return its results."""
    limits = {name: count for name, count in p.limits.items() if name != CHUNK}
    return [*b.parallel_map(mapped, starts, p.invariants, p.body, p.forms, **limits).results]


def _loop(
    b: Build, p: ParallelMapParts, mapped: Sequence[Value], chunk: int, count: int
) -> list[Value]:
    """Append the loop over so many chunks of some elements; return the results."""
    groups = [b.reshape(x, (count, chunk, *x.tensor.dims[1:])) for x in mapped]
    inner, scratch = Build(p.body.name), Build("")
    inner.source = scratch.source = p.source
    elements = [inner.param(element_type(x.type)) for x in groups]
    starts, fixed = ([inner.param(x.type) for x in xs] for xs in (p.starts, p.invariants))
    of_chunk = replace(p, mapped=(), starts=(), invariants=tuple(fixed))
    results = _map(inner, of_chunk, elements, [inner.zeros_like(x) for x in starts])
    loop = scratch.parallel_map(
        groups, p.starts, [*p.starts, *p.invariants], inner.finish(results), p.forms
    )
    return [
        x if form == SUM else b.reshape(x, (count * chunk, *x.tensor.dims[2:]))
        for x, form in zip(append_loop(b, loop), p.forms, strict=True)
    ]


def _rows(b: Build, x: Value, start: int, stop: int) -> Value:
    """Return some elements of an array."""
    if x.tensor.dims[0] == stop - start:
        return x
    others = ((None, None, None),) * (len(x.tensor.dims) - 1)
    return b.slice(x, slices=((start, stop, None), *others))
