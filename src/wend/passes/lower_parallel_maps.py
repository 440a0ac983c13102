"""Lowering of `parallel_map` nodes to loops over the elements, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from wend.ir.graph import Graph, Node, Remark, Value
from wend.ir.rewrite import inline, keep_names, rewrite_nodes, with_operands
from wend.ir.types import ListType, TensorType, Type
from wend.ops.build import Build
from wend.ops.control import while_
from wend.ops.parallel_map import STACK, SUM, ParallelMapParts, element_type, parallel_map
from wend.passes.lane_maps import (
    lane_count,
    obstacle,
    refilled_loops,
    runs_in_lanes,
)


def lower_parallel_maps(graph: Graph) -> Graph:
    """Replace every `parallel_map` by a `while`, in regions too."""
    return _lowered(graph, lambda node: False)


def lower_maps_without_lanes(graph: Graph) -> Graph:
    """Replace every `parallel_map` by a `while`, but for those that run in lanes of registers."""
    return _lowered(graph, _takes_lanes)


def lower_maps_of_lists(graph: Graph) -> Graph:
    """Replace every `parallel_map` over lists alone by a `while`: a run counts their elements."""
    return _lowered(graph, _maps_an_array)


def _takes_lanes(node: Node) -> bool:
    """Return whether a map runs in lanes; note on it how."""
    lanes = lane_count(node) if runs_in_lanes(node) else 1
    if lanes > 1:
        node.remark = Remark(lanes=lanes, is_refilled=bool(refilled_loops(node.regions[0])))
    return lanes > 1


def _maps_an_array(node: Node) -> bool:
    return any(isinstance(x.type, TensorType) for x in ParallelMapParts.of(node).mapped)


def _lowered(graph: Graph, stays: Callable[[Node], bool]) -> Graph:
    if parallel_map not in graph.ops:
        return graph

    def lower(nodes: list[Node], node: Node, operands: list[Value]) -> Sequence[Value]:
        regions = [_lowered(region, stays) for region in node.regions]
        copy = with_operands(node, operands, regions)
        if node.op is not parallel_map or stays(copy):
            nodes.append(copy)
            return copy.results
        b = Build(graph.name)
        b.nodes, b.source = nodes, node.source
        has_loops = any(inner.op is while_ for inner in copy.regions[0].walk())
        remark = Remark(lanes=1, obstacle=obstacle(copy) if has_loops else "")
        results = append_loop(b, copy, remark)
        keep_names(copy.results, results)
        return results

    return rewrite_nodes(graph, lower)


def append_loop(b: Build, node: Node, remark: Remark | None = None) -> list[Value]:
    """Append a loop over the elements of a map, and return its results as those of the map."""
    p = ParallelMapParts.of(node)
    lists = [x if isinstance(x.type, ListType) else b.list_unstack(x) for x in p.mapped]
    fixed = [_count(b, p.mapped), *lists, *p.invariants]
    types = [result.type for result in node.results]
    starts = [
        p.start_of(k) if form == SUM else b.list_new(element_type(types[k]))
        for k, form in enumerate(p.forms)
    ]
    before, after = Build("before"), Build("after")
    for region in (before, after):
        region.source = p.source
        for value in (fixed[0], *starts, *fixed):
            region.param(value.type)
    carry = len(starts) + 1
    predicate = before.lt(before.params[0], before.params[carry])
    index, *grown = after.params[:carry]
    inner_lists = after.params[carry + 1 : carry + 1 + len(lists)]
    elements = [
        after.refine(after.list_get(list, index), element_type(outer.type))
        for list, outer in zip(inner_lists, p.mapped, strict=True)
    ]
    inner_invariants = after.params[carry + 1 + len(lists) :]
    values = inline(p.body, [*elements, *inner_invariants], after.nodes)
    following = [
        after.autograd_add(old, after.refine(value, old.type))
        if form == SUM
        else after.list_push(old, value)
        for form, old, value in zip(p.forms, grown, values, strict=True)
    ]
    loop = b.while_(
        [b.integer(0), *starts],
        fixed,
        before.finish([predicate, *before.params[:carry]]),
        after.finish([after.add(index, after.integer(1)), *following]),
    )
    loop.remark = remark
    operands = [*p.mapped, *p.invariants]
    results = [
        _stacked(b, list, type, operands) if form == STACK else list
        for form, list, type in zip(p.forms, loop.results[1:], types, strict=True)
    ]
    return [b.refine(x, type) for x, type in zip(results, types, strict=True)]


def _count(b: Build, mapped: Sequence[Value]) -> Value:
    """Return the number of elements."""
    arrays = [x for x in mapped if isinstance(x.type, TensorType)]
    return b.size_of(arrays[0], 0) if arrays else b.list_len(mapped[0])


def _stacked(b: Build, list: Value, type: Type, operands: Sequence[Value]) -> Value:
    assert isinstance(type, TensorType)
    item = element_type(type)
    assert isinstance(item, TensorType)
    sizes = {
        dim: (x, axis)
        for x in operands
        if isinstance(x.type, TensorType) and x.type.shape is not None
        for axis, dim in enumerate(x.type.shape)
    }
    if item.is_static:
        return b.list_stack(list)
    if all(isinstance(dim, int) or dim in sizes for dim in item.dims):
        dims = [
            b.integer(dim) if isinstance(dim, int) else b.size_of(*sizes[dim]) for dim in item.dims
        ]
        shape = b.from_elements(dims, (len(dims),))
    else:
        shape = _shape_of_first(b, list, len(item.dims))
    return b.list_stack(list, shape)


def _shape_of_first(b: Build, list: Value, rank: int) -> Value:
    """Return the shape of the first item; of an empty list, zeros."""
    none, some = Build("branch"), Build("branch")
    items = [branch.param(list.type) for branch in (none, some)]
    zeros = none.constant([0] * rank, np.int64)
    first = some.list_get(items[1], some.integer(0))
    branches = [none.finish([zeros]), some.finish([some.shape_of(first)])]
    is_some = b.lt(b.integer(0), b.list_len(list))
    return b.if_(is_some, [list], branches).results[0]
