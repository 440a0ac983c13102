"""Activity analysis: the values that depend differentiably on the params of a derivative."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import or_

from wend.base.lazy.dataclass import dataclass
from wend.ir.dataflow import flow_forward
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Explicit, Linear, NoGradient, Partials
from wend.ir.types import is_differentiable
from wend.ops.custom import RULED, CustomJvpParts, CustomVjpParts, custom_jvp, has_rule
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


def _result_activity(node: Node, flags: Sequence[bool]) -> Sequence[bool]:
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
    if node.op in RULED:
        return _ruled_activity(node, flags)
    if node.op is scheduled:
        plain = ScheduledParts.of(node).plain
        active = branch_activity(plain, flags)
        return [value in active for value in plain.results]
    return region_activity(node, flags).results


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
class RegionActivity:
    """The active values of a node's regions, and which of its results are active."""

    regions: Sequence[set[Value]]
    results: Sequence[bool]


def region_activity(node: Node, flags: Sequence[bool]) -> RegionActivity:
    """Return the activity in the regions of a node whose operands are active as flagged."""
    active: list[set[Value]] = [set()] * len(node.regions)

    def transfer(k: int, params: Sequence[bool]) -> list[bool]:
        active[k] = branch_activity(node.regions[k], params)
        return [result in active[k] for result in node.regions[k].results]

    return RegionActivity(active, flow_forward(node, flags, or_, transfer).node)


def _chosen(values: Sequence[Value], flags: Sequence[bool]) -> list[Value]:
    return [value for value, flag in zip(values, flags, strict=True) if flag]
