"""Activity analysis: the values that depend differentiably on the params of a derivative."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Explicit, Linear, NoGradient, Partials
from wend.ir.types import is_differentiable
from wend.ops.control import CallParts, IfParts, WhileParts, if_, while_
from wend.ops.custom import RULED, CustomJvpParts, CustomVjpParts, custom_jvp, has_rule
from wend.ops.parallel_map import SUM, ParallelMapParts, parallel_map
from wend.ops.schedules import ScheduledParts, scheduled


def active_values(graph: Graph, params: Iterable[Value]) -> set[Value]:
    """Return the values of a graph's own nodes that depend differentiably on `params`."""
    active = {param for param in params if is_differentiable(param.type)}
    for node in graph.nodes:
        flags = [operand in active for operand in node.operands]
        for result, is_active in zip(node.results, _result_activity(node, flags), strict=True):
            if is_active and is_differentiable(result.type):
                active.add(result)
    return active


def _result_activity(node: Node, flags: Sequence[bool]) -> list[bool]:
    derivative, count = node.op.derivative, len(node.results)
    match derivative:
        case NoGradient():
            return [False] * count
        case Partials(rules=rules):
            is_result_active = any(f and r is not None for f, r in zip(flags, rules, strict=True))
            return [is_result_active] * count
        case Linear(operands=linear):
            return [any(f for i, f in enumerate(flags) if linear is None or i in linear)] * count
        case Explicit():
            return [any(flags)] * count
    if not any(flags) or not node.regions:
        return [any(flags)] * count
    if node.op is while_:
        parts = WhileParts.of(node)
        activity = loop_activity(parts, flags)
        return [value in activity.before for value in parts.forwarded]
    if node.op is parallel_map:
        return _map_activity(ParallelMapParts.of(node), flags)
    if node.op in RULED:
        return _ruled_activity(node, flags)
    if node.op is scheduled:
        plain = ScheduledParts.of(node).plain
        active = branch_activity(plain, flags)
        return [value in active for value in plain.results]
    branches = IfParts.of(node).branches if node.op is if_ else (CallParts.of(node).callee,)
    operand_flags = flags[1:] if node.op is if_ else flags
    per_branch = [branch_activity(branch, operand_flags) for branch in branches]
    return [
        any(
            branch.results[i] in active for branch, active in zip(branches, per_branch, strict=True)
        )
        for i in range(count)
    ]


def _map_activity(p: ParallelMapParts, flags: Sequence[bool]) -> list[bool]:
    """Return the activity of the results: that of the region's, or of where a sum starts."""
    first, after = len(p.mapped), len(p.mapped) + len(p.starts)
    active = branch_activity(p.body, (*flags[:first], *flags[after:]))
    starts = iter(flags[first:after])
    return [
        (form == SUM and next(starts)) or value in active
        for form, value in zip(p.forms, p.body.results, strict=True)
    ]


def _ruled_activity(node: Node, flags: Sequence[bool]) -> list[bool]:
    """Return the activity of the results of a call with a derivative rule.

    The outs are active if an operand is active that the rule differentiates or must refuse. Further
    results follow from their own computation.
    """
    if not has_rule(node):
        return [any(flags)] * len(node.results)
    parts = (CustomJvpParts if node.op is custom_jvp else CustomVjpParts).of(node)
    wrt = {*parts.wrt, *range(len(flags) - parts.captured, len(flags))}
    outs = [any(flags[i] for i in wrt)] * parts.outs
    if isinstance(parts, CustomJvpParts):
        return outs
    others = parts.forward.results[parts.outs : len(node.results)]
    if not others:
        return outs
    active = branch_activity(parts.forward, flags)
    return [*outs, *(value in active for value in others)]


def branch_activity(branch: Graph, flags: Sequence[bool]) -> set[Value]:
    """Return the active values of a region whose operands are active as flagged."""
    return active_values(branch, _chosen(branch.params, flags))


@dataclass(frozen=True, slots=True)
class LoopActivity:
    """The active values of a loop's two regions."""

    before: set[Value]
    after: set[Value]


def loop_activity(w: WhileParts, flags: Sequence[bool]) -> LoopActivity:
    """Find the active values by a fixpoint: a carry is active if its start or its next value is."""
    carry, invariants = list(flags[: len(w.carry)]), flags[len(w.carry) :]
    while True:
        before = branch_activity(w.before, (*carry, *invariants))
        after = branch_activity(w.after, (*[value in before for value in w.forwarded], *invariants))
        grown = [old or new in after for old, new in zip(carry, w.next_carry, strict=True)]
        if grown == carry:
            return LoopActivity(before, after)
        carry = grown


def _chosen(values: Sequence[Value], flags: Sequence[bool]) -> list[Value]:
    return [value for value, flag in zip(values, flags, strict=True) if flag]
