"""Closing of regions: the nodes of recorded loops and branches."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from wend.base.config import set_here, settings, spills_past_limit
from wend.base.errors import NotDifferentiableError, explain
from wend.base.memory import SPILL, memory_text, shown, tape_limit_bytes
from wend.base.refusals import refusal
from wend.base.source import at
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect
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
    memory: object = None,
    parallel_iterations: int | None = None,
) -> Node:
    """Close the two regions of a loop over the same invariants, and record its node.

    Args:
        outer: the recording around the loop.
        carry: the carry on entry.
        before: the region of the test.
        before_results: the predicate, and the values that are forwarded.
        after: the region of the body.
        after_results: the next carry.
        refs: outer arrays that the loop changes in place. Both regions were opened for them, after
            the params of the carry.
        memory: what it keeps for the backward pass; None: what the settings say.
        parallel_iterations: how many trips may be in flight at once; None: what the backend says.

    Raises:
        NotDifferentiableError: it has effects, which the policy would repeat.
    """
    outer.frames.save_for_interrupts()
    for region, results in ((before, before_results), (after, after_results)):
        region.keep_unused_checks([*results, *(region.lift(ref) for ref in refs)])
    has_world = before.world_param is not None or after.world_param is not None
    region_values = [[region.lift(ref) for ref in refs] for region in (before, after)]
    outer_values = [outer.lift(ref) for ref in refs]
    invariants = list(dict.fromkeys([*before.region_params, *after.region_params]))
    world = [outer.world()] if has_world else []
    for region in (before, after):
        if has_world:
            region.world()
    before_results = [*before_results, *region_values[0]]
    policy = memory_text(settings().memory if memory is None else memory)
    effects = _effects([*before.b.nodes, *after.b.nodes])
    if policy == "keep" and spills_past_limit() and not effects:
        policy = SPILL
    node = outer.b.while_(
        [*carry, *outer_values, *world],
        invariants,
        before.finish_region(before_results, invariants, has_world=has_world),
        after.finish_region([*after_results, *region_values[1]], invariants, has_world=has_world),
        memory=policy,
        limit=tape_limit_bytes(settings().tape_limit),
        parallel_iterations=parallel_iterations or 0,
    )
    if policy != "keep" and effects:
        raise _refused(node, policy, effects[0])
    if has_world:
        outer.set_world(node.results[-1])
    first = len(before_results) - 1 - len(refs)
    for ref, value in zip(refs, node.results[first:], strict=False):
        outer.assign(ref, value)
    _finish_trip_counters(outer, refs)
    return node


def _effects(nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes, also those in regions, that have effects other than checks (D36)."""
    inner = [node for n in nodes for region in n.regions for node in region.walk()]
    return [node for node in (*nodes, *inner) if node.op.effect in (Effect.WORLD, Effect.STATE)]


def _refused(loop: Node, policy: str, effect: Node) -> Exception:
    """Return the refusal of a policy that would repeat an effect."""
    return refusal(
        NotDifferentiableError(
            explain(
                f"the loop{at(loop.source)} has memory={shown(policy)}, and an effect: "
                f"{effect.op.name}{at(effect.source)}.",
                "it would happen again when the backward pass runs the trip again",
                cure='leave the effect out of the loop, or give it memory="keep".',
            )
        )
    )


def inner_loops_keep() -> AbstractContextManager[None]:
    """Return a context for the body of a loop: loops in it do not inherit its policy."""
    if settings().memory == "keep" and not settings().spill_dir:
        return nullcontext()
    return set_here(memory="keep", spill_dir="")


def _finish_trip_counters(outer: Recording, refs: Sequence[Tracer]) -> None:
    """Run the end-of-loop callbacks of the trip counters that a loop has carried."""
    ref_ids = {id(ref) for ref in refs}
    finished = [
        key for key, (integers, _) in outer.trip_counters.items() if id(integers[0]) in ref_ids
    ]
    for key in finished:
        _, on_loop_end = outer.trip_counters.pop(key)
        with outer.active():
            on_loop_end()


def join_branches(
    outer: Recording,
    selector: Value,
    regions: Sequence[Recording],
    results: Sequence[Sequence[Value]],
) -> Node:
    """Close branches over the same operands, and record their node."""
    refs: list[Tracer] = []
    add_mutated_refs(refs, *regions)
    contents = [[region.lift(ref) for ref in refs] for region in regions]
    for region, values, new_contents in zip(regions, results, contents, strict=True):
        region.keep_unused_checks([*values, *new_contents])
    has_world = any(region.world_param is not None for region in regions)
    operands = list(dict.fromkeys(value for region in regions for value in region.region_params))
    graphs: list[Graph] = []
    for region, values, new_contents in zip(regions, results, contents, strict=True):
        if has_world:
            region.world()
        graphs.append(region.finish_region([*values, *new_contents], operands, has_world=has_world))
    world = [outer.world()] if has_world else []
    node = outer.b.if_(selector, [*world, *operands], graphs)
    if has_world:
        outer.set_world(node.results[-1])
    for ref, value in zip(refs, node.results[len(results[0]) :], strict=False):
        outer.assign(ref, value)
    return node


def add_mutated_refs(refs: list[Tracer], *regions: Recording) -> bool:
    """Add outer arrays that regions change in place to `refs`; return whether any were new."""
    known = {id(known_ref) for known_ref in refs}
    new = {
        id(ref): ref
        for region in regions
        for ref in region.mutations.outer_refs()
        if id(ref) not in known
    }
    refs += new.values()
    return bool(new)
