"""The adjoint of `While` is again a `While`, counted down by the forward trip count (D1).

Its `before` is the transpose of the forward `before`, its `after` that of `after`: so the former
runs T + 1 times, the first time for the exit pass, and the latter T times. Neither evaluates the
forward predicate again. Record t of the forward `before` and record t − 1 of `after` are read by
position (D11), and the cotangents of invariants add up in carries.
"""

from __future__ import annotations

from collections.abc import Sequence

from wend.autodiff.activity import loop_activity
from wend.autodiff.cotangents import Cotangent
from wend.autodiff.grouping import group_factors
from wend.autodiff.loop_reader import BackwardRegion, after_reader, before_reader
from wend.autodiff.loop_tape import Tape
from wend.autodiff.loop_transpose import Nonzero, find_nonzero, transpose_after, transpose_before
from wend.autodiff.memo import Memo
from wend.autodiff.transpose import Pass, Transposer
from wend.base.zero import ZERO, Zero
from wend.ir.graph import Node, Value
from wend.ops.build import Build
from wend.ops.control import WhileParts

_plans: Memo[Nonzero] = Memo()


def pull_back_while(t: Transposer, this: Pass, node: Node, cts: Sequence[Cotangent]) -> None:
    """Append the backward `While` of a forward one."""
    w = WhileParts.of(node)
    flags = tuple(operand in this.active for operand in node.operands)
    activity = loop_activity(w, flags)
    arrived = [i for i, ct in enumerate(cts) if ct is not ZERO]
    seeded = frozenset(i for i in arrived if w.forwarded[i] in activity.before)
    plan = _plans(node, (flags, seeded), lambda: find_nonzero(t, w, activity, seeded))
    if not plan.forwarded:
        return
    before = transpose_before(t, w, activity, plan)
    after = transpose_after(t, w, activity, plan)
    tape = Tape(w, before, after)
    this.replaced[node] = tape.forward_nodes(node)
    _append_backward(this, node, cts, plan, tape)


def _append_backward(
    this: Pass, node: Node, cts: Sequence[Cotangent], plan: Nonzero, tape: Tape
) -> None:
    b, w = this.b, tape.w
    before, after = BackwardRegion("before", tape.before, w), BackwardRegion("after", tape.after, w)
    before_count = before.mapping[tape.before.count]
    before.fill(before_reader(before, before_count, tape))
    following = after.mapping[tape.after.params[0]]
    previous = after.b.sub(following, after.b.integer(1))
    after.fill(after_reader(after, previous, following, tape))
    goes_on = before.b.gt(before_count, before.b.integer(0))
    outer = [*dict.fromkeys([*before.asked, *after.asked])]
    regions = [
        group_factors(region, region.params[1 : len(region.params) - len(outer)])
        for region in (before.finish([goes_on], outer), after.finish([], outer))
    ]
    seeds = [_instantiated(b, cts[i], node.results[i]) for i in plan.forwarded]
    sums = [
        _instantiated(b, this.cts.take(w.invariants[j]), w.invariants[j]) for j in plan.invariants
    ]
    loop = b.while_([tape.trips, *seeds, *sums], outer, *regions)
    carried, summed = loop.results[1 : 1 + len(plan.carry)], loop.results[1 + len(plan.carry) :]
    for i, ct in zip(plan.carry, carried, strict=True):
        if w.carry[i] in this.active:
            this.cts.add(b, w.carry[i], ct)
    for j, ct in zip(plan.invariants, summed, strict=True):
        this.cts.add(b, w.invariants[j], ct)


def _instantiated(b: Build, ct: Cotangent, like: Value) -> Value:
    """The cotangent; where nothing arrived the one zero that a sum starts from."""
    return b.instantiate(b.zero(like.type) if isinstance(ct, Zero) else ct, like)
