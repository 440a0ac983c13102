"""Strip mining of maps: those with a `chunk` become loops over so many of their elements.

Such a map is whole until here: it is differentiated and fused with its backward map as any other,
its errors tell the numbers of elements, and the loop is over what is left. So a chunk runs forward
and backward in one go where all elements would, and its records are freed before the next.

The chunks here bound the memory, and follow each other. Those of `chunk_maps` are for threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from wend.ir.builder import new_symbol
from wend.ir.graph import Graph, Node, Remark, Value
from wend.ir.rewrite import keep_names, rewrite_nodes, with_operands
from wend.ir.types import Dim, Shape, TensorType
from wend.ops import shaping
from wend.ops.build import Build
from wend.ops.loop_counters import as_integer
from wend.ops.parallel_map import CHUNK, LIST, SUM, ParallelMapParts, element_type, parallel_map
from wend.ops.shapes import WHOLE
from wend.passes.lower_parallel_maps import append_loop


def strip_mine_maps(graph: Graph) -> Graph:
    """Replace maps with a `chunk` by loops over chunks of their elements, in regions too.

    Where the size of an element is not known, or a result has no rows, the chunks are of one.
    """
    if parallel_map not in graph.ops:
        return graph

    def strip_mine(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        copy = with_operands(node, operands, list(map(strip_mine_maps, node.regions)))
        chunk = node.attrs.get(CHUNK) if node.op is parallel_map else None
        if chunk is None:
            nodes.append(copy)
            return copy.results
        b = Build(graph.name)
        b.nodes, b.source = nodes, node.source
        obstacle = _obstacle(copy)
        if obstacle:
            results = append_loop(b, copy, Remark(lanes=1, obstacle=obstacle))
        else:
            results = _in_chunks(b, copy, chunk)
        keep_names(copy.results, results)
        return results

    return rewrite_nodes(graph, strip_mine)


def _obstacle(node: Node) -> str:
    """Return why the elements cannot be taken in chunks, if that is so."""
    p = ParallelMapParts.of(node)
    stacks = [x for x, form in zip(node.results, p.forms, strict=True) if form != SUM]
    if LIST in p.forms or not all(isinstance(x.type, TensorType) for x in p.mapped):
        return "lists have no chunks"
    types = [element_type(x.type) for x in (*p.mapped, *stacks)]
    unknown = [x for x in types if not (isinstance(x, TensorType) and x.is_static)]
    return f"chunks are of elements of known sizes, not of {unknown[0]}" if unknown else ""


def _in_chunks(b: Build, node: Node, chunk: int) -> list[Value]:
    """Append a loop over whole chunks, and a map of what is left; return the results."""
    p = ParallelMapParts.of(node)
    size = p.mapped[0].tensor.dims[0]
    if isinstance(size, int) and size <= chunk:
        return _map(b, p, p.mapped, p.starts)
    chunks = _ChunkDivision(b, p.mapped[0], chunk)
    firsts = _loop(b, p, chunks)
    if chunks.remainder == 0:
        return firsts
    sums = [x for x, form in zip(firsts, p.forms, strict=True) if form == SUM]
    lasts = _map(b, p, [chunks.left(x) for x in p.mapped], sums)
    return [
        last if form == SUM else b.refine(b.concat(first, last, axis=0), result.type)
        for first, last, form, result in zip(firsts, lasts, p.forms, node.results, strict=True)
    ]


class _ChunkDivision:
    """The whole chunks of some elements, and the elements that are left.

    Attributes:
        size: how many elements a chunk has.
        count: how many chunks there are.
        whole: how many elements are in chunks.
        remainder: how many are left.
    """

    def __init__(self, b: Build, mapped: Value, size: int) -> None:
        self.b, self.size = b, size
        total = mapped.tensor.dims[0]
        if isinstance(total, int):
            count = total // size
            dims: tuple[Dim, ...] = count, count * size, total % size
            numbers = b.integer(count), b.integer(count * size), b.integer(total)
        else:
            dims = new_symbol(), new_symbol(), new_symbol()
            count_in_run = b.floor_divide(b.size_of(mapped, 0), b.integer(size))
            whole = b.mul(count_in_run, b.integer(size))
            numbers = count_in_run, whole, b.size_of(mapped, 0)
        self.count, self.whole, self.remainder = dims
        self._count, self._whole, self._total = numbers

    def of(self, x: Value) -> Value:
        """Return the chunks of an array."""
        rows = self._rows(x, self.b.integer(0), self._whole, self.whole)
        dims = (self.size, *x.tensor.dims[1:])
        return self._reshape(rows, self._count, (self.count, *dims))

    def left(self, x: Value) -> Value:
        """Return the elements of an array that are in no chunk."""
        return self._rows(x, self._whole, self._total, self.remainder)

    def joined(self, x: Value) -> Value:
        """Return the elements of all chunks, which have rows."""
        return self._reshape(x, self._whole, (self.whole, *x.tensor.dims[2:]))

    def _rows(self, x: Value, start: Value, stop: Value, dim: Dim) -> Value:
        first, last = as_integer(start), as_integer(stop)
        if first is None or last is None:
            return self.b.narrow(x, start, stop, axis=0, size=dim)
        if x.tensor.dims[0] == dim:
            return x
        others = (WHOLE,) * (len(x.tensor.dims) - 1)
        return self.b.slice(x, slices=((first, last, None), *others))

    def _reshape(self, x: Value, first: Value, shape: Shape) -> Value:
        """Reshape where the run has the first of the sizes."""
        if isinstance(shape[0], int):
            return self.b.reshape(x, shape)
        sizes = [self.b.insert_axes(first, axes=(0,)), self.b.constant(shape[1:], np.int64)]
        return self.b.emit(shaping.reshape, x, self.b.concat(*sizes, axis=0), shape=shape)


def _map(
    b: Build, p: ParallelMapParts, mapped: Sequence[Value], starts: Sequence[Value]
) -> list[Value]:
    """Append the map of some of the elements, all at once; return its results."""
    limits = {name: count for name, count in p.limits.items() if name != CHUNK}
    return [*b.parallel_map(mapped, starts, p.invariants, p.body, p.forms, **limits).results]


def _loop(b: Build, p: ParallelMapParts, chunks: _ChunkDivision) -> list[Value]:
    """Append the loop over the whole chunks; return the results of their elements."""
    groups = [chunks.of(x) for x in p.mapped]
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
        x if form == SUM else chunks.joined(x)
        for x, form in zip(append_loop(b, loop), p.forms, strict=True)
    ]
