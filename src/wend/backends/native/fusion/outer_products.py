"""Products of matrices that add nothing up, as products of elements, which loops fuse.

An outer product, and one for each element of a batch, has a number for each pair of numbers. As a
matrix product it would be stored, and the loop that reads it would wait for memory. What is only
added to a matrix stays a matrix product, which accumulates in place. The product of a number and an
array, as in the adjoint of `x @ y` of vectors, is one of elements, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import rewrite_nodes, with_operands
from wend.ir.traverse import users_of
from wend.ops import contracting, elementwise
from wend.ops.build import Build


def spread_outer_products(graph: Graph, computes: Callable[[Node], bool]) -> Graph:
    """Write products without a contracted axis as products of elements, in regions too.

    Args:
        graph: the graph.
        computes: whether a node computes elements, so that a loop can fuse it.
    """
    if contracting.dot_general not in graph.ops or not any(map(_is_outer, graph.walk())):
        return graph
    users = users_of(graph.nodes)

    def rewrite(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        regions = [spread_outer_products(region, computes) for region in node.regions]
        copy = with_operands(node, operands, regions)
        readers = users[node.results[0]] if node.results else ()
        if not _is_outer(node) or not _gains(node, readers, computes):
            nodes.append(copy)
            return copy.results
        b = Build("")
        b.nodes, b.source = nodes, node.source
        return [_product(b, copy)]

    return rewrite_nodes(graph, rewrite)


def _is_outer(node: Node) -> bool:
    if node.op is not contracting.dot_general or node.attrs["contract"] != ((), ()):
        return False
    type = node.results[0].tensor
    return bool(type.dims) and type.dtype.kind != "b" and (type.is_static or _scales(node))


def _scales(node: Node) -> bool:
    """Return whether a product is that of a number and an array."""
    return not all(x.tensor.dims for x in node.operands)


def _gains(node: Node, readers: Sequence[Node], computes: Callable[[Node], bool]) -> bool:
    """Return whether a loop is better: it has many small products, or is fused with its readers."""
    if node.attrs["batch"] != ((), ()) or _scales(node):
        return True
    return bool(readers) and all(x.op is not elementwise.add and computes(x) for x in readers)


def _product(b: Build, node: Node) -> Value:
    x, y = node.operands
    if _scales(node):
        number, array = (y, x) if x.tensor.dims else (x, y)
        return b.mul(b.broadcast_like(number, array), array)
    shape = node.results[0].tensor.dims
    batches = node.attrs["batch"]
    count, rows = len(batches[0]), len(x.tensor.dims) - len(batches[0])
    x = _batch_first(b, x, batches[0])
    y = _batch_first(b, y, batches[1])
    x = b.insert_axes(x, axes=tuple(range(count + rows, len(shape))))
    y = b.insert_axes(y, axes=tuple(range(count, count + rows)))
    return b.mul(b.broadcast_to(x, shape), b.broadcast_to(y, shape))  # type: ignore[arg-type]


def _batch_first(b: Build, x: Value, batch: Sequence[int]) -> Value:
    perm = (*batch, *(k for k in range(len(x.tensor.dims)) if k not in batch))
    return x if perm == tuple(range(len(perm))) else b.transpose(x, perm=perm)
