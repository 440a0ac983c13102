"""Full Jacobians: a linear pass for each vector of a basis.

Where batching makes operations on all vectors of the whole pass, it is one `parallel_map`, which
the passes batch (`config(strict=True)` does not). Elsewhere one `While` runs the pass again and
again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wend.autodiff.jvp import jvp
from wend.autodiff.linearize import linearize
from wend.autodiff.vjp import vjp
from wend.ir.builder import new_symbol
from wend.ir.dtypes import INT64
from wend.ir.graph import Graph, Value
from wend.ir.rewrite import inline
from wend.ir.types import Dim, ListType, TensorType, Type
from wend.ops import shaping
from wend.ops.build import Build
from wend.ops.parallel_map import STACK, parallel_map
from wend.ops.shapes import size_of
from wend.passes.batch_maps import batch_maps
from wend.passes.dce import dce
from wend.passes.inline import inline_calls
from wend.passes.lower_linear_blocks import lower_linear_blocks
from wend.passes.strip_stores import strip_stores

# The most numbers that a value of all basis vectors may have. A `While` needs no memory for more
# than one of them.
_MAX_BATCHED_NUMBERS = 1 << 24
# A list counts as so many items: only the run knows how long it grows
_ASSUMED_ITEMS = 1 << 10


def jacobian_by_columns(graph: Graph, wrt: Sequence[int], chosen: Sequence[int]) -> Graph:
    """Return a graph of the results, then of a Jacobian per chosen result and param of `wrt`.

    By forward mode: the tangents run once for each number in the params, and nothing is recorded.
    Each Jacobian has the shape of its result, followed by that of its param.
    """
    tangent_graph = jvp(graph, wrt)
    active = [k for k in chosen if tangent_graph.connected[k]]
    order = [k for k, flag in enumerate(tangent_graph.connected) if flag]
    tangents = tangent_graph.graph.results[len(graph.results) :]
    active_tangents = [tangents[order.index(k)] for k in active]
    linear, used = _tangents_only(tangent_graph.graph, active_tangents, len(graph.params))
    b = Build(f"{graph.name}_jacobian")
    params = [b.param(param.type, param.name) for param in graph.params]
    inputs = [params[i] for i in wrt]
    if linear.has_effects():
        # Host calls run once; what they recorded is differentiated for each column.
        split = linearize(graph, wrt, active)
        values = inline(split.forward, params, b.nodes)
        results, residuals = values[: len(graph.results)], values[len(graph.results) :]
        active = [k for k, flag in zip(active, split.connected, strict=True) if flag]
        linear, outer = split.linear, [*(results[k] for k in active), *residuals]
    else:
        results = inline(graph, params, b.nodes)
        outer = [params[i] for i in used]
    rows = _on_basis(b, linear, outer, inputs, [results[k] for k in active])
    blocks: list[Value] = []
    for k in chosen:
        if k not in active:
            blocks += [_zeros(b, results[k], end, results[k].tensor.dtype) for end in inputs]
            continue
        for part, end in zip(_split_rows(b, rows[active.index(k)], inputs), inputs, strict=True):
            blocks.append(_reshape_to(b, _first_axis_last(b, part, results[k]), results[k], end))
    return b.finish([*results, *blocks])


def jacobian_by_rows(graph: Graph, wrt: Sequence[int], chosen: Sequence[int]) -> Graph:
    """As `jacobian_by_columns`, by reverse mode.

    The forward pass runs once, the backward pass once for each number in the chosen results.
    """
    b = Build(f"{graph.name}_jacobian")
    params = [b.param(param.type, param.name) for param in graph.params]
    pair = vjp(graph, wrt, chosen)
    values = inline(pair.forward, params, b.nodes)
    results, residuals = values[: len(graph.results)], values[len(graph.results) :]
    outputs = [results[k] for k in chosen]
    connected_params = [params[i] for i, flag in zip(wrt, pair.connected, strict=True) if flag]
    rows = iter(_on_basis(b, pair.backward, residuals, outputs, connected_params))
    parts = [_split_rows(b, next(rows), outputs) if flag else None for flag in pair.connected]
    blocks = [
        _zeros(b, end, params[i], params[i].tensor.dtype)
        if part is None
        else _reshape_to(b, part[k], end, params[i])
        for k, end in enumerate(outputs)
        for i, part in zip(wrt, parts, strict=True)
    ]
    return b.finish([*results, *blocks])


def _tangents_only(graph: Graph, tangents: Sequence[Value], count: int) -> tuple[Graph, list[int]]:
    """Return the graph of the tangents alone, and which of the first params it still reads.

    Effects are removed too: they belong to the run that computes the values.
    """
    graph = strip_stores(Graph(graph.name, graph.params, graph.nodes, tuple(tangents)))
    slim = dce(graph)
    read = {operand for node in slim.nodes for operand in node.operands} | {*slim.results}
    used = [i for i in range(count) if slim.params[i] in read]
    params = (*(slim.params[i] for i in used), *slim.params[count:])
    return Graph(slim.name, params, slim.nodes, slim.results), used


def _on_basis(
    b: Build, linear: Graph, fixed: Sequence[Value], ends: Sequence[Value], likes: Sequence[Value]
) -> list[Value]:
    """Return the results of a linear graph on each basis vector, stacked along a new first axis.

    Args:
        b: the builder to append to.
        linear: (fixed…, one vector of each end's type) → values of the types of `likes`.
        fixed: its first arguments.
        ends: the values whose joint basis is meant.
        likes: values of the results' types.
    """
    if not likes:
        return []
    total = _static_total(ends)
    if total == 1 and len(ends) == 1:  # one basis vector: no loop
        results = inline(linear, [*fixed, b.ones_like(ends[0])], b.nodes)
        return [b.refine(x, like.type) for x, like in zip(results, likes, strict=True)]
    if total is not None and _batches(linear, fixed, ends, likes, total):
        return _append_map(b, linear, fixed, ends, likes, total)
    outer = [_total_value(b, ends), *fixed, *ends]
    lists = [ListType(like.type) for like in likes]
    before, after = _open_region("before", lists, outer), _open_region("after", lists, outer)
    count = len(lists) + 1
    index, stop = before.params[0], before.params[count]
    predicate = before.lt(index, stop)
    invariants = after.params[count + 1 :]
    seeds = _one_hot(after, invariants[len(fixed) :], after.params[0])
    rows = inline(linear, [*invariants[: len(fixed)], *seeds], after.nodes)
    grown = [
        after.list_push(list, after.refine(row, like.type))
        for list, row, like in zip(after.params[1:count], rows, likes, strict=True)
    ]
    next_index = after.add(after.params[0], after.integer(1))
    start = [b.integer(0), *(b.list_new(list.element) for list in lists)]
    loop = b.while_(
        start,
        outer,
        before.finish([predicate, *before.params[:count]]),
        after.finish([next_index, *grown]),
    )
    dim = new_symbol() if total is None else total
    return [
        _stacked(b, list, like, dim) for list, like in zip(loop.results[1:], likes, strict=True)
    ]


def _append_map(
    b: Build,
    linear: Graph,
    fixed: Sequence[Value],
    ends: Sequence[Value],
    likes: Sequence[Value],
    total: int,
) -> list[Value]:
    """As `_on_basis`, by a `parallel_map` over the positions of the ones."""
    outer, body = [*fixed, *ends], Build("body")
    position = body.param(TensorType(INT64, ()))
    invariants = [body.param(x.type) for x in outer]
    seeds = _one_hot(body, invariants[len(fixed) :], position)
    values = inline(linear, [*invariants[: len(fixed)], *seeds], body.nodes)
    rows = [body.refine(x, like.type) for x, like in zip(values, likes, strict=True)]
    forms = [STACK] * len(rows)
    node = b.parallel_map([b.iota(total)], [], outer, body.finish(rows), forms, numbered=False)
    return list(node.results)


def _batches(
    linear: Graph, fixed: Sequence[Value], ends: Sequence[Value], likes: Sequence[Value], total: int
) -> bool:
    """Return whether the whole pass becomes operations on all vectors, which fit in memory."""
    if not total or not all(_is_static(x.type) for x in likes):
        return False
    trial = Build("trial")
    params = [trial.param(x.type) for x in (*fixed, *ends)]
    rows = _append_map(trial, linear, params[: len(fixed)], params[len(fixed) :], likes, total)
    graph = trial.finish(rows)
    for transform in (lower_linear_blocks, inline_calls, dce, batch_maps):
        graph = transform(graph)
    return parallel_map not in graph.ops and all(
        _numbers_of(x.type) <= _MAX_BATCHED_NUMBERS for node in graph.walk() for x in node.results
    )


def _is_static(type: Type) -> bool:
    return isinstance(type, TensorType) and type.shape is not None and type.is_static


def _numbers_of(type: Type) -> int:
    """Return about how many numbers a value has; few where its size is not known."""
    match type:
        case ListType(element=element):
            return _ASSUMED_ITEMS * _numbers_of(element)
        case TensorType(shape=shape) if shape is not None:
            return size_of(shape) or 1
    return 1


def _open_region(name: str, lists: Sequence[ListType], outer: Sequence[Value]) -> Build:
    b = Build(name)
    b.param(outer[0].type)
    for type in (*lists, *(value.type for value in outer)):
        b.param(type)
    return b


def _stacked(b: Build, list: Value, like: Value, dim: Dim) -> Value:
    stacked = b.list_stack(list, b.shape_of(like))
    return b.refine(stacked, like.tensor.with_shape((dim, *like.tensor.dims)))


# Sizes
def _size(x: Value) -> int | None:
    return size_of(x.tensor.dims)


def _static_total(values: Sequence[Value]) -> int | None:
    sizes = [_size(value) for value in values]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _size_value(b: Build, x: Value) -> Value:
    size = _size(x)
    return b.integer(size) if size is not None else b.reduce_prod(b.shape_of(x), axes=(0,))


def _total_value(b: Build, values: Sequence[Value]) -> Value:
    """Return the total number of elements of some values."""
    total = _static_total(values)
    if total is not None:
        return b.integer(total)
    count = b.integer(0)
    for value in values:
        count = b.add(count, _size_value(b, value))
    return count


def _one_hot(b: Build, likes: Sequence[Value], position: Value) -> list[Value]:
    """Return vectors that are 0 except for a 1 at one position, counted through all of them."""
    vectors = []
    for like in likes:
        size = _size(like)
        indices = b.iota(_size_value(b, like) if size is None else size)
        hit = b.cast(b.eq(indices, b.broadcast_like(position, indices)), like.tensor.dtype)
        vectors.append(b.refine(b.reshape_like(hit, like), like.type))
        position = b.sub(position, _size_value(b, like))
    return vectors


def _split_rows(b: Build, stacked: Value, ends: Sequence[Value]) -> list[Value]:
    """Return the rows of a stack that belong to each end."""
    if len(ends) == 1:
        return [stacked]
    pieces, start = [], b.integer(0)
    for end in ends:
        stop = b.add(start, _size_value(b, end))
        pieces.append(b.narrow(stacked, start, stop, axis=0, size=_size(end)))
        start = stop
    return pieces


def _first_axis_last(b: Build, x: Value, like: Value) -> Value:
    """Move the first axis last; a single column of the type of `like` stays as it is."""
    rank = len(like.tensor.dims)
    return x if x.type == like.type else b.transpose(x, perm=(*range(1, rank + 1), 0))


def _reshape_to(b: Build, x: Value, first: Value, then: Value) -> Value:
    """Reshape to the shape of `first` followed by that of `then`."""
    shape = (*first.tensor.dims, *then.tensor.dims)
    if size_of(shape) is not None:
        return b.reshape(x, shape)
    return b.emit(shaping.reshape, x, _joint_shape(b, first, then), shape=shape)


def _zeros(b: Build, first: Value, then: Value, dtype: np.dtype) -> Value:
    """Return zeros of the shape of `first` followed by that of `then`."""
    shape = (*first.tensor.dims, *then.tensor.dims)
    return b.spread(b.constant(0, dtype), _joint_shape(b, first, then), shape)


def _joint_shape(b: Build, first: Value, then: Value) -> Value:
    return b.concat(b.shape_of(first), b.shape_of(then), axis=0)
