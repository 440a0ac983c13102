"""Maps whose elements are small arrays or complex numbers, as maps of numbers, which have lanes.

The body of such a map takes and gives the numbers of each array, which it computes as loops with
small arrays do. A map that still could not run in lanes of registers is left as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from wend.backends.native.expand.expand import expand_operations
from wend.backends.native.scalarize.draws import expand_draws
from wend.backends.native.scalarize.split import split_arrays
from wend.backends.native.target.small_arrays import (
    element_type,
    is_complex_number,
    is_small,
    size,
)
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import inline, keep_names, rewrite_nodes, with_operands
from wend.ir.types import TensorType, Type
from wend.ops.build import Build
from wend.ops.control import WhileParts, while_
from wend.ops.parallel_map import LIST, SUM, ParallelMapParts, parallel_map
from wend.passes.algebra import algebra
from wend.passes.batch_lanes import MAX_VALUE_ELEMENTS
from wend.passes.cse import cse
from wend.passes.dce import dce
from wend.passes.fold import fold
from wend.passes.lane_maps import is_number, may_run_in_lanes
from wend.passes.lower_maybes import without_maybes
from wend.passes.pipeline import run_passes


def split_arrays_of_maps(graph: Graph) -> Graph:
    """Split the small arrays of each map that then runs in lanes, in regions too."""
    if parallel_map not in graph.ops:
        return graph

    def split(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        copy = with_operands(node, operands, list(map(split_arrays_of_maps, node.regions)))
        if copy.op is parallel_map and _may_split(copy, ParallelMapParts.of(copy)):
            b = Build("")
            b.source = node.source
            results = _append_map(b, copy, ParallelMapParts.of(copy))
            if results is not None:
                nodes += b.nodes
                keep_names(copy.results, results)
                return results
        nodes.append(copy)
        return copy.results

    return rewrite_nodes(graph, split)


def _may_split(node: Node, p: ParallelMapParts) -> bool:
    """Return whether a map has no lanes, but loops over few numbers."""
    if LIST in p.forms or not all(_is_ranked(x.type) for x in node.operands):
        return False
    if parallel_map in p.body.ops:  # whose results would be split, too
        return False
    loops = [WhileParts.of(x) for x in p.body.walk() if x.op is while_]
    carried = [x.type for w in loops for x in w.before_carry]
    types = [*p.body.param_types, *p.body.result_types, *filter(_is_ranked, carried)]
    return bool(loops) and all(map(_can_split, types)) and not may_run_in_lanes(node)


def _is_ranked(type: Type) -> bool:
    return isinstance(type, TensorType) and type.shape is not None


def _can_split(type: Type) -> bool:
    """Return whether a type is a number that lanes have, or a small array of such."""
    return is_number(type) or is_small(type, MAX_VALUE_ELEMENTS)


def _append_map(b: Build, node: Node, p: ParallelMapParts) -> list[Value] | None:
    """Append the map on numbers, and return the results of the map; None if that has no lanes."""
    body = without_maybes(p.body)
    if body is None:
        return None
    split = split_arrays(expand_draws(expand_operations(_on_numbers(body))))
    sums, fixed = ([y for x in part for y in _numbers(b, x)] for part in (p.starts, p.invariants))
    new = b.parallel_map(
        [column for x in p.mapped for column in _columns(b, x)],
        sums,
        fixed,
        run_passes(split, (fold, algebra, cse, dce)),
        [
            form
            for form, x in zip(p.forms, p.body.results, strict=True)
            for _ in _number_types(x.type)
        ],
        **p.limits,
    )
    if not may_run_in_lanes(new):
        return None
    results, columns = [], iter(new.results)
    for form, inner, old in zip(p.forms, p.body.results, node.results, strict=True):
        numbers = [next(columns) for _ in _number_types(inner.type)]
        whole = _joined(b, numbers, inner.type) if form == SUM else _stacked(b, numbers, inner.type)
        results.append(b.refine(whole, old.type))
    return results


def _on_numbers(body: Graph) -> Graph:
    """Return a body that takes and gives numbers, and makes its arrays of them."""
    b = Build(body.name)
    params = [[b.param(type) for type in _number_types(x)] for x in body.param_types]
    pairs = zip(params, body.param_types, strict=True)
    results = inline(body, [_joined(b, numbers, type) for numbers, type in pairs], b.nodes)
    return b.finish([*chain.from_iterable(_numbers(b, x) for x in results)])


def _number_types(type: Type) -> list[Type]:
    return [type] if is_number(type) else [element_type(type)] * size(type)


def _numbers(b: Build, x: Value) -> list[Value]:
    """Return the numbers of a value."""
    if is_number(x.type):
        return [x]
    if is_complex_number(x.type):
        return [b.real(x), b.imag(x)]
    row = b.reshape(x, (size(x.type),))
    return [b.gather(row, b.integer(k)) for k in range(size(x.type))]


def _joined(b: Build, numbers: Sequence[Value], type: Type) -> Value:
    """Return the value of some numbers."""
    if is_number(type):
        return numbers[0]
    if is_complex_number(type):
        return b.complex(*numbers)
    return b.from_elements(numbers, _sizes(type))


def _columns(b: Build, x: Value) -> list[Value]:
    """Return the numbers of all elements, which are along the first axis of an array."""
    length, *dims = x.tensor.dims
    element = x.tensor.with_shape(tuple(dims))
    if is_number(element):
        return [x]
    if is_complex_number(element):
        return [b.real(x), b.imag(x)]
    rows = b.reshape(x, (-1, size(element)))
    columns = [b.reshape(b.part(rows, k, k + 1), (-1,)) for k in range(size(element))]
    return [b.refine(y, TensorType(y.tensor.dtype, (length,))) for y in columns]


def _stacked(b: Build, columns: Sequence[Value], type: Type) -> Value:
    """Return the array of the values of all elements."""
    if is_number(type):
        return columns[0]
    if is_complex_number(type):
        return b.complex(*columns)
    (length,) = columns[0].tensor.dims
    columns = [
        b.refine(b.reshape(x, (-1, 1)), TensorType(x.tensor.dtype, (length, 1))) for x in columns
    ]
    return b.reshape(b.concat(*columns, axis=1), (-1, *_sizes(type)))


def _sizes(type: Type) -> tuple[int, ...]:
    assert isinstance(type, TensorType)
    return tuple(dim for dim in type.dims if isinstance(dim, int))
