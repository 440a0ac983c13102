"""Maps: the elements of a `parallel_map` run side by side, as `jax.vmap` has them.

A loop of XLA then runs until the last element has left it. What is computed meanwhile for elements
that have left a loop, or that take another branch, is thrown away; a loop inside never waits for it
(`GraphLowering.active`), for it might not end. JAX would choose, in each trip, between what every
element of a carry was and is, which copies whole tapes. So a loop tests whether any element goes on
(a maximum along the axis of the map), and chooses by itself: of tapes, the lengths only. Tapes are
one for all elements (`TripList`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec

from wend.backends.jax.emit.maybes import add_values
from wend.backends.jax.lowering import GraphLowering, Progress, padded
from wend.backends.jax.meshes import RowAxes
from wend.backends.jax.values import DeviceList, Maybe, Stacked, TripList, own
from wend.ir.graph import Graph, Node
from wend.ops.parallel_map import LIST, SUM, ParallelMapParts


def lower_map(
    ctx: GraphLowering,
    node: Node,
    operands: Sequence[Any],
    lower_region: Callable[[GraphLowering, Graph, Sequence[Any]], list[Any]],
    *,
    is_threaded: bool,
) -> list[Any]:
    """Lower a `parallel_map` with an array among what it maps over; return its results.

    Args:
        ctx: the lowering.
        node: the map.
        operands: what it maps over, where its sums start, and its invariants.
        lower_region: lowers the body.
        is_threaded: whether the elements pass on progress.
    """
    p = ParallelMapParts.of(node)
    mapped, others = operands[: len(p.mapped)], operands[len(p.mapped) :]
    starts, invariants = [*map(own, others[: len(p.starts)])], others[len(p.starts) :]
    is_list = [isinstance(x, (DeviceList, TripList)) for x in mapped]
    count = next(jnp.shape(x)[0] for x, listed in zip(mapped, is_list, strict=True) if not listed)
    most_mapped = [
        ctx.most_element(ctx.classes.of_use(node, k)) if is_list[k] else ctx.most_of(x)
        for k, x in enumerate(mapped)
    ]
    most_results: list[int | None] = []

    def compute(
        elements: Sequence[Any], progress: Progress, invariants: Sequence[Any]
    ) -> tuple[Progress | None, list[Any]]:
        with ctx.scope(progress), ctx.masked(jnp.bool_(True) if ctx.active is None else ctx.active):
            for element, most in zip(elements, most_mapped, strict=True):
                ctx.note_most(element, most)
            results = lower_region(ctx, p.body, [*elements, *invariants])
            most_results[:] = map(ctx.most_of, results)
            fitted = [
                x  # its rows have one room; how many they are is a number of each element
                if isinstance(x, Stacked)
                else ctx.fit(x, result.type, ctx.classes.of_use(p.body, k))
                for k, (x, result) in enumerate(zip(results, p.body.results, strict=True))
            ]
            return (ctx.progress if is_threaded else None), fitted

    def compute_all(
        rows: Sequence[Any], progress: Progress, invariants: Sequence[Any]
    ) -> tuple[Progress | None, list[Any]]:
        """Return the progress of the first that fails, and stacks of results, or their sums."""
        run_all = jax.vmap(compute, in_axes=(0, None, None), axis_name=ctx.axes[-1])
        threaded, stacks = run_all(rows, progress, invariants)
        sums = _with_sums(stacks, p.forms, lambda x: jnp.sum(x, axis=0, dtype=x.dtype))
        if threaded is None or not count:
            return None, sums
        return _first_failing(threaded), sums

    rows = [_rows(own(x), count) for x in mapped]
    axes = _axes(ctx, p) if count else ()
    run = _on_each_device(compute_all, ctx.placement.mesh, axes, p.forms) if axes else compute_all
    with ctx.for_each_of(count):
        progress, values = run(rows, ctx.progress, invariants)
    ctx.progress = ctx.progress if progress is None else progress
    remaining, results = iter(starts), []
    for k, (form, value) in enumerate(zip(p.forms, values, strict=True)):
        if form == LIST:
            list_class = ctx.classes.of(node.results[k])
            assert list_class is not None
            ctx.note_most_element(list_class, most_results[k])
            results.append(_list_of(value, count))
        elif form == SUM:
            start = next(remaining)
            results.append(add_values(start, value) if count else start)
        else:
            ctx.note_most(value, most_results[k])
            results.append(value)
    return results


def _axes(ctx: GraphLowering, p: ParallelMapParts) -> RowAxes:
    """Return the axes of the mesh that the elements lie along, where each device has its own."""
    if ctx.active is not None or any(x in ctx.rows for x in (*p.starts, *p.invariants)):
        return ()
    return next((ctx.rows[x] for x in p.mapped if x in ctx.rows), ())


_Compute: TypeAlias = Callable[
    [Sequence[Any], Progress, Sequence[Any]], tuple[Progress | None, list[Any]]
]


def _on_each_device(
    compute_all: _Compute, mesh: Mesh | None, axes: RowAxes, forms: Sequence[str]
) -> _Compute:
    """Return the same computation, by each device of the elements that it has.

    A loop then runs until the elements of its own device have left it: devices do not wait for one
    another, but for the sums of all elements and the first error.
    """

    def run(
        rows: Sequence[Any], progress: Progress, invariants: Sequence[Any]
    ) -> tuple[Progress | None, list[Any]]:
        leaves, structure = jax.tree.flatten(list(invariants))
        passed = [k for k, leaf in enumerate(leaves) if isinstance(leaf, jax.Array)]

        def compute_own(
            rows: Sequence[Any], progress: Progress, arrays: Sequence[Any]
        ) -> tuple[Any, list[Any]]:
            own = [*leaves]
            for k, array in zip(passed, arrays, strict=True):
                own[k] = array
            first, values = compute_all(rows, progress, jax.tree.unflatten(structure, own))
            sums = _with_sums(values, forms, lambda x: jax.lax.psum(x, axes))
            return jax.tree.map(lambda x: x[None], first), sums

        split, whole = PartitionSpec(axes), PartitionSpec()
        firsts, values = jax.shard_map(
            compute_own,
            mesh=mesh,
            in_specs=(split, whole, whole),
            out_specs=(split, [whole if form == SUM else split for form in forms]),
            check_vma=False,
        )(rows, progress, [leaves[k] for k in passed])
        return (None if firsts is None else _first_failing(firsts)), values

    return run


def _rows(x: Any, count: int) -> Any:
    """Return the elements of an array or a list, along the first axis of each leaf."""

    def fit(leaf: Any) -> Any:
        return padded(leaf[:count], count, 0)

    return jax.tree.map(fit, x.items) if isinstance(x, DeviceList) else jnp.asarray(x)


def _list_of(items: Any, count: int) -> DeviceList:
    if not count:  # room for one, as every list has
        items = jax.tree.map(lambda x: jnp.zeros((1, *x.shape[1:]), x.dtype), items)
    return DeviceList(items, jnp.int32(count), count)


def _with_sums(
    values: Sequence[Any], forms: Sequence[str], add: Callable[[jax.Array], jax.Array]
) -> list[Any]:
    """Return values; `add` makes the sums of the leaves of those that a map sums up."""
    return [_sum(x, add) if form == SUM else x for form, x in zip(forms, values, strict=True)]


def _sum(value: Any, add: Callable[[jax.Array], jax.Array]) -> Any:
    """Return the sum of a value whose leaves `add` sums up; it is present if one summand is."""
    if isinstance(value, Maybe):
        is_present = add(value.is_present.astype(jnp.int32)) > 0
        return Maybe(is_present, _sum(value.value, add))
    if isinstance(value, DeviceList):  # the lists have one length
        return DeviceList(_sum(value.items, add), jnp.ravel(value.length)[0])
    return add(value)


def _first_failing(progress: Progress) -> Progress:
    """Return the progress of the first element that fails, with the longest lengths of all."""
    first = jnp.argmax(progress.code != 0)
    lengths = tuple(jnp.max(length, axis=0) for length in progress.lengths)
    return Progress(progress.code[first], progress.words[first], lengths)
