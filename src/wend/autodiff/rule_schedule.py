"""The adjoint of a loop by a schedule: scheduled calls of the loop and of its backward pass (D31).

Both are ordinary loops. To differentiate through a schedule would tape it, so they are nodes
`scheduled`: their derivatives are those of the loop, and of its strip-mined gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wend.autodiff.activity import RegionActivity, region_activity
from wend.autodiff.changes_in_place import updates_of_carries
from wend.autodiff.cotangents import Cotangent, instantiate_or_zeros
from wend.autodiff.loop_transpose import (
    LoopCotangentActivity,
    Transposed,
    cotangent_activity,
    transpose_after,
)
from wend.autodiff.rotate import params_like
from wend.autodiff.rule_checkpoint import recompute_and_transpose
from wend.autodiff.schedule import LoopSteps, Schedule
from wend.autodiff.strip_mine import strip_mined
from wend.autodiff.transpose import BackwardPass, Transposer
from wend.base.lazy.dataclass import dataclass
from wend.base.zero import ZERO
from wend.ir.graph import Graph, Node, Value
from wend.ir.rewrite import copy_nodes, inline
from wend.ir.types import ListType
from wend.ops.build import Build
from wend.ops.control import WhileParts
from wend.passes.dce import select_results

_LEVELS = 2  # of the strip-mined form
# Trips of it, where each has many records because its loop changes arrays in place
_LARGE_SEGMENT = 4


@dataclass(frozen=True, slots=True)
class ScheduledLoop:
    """A loop with slots, and its backward pass.

    Attributes:
        forward: the node that replaces the loop; its results are those of the loop, then slots.
        nonzero: the positions of the cotangents.
        backward: (operands, slots, cotangents of what is forwarded) to cotangents of the carry,
            then of invariants.
        plain: the same without slots.
    """

    forward: Node
    nonzero: LoopCotangentActivity
    backward: Graph
    plain: Graph


def pull_back_by_schedule(
    t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent], schedule: Schedule
) -> None:
    """Append the backward pass of a rotated loop that keeps states by a schedule."""

    def make(nonzero: LoopCotangentActivity, activity: RegionActivity) -> ScheduledLoop:
        w = WhileParts.of(node)
        loop = _steps(w, nonzero, transpose_after(t, w, activity, nonzero))
        forward = _forward(t, node, loop, schedule)
        backward = _backward(t, node, loop, schedule, forward)
        segment = _LARGE_SEGMENT if updates_of_carries(node) else schedule.segment
        plain = plain_backward(t, node, nonzero, backward, segment)
        return ScheduledLoop(forward, nonzero, backward, plain)

    pull_back_scheduled_loop(t, bwd, node, cts, make)


def loop_steps(
    t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]
) -> LoopSteps | None:
    """Return a rotated loop as its backward pass runs it; None where every cotangent is zero."""
    reached = _reached(t, bwd, node, cts)
    if reached is None:
        return None
    w, (nonzero, activity) = WhileParts.of(node), reached
    return _steps(w, nonzero, transpose_after(t, w, activity, nonzero))


def pull_back_scheduled_loop(
    t: Transposer,
    bwd: BackwardPass,
    node: Node,
    cts: Sequence[Cotangent],
    make: Callable[[LoopCotangentActivity, RegionActivity], ScheduledLoop],
) -> None:
    """Append the backward pass of a loop, as scheduled calls.

    Args:
        t: the transposer.
        bwd: the backward pass.
        node: the loop.
        cts: the cotangents of its results.
        make: gives the calls, from which cotangents may be nonzero and what is active.
    """
    active_operands = tuple(operand in bwd.active for operand in node.operands)
    arrived = frozenset(i for i, ct in enumerate(cts) if ct is not ZERO)
    key = "schedule", node, active_operands, arrived
    memo = {} if t.known is None else t.known
    if key not in memo:
        reached = _reached(t, bwd, node, cts)
        memo[key] = None if reached is None else make(*reached)
    adjoint: ScheduledLoop | None = memo[key]
    if adjoint is None:
        return
    b, nonzero = bwd.b, adjoint.nonzero
    bwd.replaced[node] = [adjoint.forward]
    slot_values = adjoint.forward.results[len(node.results) :]
    seeds = [instantiate_or_zeros(b, cts[i], node.results[i]) for i in nonzero.forwarded]
    operands = [*node.operands, *slot_values, *seeds]
    count = len(adjoint.backward.results)
    results = b.scheduled(operands, adjoint.backward, adjoint.plain, outs=count).results
    for k, ct in zip(operand_positions(node, nonzero), results, strict=True):
        if node.operands[k] in bwd.active:
            bwd.cts.add(b, node.operands[k], ct)


def _reached(
    t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]
) -> tuple[LoopCotangentActivity, RegionActivity] | None:
    """Return which cotangents of a loop may be nonzero, if any, and which values are active."""
    w = WhileParts.of(node)
    activity = region_activity(node, tuple(operand in bwd.active for operand in node.operands))
    seeded = frozenset(
        i for i, ct in enumerate(cts) if ct is not ZERO and w.forwarded[i] in activity.regions[0]
    )
    nonzero = cotangent_activity(t, node, activity, seeded)
    return (nonzero, activity) if nonzero.forwarded else None


def operand_positions(node: Node, nonzero: LoopCotangentActivity) -> list[int]:
    """Return the positions of the operands of a loop that get cotangents."""
    first = len(WhileParts.of(node).carry)
    return [*nonzero.carry, *(first + j for j in nonzero.invariants)]


def _steps(w: WhileParts, nonzero: LoopCotangentActivity, transposed: Transposed) -> LoopSteps:
    """Return the state of a loop, and the graphs that go one trip on and one back."""
    whole = _step_back(w, transposed)
    back, used = select_results(whole, range(len(whole.results)))
    forwarded, results = len(w.forwarded), len(whole.results)
    state = {k for k in used if k < forwarded}
    while True:
        step, needed = select_results(w.after, [1 + k for k in sorted(state)])
        grown = state | {k for k in needed if k < forwarded}
        if grown == state:
            break
        state = grown
    ordered = sorted(state)
    first_ct = len(whole.params) - results
    # Both take the whole state and all invariants; the backward step takes the cotangents, too.
    params = [*ordered, *range(forwarded, len(w.after.params))]
    step = _with_params(step, needed, params, w.after.params)
    cts = range(first_ct, len(whole.params))
    back = _with_params(back, used, [*params, *cts], whole.params)
    return LoopSteps(w, nonzero, ordered, transposed.params[1:], step, back)


def _with_params(
    graph: Graph, present: Sequence[int], chosen: Sequence[int], params: Sequence[Value]
) -> Graph:
    """Return a graph that has some of its params with others of a list, which it does not read."""
    b = Build(graph.name)
    values = {k: b.param(params[k].type, params[k].name) for k in chosen}
    return b.finish(inline(graph, [values[k] for k in present], b.nodes))


def _step_back(w: WhileParts, transposed: Transposed) -> Graph:
    """Return (forwarded…, invariants…, count, cotangents…, sums…) → the same one trip earlier."""
    b = Build("step_back")
    b.source = w.source
    params = [*w.after.params, *transposed.params]
    mapping = dict(zip(params, params_like(b, params), strict=True))
    b.nodes += copy_nodes(w.after.nodes, mapping, transposed.bwd.replaced)
    b.nodes += copy_nodes(transposed.b.forward_shape_reads, mapping)
    b.nodes += copy_nodes(transposed.b.nodes, mapping)
    return b.finish([mapping[value] for value in transposed.results])


def _forward(t: Transposer, node: Node, loop: LoopSteps, schedule: Schedule) -> Node:
    """Return the node that replaces a loop and fills slots."""
    b = Build("placement")
    b.source = node.source
    params = params_like(b, loop.w.before.params)
    forwarded, placed = schedule.place(t, b, loop, params)
    return scheduled_forward(node, b.finish([*forwarded, *placed]))


def scheduled_forward(node: Node, callee: Graph) -> Node:
    """Return the call that replaces a loop; further results of the callee are what it keeps."""
    b = Build("plain")
    b.source = node.source
    params = params_like(b, callee.params)
    (copy,) = copy_nodes([node], dict(zip(node.operands, params, strict=True)))
    b.nodes.append(copy)
    placeholders = [
        b.list_new(value.type.element) if isinstance(value.type, ListType) else b.zeros_like(value)
        for value in callee.results[len(node.results) :]
    ]
    plain = b.finish([*copy.results, *placeholders])
    scratch = Build("")
    scratch.source = node.source
    return scratch.scheduled(node.operands, callee, plain, outs=len(node.results))


def _backward(
    t: Transposer, node: Node, loop: LoopSteps, schedule: Schedule, forward: Node
) -> Graph:
    """Return the backward pass that reads what the schedule has kept."""
    w, nonzero, b = loop.w, loop.nonzero, Build("way_back")
    b.source = node.source
    params = params_like(b, w.before.params)
    slots = params_like(b, forward.results[len(node.results) :])
    seeds = params_like(b, [w.forwarded[i] for i in nonzero.forwarded])
    invariants = params[len(w.carry) :]
    sums = [b.zeros_like(invariants[j]) for j in nonzero.invariants]
    return b.finish(schedule.go_back(t, b, loop, slots, [*seeds, *sums], invariants))


def plain_backward(
    t: Transposer, node: Node, nonzero: LoopCotangentActivity, backward: Graph, segment: int
) -> Graph:
    """Return the backward pass of the strip-mined loop, with the params of `backward`."""
    w, b = WhileParts.of(node), Build("plain")
    b.source = node.source
    params = params_like(b, backward.params)
    operands, seeds = params[: len(node.operands)], params[len(params) - len(nonzero.forwarded) :]
    cts: list[Cotangent] = [ZERO] * len(w.forwarded)
    for i, seed in zip(nonzero.forwarded, seeds, strict=True):
        cts[i] = seed
    positions = operand_positions(node, nonzero)
    loop = _nested(node, segment)
    transposed = recompute_and_transpose(t, loop, positions, cts)
    grads: dict[int, Value] = {}
    if transposed is not None:
        graph, connected, used = transposed
        arguments = [*operands, *seeds]
        results = inline(graph, [arguments[k] for k in used], b.nodes)
        grads = dict(zip(connected, results, strict=True))
    return b.finish([instantiate_or_zeros(b, grads.get(k, ZERO), operands[k]) for k in positions])


def _nested(node: Node, size: int) -> Graph:
    """Return a loop as segments of segments, of at most so many trips each."""
    graph = strip_mined(node, size)
    for _ in range(_LEVELS - 1):
        *nodes, loop = graph.nodes
        segments = strip_mined(loop, size)
        results = inline(segments, loop.operands, nodes)
        graph = Graph(graph.name, graph.params, tuple(nodes), tuple(results))
    return graph
