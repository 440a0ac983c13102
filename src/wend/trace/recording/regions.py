"""Regions that are closed, and the nodes that hold them."""

from __future__ import annotations

from collections.abc import Sequence

from wend.ir.graph import Graph, Node, Value
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.recording import Recording


def join_loop(
    outer: Recording,
    carry: Sequence[Value],
    before: Recording,
    before_results: Sequence[Value],
    after: Recording,
    after_results: Sequence[Value],
    refs: Sequence[Tracer] = (),
    *,
    memory: str = "keep",
) -> Node:
    """Close the two regions of a loop over the same invariants, and record its node.

    `refs` are the outer arrays that the loop changes in place; both regions were opened for
    them, after the params of the carry.
    """
    has_world = before.world_param is not None or after.world_param is not None
    inside = [[region.lift(ref) for ref in refs] for region in (before, after)]
    start = [outer.lift(ref) for ref in refs]
    invariants = list(dict.fromkeys([*before.region_params, *after.region_params]))
    world = [outer.world()] if has_world else []
    for region in (before, after):
        if has_world:
            region.world()
    before_results = [*before_results, *inside[0]]
    node = outer.b.while_(
        [*carry, *start, *world],
        invariants,
        before.finish_region(before_results, invariants, has_world=has_world),
        after.finish_region([*after_results, *inside[1]], invariants, has_world=has_world),
        memory=memory,
    )
    if has_world:
        outer.set_world(node.results[-1])
    first = len(before_results) - 1 - len(refs)
    for ref, value in zip(refs, node.results[first:], strict=False):
        outer.assign(ref, value)
    _tell_of_end(outer, refs)
    return node


def _tell_of_end(outer: Recording, refs: Sequence[Tracer]) -> None:
    """Tell those for whom a loop has carried integers that it is over."""
    own = {id(ref) for ref in refs}
    over = [who for who, (integers, _) in outer.trip_counters.items() if id(integers[0]) in own]
    for who in over:
        _, at_end = outer.trip_counters.pop(who)
        with outer.active():
            at_end()


def join_branches(
    outer: Recording,
    selector: Value,
    regions: Sequence[Recording],
    results: Sequence[Sequence[Value]],
) -> Node:
    """Close branches over the same operands, and record their node."""
    has_world = any(region.world_param is not None for region in regions)
    refs: list[Tracer] = []
    refs_to_open(refs, *regions)
    changed = [[region.lift(ref) for ref in refs] for region in regions]
    operands = list(dict.fromkeys(value for region in regions for value in region.region_params))
    graphs: list[Graph] = []
    for region, values, inside in zip(regions, results, changed, strict=True):
        if has_world:
            region.world()
        graphs.append(region.finish_region([*values, *inside], operands, has_world=has_world))
    world = [outer.world()] if has_world else []
    node = outer.b.if_(selector, [*world, *operands], graphs)
    if has_world:
        outer.set_world(node.results[-1])
    for ref, value in zip(refs, node.results[len(results[0]) :], strict=False):
        outer.assign(ref, value)
    return node


def refs_to_open(refs: list[Tracer], *regions: Recording) -> bool:
    """Add outer arrays that regions change in place to `refs`; say whether any were new."""
    known = {id(ref) for ref in refs}
    new = {
        id(b): b for region in regions for b in region.mutations.outer_refs() if id(b) not in known
    }
    refs += new.values()
    return bool(new)
