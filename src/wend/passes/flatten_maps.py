"""Flattening of maps: a map whose body is a map, as one over the pairs of elements.

So few inner elements fill lanes, and chunks are of pairs. Only maps of numbers are flattened: what
an outer element has for all inner ones is repeated for each. Whether a check fails for any of the
inner elements is computed from the results of all pairs.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_node, inline, keep_names, rewrite_nodes, with_operands
from wend.ir.types import TensorType, Type
from wend.ops import creating, reducing, shaping
from wend.ops.build import Build
from wend.ops.control import while_
from wend.ops.parallel_map import STACK, ParallelMapParts, element_type, parallel_map
from wend.ops.shapes import size_of
from wend.passes.batch_lanes import MAX_VALUE_ELEMENTS


def flatten_maps(graph: Graph) -> Graph:
    """Replace maps whose bodies are maps of loops on numbers, in regions too."""
    if parallel_map not in graph.ops:
        return graph
    flat: list[Node] = []

    def flatten(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        inner = _inner_map(node) if node.op is parallel_map else None
        if inner is None:
            nodes.append(with_operands(node, operands, list(map(flatten_maps, node.regions))))
            return nodes[-1].results
        copy = with_operands(node, operands)
        b = Build("")
        b.nodes, b.source = nodes, node.source
        results = _append_flat(b, copy, inner)
        keep_names(copy.results, results)
        flat.append(node)
        return results

    result = rewrite_nodes(graph, flatten)
    # The body of a map over pairs may be a map
    return flatten_maps(result) if flat else result


def _inner_map(node: Node) -> Node | None:
    """Return the map that is the body of a map, if both are of few numbers and stack results."""
    p = ParallelMapParts.of(node)
    maps = [x for x in p.body.nodes if x.op is parallel_map]
    others = [x for x in p.body.nodes if x.op not in (parallel_map, creating.constant)]
    if len(maps) != 1 or not all(x.op is shaping.refine or _is_any(x) for x in others):
        return None
    (inner,) = maps
    q = ParallelMapParts.of(inner)
    are_given = all(_part(x) in inner.results for x in p.body.results)
    are_stacks = {*p.forms, *q.forms} == {STACK}
    has_loop = any(x.op is while_ for x in q.body.walk())
    is_static = all(_is_static(x.type) for x in (*node.operands, *node.results))
    repeated = [x for x in map(_source, q.mapped) if x not in p.elements]
    types = [*(element_type(x.type) for x in repeated), *(x.type for x in q.invariants)]
    if _inner_map(inner) is None:
        types += [*map(element_type, (x.type for x in q.mapped)), *q.body.result_types]
    are_small = is_static and all(map(_is_small, types))
    is_perfect = q.limits == p.limits and are_given and are_stacks and has_loop
    return inner if are_small and is_perfect else None


def _is_any(node: Node) -> bool:
    """Return whether a node tells whether one of the flags of the inner elements is set."""
    is_row = node.op is reducing.reduce_any and len(node.operands[0].tensor.dims) == 1
    return is_row and not node.attrs["keepdims"]


def _part(x: Value) -> Value:
    """Return the result of the inner map that a result of the outer body is made of."""
    x = _source(x)
    return x if x.node is None or not _is_any(x.node) else _source(x.node.operands[0])


def _source(x: Value) -> Value:
    """Return a value before its type was refined."""
    return x if x.node is None or x.node.op is not shaping.refine else _source(x.node.operands[0])


def _is_static(type: Type) -> bool:
    return isinstance(type, TensorType) and type.shape is not None and type.is_static


def _is_small(type: Type) -> bool:
    if not isinstance(type, TensorType) or type.shape is None:
        return False
    count = size_of(type.shape)
    return count is not None and count <= MAX_VALUE_ELEMENTS


def _append_flat(b: Build, node: Node, inner: Node) -> list[Value]:
    """Append the map over the pairs, and return the results of the outer map."""
    p, q = ParallelMapParts.of(node), ParallelMapParts.of(inner)
    columns = dict(zip(p.elements, p.mapped, strict=True))
    shared = dict(zip(p.body_invariants, p.invariants, strict=True))
    for constant in p.body.nodes:
        if constant.op is creating.constant:
            b.nodes.append(copy_node(constant, []))
            shared.update(zip(constant.results, b.nodes[-1].results, strict=True))
    outer_size = p.mapped[0].tensor.dims[0]
    size = q.mapped[0].tensor.dims[0]
    assert isinstance(outer_size, int)
    assert isinstance(size, int)

    def pairs(x: Value, dims: Sequence[int]) -> Value:
        """Return an array of outer and inner elements with one axis for both."""
        wide = b.broadcast_to(x, (outer_size, size, *dims))
        return b.reshape(wide, (outer_size * size, *dims))

    mapped: list[Value] = []
    repeated: list[Value] = []
    invariants: list[Value] = []
    for x in map(_source, q.mapped):
        dims = _static_dims(x)[1:]
        array = columns[x] if x in columns else b.insert_axes(shared[x], axes=(0,))
        mapped.append(pairs(array, dims))
    places: list[tuple[bool, int]] = []
    for x in map(_source, q.invariants):
        if x in columns:
            dims = _static_dims(x)
            places.append((True, len(repeated)))
            repeated.append(pairs(b.insert_axes(columns[x], axes=(1,)), dims))
        else:
            places.append((False, len(invariants)))
            invariants.append(shared[x])
    body = Build(q.body.name)
    elements = [body.param(element_type(x.type)) for x in (*mapped, *repeated)]
    fixed = [body.param(x.type) for x in invariants]
    own, more = elements[: len(mapped)], elements[len(mapped) :]
    values = inline(
        q.body, [*own, *(more[k] if is_more else fixed[k] for is_more, k in places)], body.nodes
    )
    flat = b.parallel_map(
        [*mapped, *repeated], [], invariants, body.finish(values), q.forms, **p.limits
    )
    results = dict(zip(inner.results, flat.results, strict=True))

    def stack(x: Value) -> Value:
        """Return the results of the outer elements."""
        part = results[_part(x)]
        rows = b.reshape(part, (outer_size, size, *_static_dims(part)[1:]))
        if _part(x) is _source(x):
            return rows
        return b.emit(reducing.reduce_any, rows, axes=(1,), keepdims=False)

    return [stack(x) for x in p.body.results]


def _static_dims(x: Value) -> list[int]:
    return [dim for dim in x.tensor.dims if isinstance(dim, int)]
