"""Whole Jacobians: a linear pass mapped over a basis, by one `While`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wend.autodiff.jvp import jvp
from wend.autodiff.linearize import linearize
from wend.autodiff.vjp import vjp
from wend.ir.builder import new_symbol
from wend.ir.graph import Graph, Value
from wend.ir.rewrite import inline
from wend.ir.types import Dim, ListType
from wend.ops import shaping
from wend.ops.build import Build
from wend.ops.shapes import size_of
from wend.passes.dce import dce
from wend.passes.strip_stores import strip_stores


def jacobian_by_columns(graph: Graph, wrt: Sequence[int], chosen: Sequence[int]) -> Graph:
    """The results of a graph, then a Jacobian for each chosen result and each of `wrt`.

    By forward mode: the graph runs once for each number of the params, so nothing is recorded.
    Each Jacobian has the shape of its result, followed by that of its param.
    """
    pushed = jvp(graph, wrt)
    moving = [k for k in chosen if pushed.connected[k]]
    order = [k for k, flag in enumerate(pushed.connected) if flag]
    tangents = pushed.graph.results[len(graph.results) :]
    wanted = [tangents[order.index(k)] for k in moving]
    linear, used = _tangents_only(pushed.graph, wanted, len(graph.params))
    b = Build(f"{graph.name}_jacobian")
    params = [b.param(param.type, param.name) for param in graph.params]
    ends = [params[i] for i in wrt]
    if linear.has_effects():
        # Calls of Python run once: what they recorded is pulled back for each column.
        split = linearize(graph, wrt, moving)
        values = inline(split.forward, params, b.nodes)
        results, residuals = values[: len(graph.results)], values[len(graph.results) :]
        moving = [k for k, flag in zip(moving, split.connected, strict=True) if flag]
        linear, fixed = split.linear, [*(results[k] for k in moving), *residuals]
    else:
        results = inline(graph, params, b.nodes)
        fixed = [params[i] for i in used]
    rows = _on_basis(b, linear, fixed, ends, [results[k] for k in moving])
    blocks: list[Value] = []
    for k in chosen:
        if k not in moving:
            blocks += [_zeros(b, results[k], end, results[k].tensor.dtype) for end in ends]
            continue
        for part, end in zip(_cut(b, rows[moving.index(k)], ends), ends, strict=True):
            blocks.append(_shaped(b, _first_axis_last(b, part, results[k]), results[k], end))
    return b.finish([*results, *blocks])


def jacobian_by_rows(graph: Graph, wrt: Sequence[int], chosen: Sequence[int]) -> Graph:
    """As `jacobian_by_columns`, by reverse mode: the backward pass runs for each number of the

    chosen results, the forward one once.
    """
    b = Build(f"{graph.name}_jacobian")
    params = [b.param(param.type, param.name) for param in graph.params]
    pair = vjp(graph, wrt, chosen)
    values = inline(pair.forward, params, b.nodes)
    results, residuals = values[: len(graph.results)], values[len(graph.results) :]
    ends = [results[k] for k in chosen]
    found = [params[i] for i, flag in zip(wrt, pair.connected, strict=True) if flag]
    rows = iter(_on_basis(b, pair.backward, residuals, ends, found))
    parts = [_cut(b, next(rows), ends) if flag else None for flag in pair.connected]
    blocks = [
        _zeros(b, end, params[i], params[i].tensor.dtype)
        if part is None
        else _shaped(b, part[k], end, params[i])
        for k, end in enumerate(ends)
        for i, part in zip(wrt, parts, strict=True)
    ]
    return b.finish([*results, *blocks])


def _tangents_only(graph: Graph, tangents: Sequence[Value], count: int) -> tuple[Graph, list[int]]:
    """The graph without what only its values need; and which of its first params it still reads.

    Effects are among what goes: they belong to the run that gives the values.
    """
    graph = strip_stores(Graph(graph.name, graph.params, graph.nodes, tuple(tangents)))
    slim = dce(graph)
    read = {operand for node in slim.nodes for operand in node.operands} | {*slim.results}
    used = [i for i in range(count) if slim.params[i] in read]
    params = (*(slim.params[i] for i in used), *slim.params[count:])
    return Graph(slim.name, params, slim.nodes, slim.results), used


def _on_basis(
    b: Build,
    linear: Graph,
    fixed: Sequence[Value],
    ends: Sequence[Value],
    likes: Sequence[Value],
) -> list[Value]:
    """What a linear graph gives for each vector of a basis, stacked along a new first axis.

    Args:
        b: where to.
        linear: (fixed…, one vector of each end's type) → values of the types of `likes`.
        fixed: its first arguments.
        ends: the basis is that of all of them together.
        likes: values as large as the results.
    """
    if not likes:
        return []
    total = _total(ends)
    if total == 1 and len(ends) == 1:  # one vector: neither a loop nor an axis
        found = inline(linear, [*fixed, b.ones_like(ends[0])], b.nodes)
        return [b.refine(x, like.type) for x, like in zip(found, likes, strict=True)]
    outer = [_number(b, ends), *fixed, *ends]
    lists = [ListType(like.type) for like in likes]
    before, after = _open("before", lists, outer), _open("after", lists, outer)
    count = len(lists) + 1
    place, end = before.params[0], before.params[count]
    goes_on = before.lt(place, end)
    held = after.params[count + 1 :]
    seeds = _one_hot(after, held[len(fixed) :], after.params[0])
    rows = inline(linear, [*held[: len(fixed)], *seeds], after.nodes)
    grown = [
        after.list_push(list, after.refine(row, like.type))
        for list, row, like in zip(after.params[1:count], rows, likes, strict=True)
    ]
    following = after.add(after.params[0], after.integer(1))
    start = [b.integer(0), *(b.list_new(list.element) for list in lists)]
    loop = b.while_(
        start,
        outer,
        before.finish([goes_on, *before.params[:count]]),
        after.finish([following, *grown]),
    )
    dim = new_symbol() if total is None else total
    return [
        _stacked(b, list, like, dim) for list, like in zip(loop.results[1:], likes, strict=True)
    ]


def _open(name: str, lists: Sequence[ListType], outer: Sequence[Value]) -> Build:
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


def _total(values: Sequence[Value]) -> int | None:
    sizes = [_size(value) for value in values]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _size_value(b: Build, x: Value) -> Value:
    size = _size(x)
    return b.integer(size) if size is not None else b.reduce_prod(b.shape_of(x), axes=(0,))


def _number(b: Build, values: Sequence[Value]) -> Value:
    """How many numbers the values have together."""
    total = _total(values)
    if total is not None:
        return b.integer(total)
    number = b.integer(0)
    for value in values:
        number = b.add(number, _size_value(b, value))
    return number


def _one_hot(b: Build, likes: Sequence[Value], place: Value) -> list[Value]:
    """Vectors that are 0 but for a 1 at one place of all of them together."""
    found = []
    for like in likes:
        size = _size(like)
        line = b.iota(_size_value(b, like) if size is None else size)
        hit = b.cast(b.eq(line, b.broadcast_like(place, line)), like.tensor.dtype)
        found.append(b.refine(b.reshape_like(hit, like), like.type))
        place = b.sub(place, _size_value(b, like))
    return found


def _cut(b: Build, stacked: Value, ends: Sequence[Value]) -> list[Value]:
    """The rows of a stack that belong to each end."""
    if len(ends) == 1:
        return [stacked]
    found, start = [], b.integer(0)
    for end in ends:
        stop = b.add(start, _size_value(b, end))
        found.append(b.narrow(stacked, start, stop, axis=0, size=_size(end)))
        start = stop
    return found


def _first_axis_last(b: Build, x: Value, like: Value) -> Value:
    """Columns as columns; of a single one that has the type of `like` nothing is to be turned."""
    rank = len(like.tensor.dims)
    return x if x.type == like.type else b.transpose(x, perm=(*range(1, rank + 1), 0))


def _shaped(b: Build, x: Value, first: Value, then: Value) -> Value:
    """Reshaped to the one shape followed by the other."""
    shape = (*first.tensor.dims, *then.tensor.dims)
    if size_of(shape) is not None:
        return b.reshape(x, shape)
    return b.emit(shaping.reshape, x, _sizes(b, first, then), shape=shape)


def _zeros(b: Build, first: Value, then: Value, dtype: np.dtype) -> Value:
    """Zeros of the one shape followed by the other."""
    shape = (*first.tensor.dims, *then.tensor.dims)
    return b.spread(b.constant(0, dtype), _sizes(b, first, then), shape)


def _sizes(b: Build, first: Value, then: Value) -> Value:
    return b.concat(b.shape_of(first), b.shape_of(then), axis=0)
