"""The adjoint of `While` is again a `While`, counted down by the forward trip count (D1).

Its `before` is the transpose of the forward `before`, its `after` that of `after`: so the former
runs T + 1 times, the first time for the exit pass, and the latter T times. Neither evaluates the
forward predicate again. Record t of the forward `before` and record t − 1 of `after` are read by
position (D11), and the cotangents of invariants add up in carries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wend.autodiff.activity import loop_activity
from wend.autodiff.cotangents import Cotangent
from wend.autodiff.loop_reader import BackwardRegion, after_reader, before_reader
from wend.autodiff.loop_tape import TapePlan
from wend.autodiff.loop_transpose import (
    LoopCotangentActivity,
    Memo,
    activity_fixpoint,
    transpose_after,
    transpose_before,
)
from wend.autodiff.reassociate import reassociate
from wend.autodiff.transpose import BackwardPass, Transposer
from wend.base.zero import ZERO, Zero
from wend.ir.graph import Graph, Node, Value
from wend.ops.build import Build
from wend.ops.control import WhileParts

_plans: Memo[LoopCotangentActivity] = Memo()


def pull_back_while(t: Transposer, bwd: BackwardPass, node: Node, cts: Sequence[Cotangent]) -> None:
    """Append the backward `While` of a forward one."""
    w = WhileParts.of(node)
    flags = tuple(operand in bwd.active for operand in node.operands)
    arrived = frozenset(i for i, ct in enumerate(cts) if ct is not ZERO)
    # The body of a loop around it is pulled back more than once.
    known = {} if t.known is None else t.known
    key = node, flags, arrived
    if key not in known:
        known[key] = _adjoint_of(t, w, node, flags, arrived)
    adjoint: _Adjoint | None = known[key]
    if adjoint is not None:
        bwd.replaced[node] = adjoint.forward
        _append_backward(bwd, node, cts, adjoint)


@dataclass(frozen=True, slots=True)
class _Adjoint:
    """The backward loop of a forward one, where some operands are active and some cotangents come.

    Attributes:
        plan: which cotangents move.
        tape: what the forward loop records.
        forward: the nodes to stand for it.
        outer: the forward values that the regions take.
        regions: `before` and `after`.
    """

    plan: LoopCotangentActivity
    tape: TapePlan
    forward: Sequence[Node]
    outer: Sequence[Value]
    regions: Sequence[Graph]


def _adjoint_of(
    t: Transposer, w: WhileParts, node: Node, flags: tuple[bool, ...], arrived: frozenset[int]
) -> _Adjoint | None:
    """The backward loop; None where no cotangent moves."""
    activity = loop_activity(w, flags)
    seeded = frozenset(i for i in arrived if w.forwarded[i] in activity.before)
    plan = _plans(node, (flags, seeded), lambda: activity_fixpoint(t, w, activity, seeded))
    if not plan.forwarded:
        return None
    tape = TapePlan(
        w, transpose_before(t, w, activity, plan), transpose_after(t, w, activity, plan)
    )
    forward = tape.forward_nodes(node)
    before, after = BackwardRegion("before", tape.before, w), BackwardRegion("after", tape.after, w)
    before_count = before.mapping[tape.before.count]
    before.fill(before_reader(before, before_count, tape))
    following = after.mapping[tape.after.params[0]]
    previous = after.b.sub(following, after.b.integer(1))
    after.fill(after_reader(after, previous, following, tape))
    goes_on = before.b.gt(before_count, before.b.integer(0))
    outer = [*dict.fromkeys([*before.asked, *after.asked])]
    regions = [
        reassociate(region, region.params[1 : len(region.params) - len(outer)])
        for region in (before.finish([goes_on], outer), after.finish([], outer))
    ]
    return _Adjoint(plan, tape, forward, outer, regions)


def _append_backward(
    bwd: BackwardPass, node: Node, cts: Sequence[Cotangent], adjoint: _Adjoint
) -> None:
    b, plan, w = bwd.b, adjoint.plan, adjoint.tape.w
    seeds = [_instantiated(b, cts[i], node.results[i]) for i in plan.forwarded]
    sums = [
        _instantiated(b, bwd.cts.take(w.invariants[j]), w.invariants[j]) for j in plan.invariants
    ]
    loop = b.while_([adjoint.tape.trips, *seeds, *sums], adjoint.outer, *adjoint.regions)
    carried, summed = loop.results[1 : 1 + len(plan.carry)], loop.results[1 + len(plan.carry) :]
    for i, ct in zip(plan.carry, carried, strict=True):
        if w.carry[i] in bwd.active:
            bwd.cts.add(b, w.carry[i], ct)
    for j, ct in zip(plan.invariants, summed, strict=True):
        bwd.cts.add(b, w.invariants[j], ct)


def _instantiated(b: Build, ct: Cotangent, like: Value) -> Value:
    """The cotangent; where nothing arrived the one zero that a sum starts from."""
    return b.instantiate(b.zero(like.type) if isinstance(ct, Zero) else ct, like)
