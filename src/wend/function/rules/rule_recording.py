"""Records a call with its rule as one node, also where the rule calls the function again.

All parts of a rule are recorded when the call is. What they use from outside, traced values and
arrays, become operands of the node, as a function's captures do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from wend.base import trees
from wend.base.context_values import scoped
from wend.function.rules.custom_call import CustomCall
from wend.function.rules.rule_body import Frame, key_of, whole_body
from wend.ir.graph import Graph
from wend.ir.op import Op
from wend.ops.custom import RecursiveRule
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.recording import Recording
from wend.trace.traced import Traced

# Of calls that a rule makes of its own function, on something else each time, so many in one
# another are recorded with their rules: each serves one more order of derivatives.
_DEEPEST = 3


class Rule(ABC):
    """The parts of a rule, as they have been recorded for one call."""

    op: Op
    traces: list[Traced]

    @abstractmethod
    def regions(self, callee: Traced, frame: Frame) -> tuple[list[Graph], dict[str, Any]]:
        """The regions besides the callee, and the attrs that go with them."""


class Owner(ABC):
    """A function with a rule of its own."""

    op: Op

    @abstractmethod
    def record_rule(self, call: CustomCall, callee: Traced) -> Rule:
        """Record the parts of the rule."""


@dataclass(slots=True)
class _UnderWay:
    """A rule that is being recorded, for the calls of the function that it makes itself."""

    owner: Owner
    call: CustomCall
    callee: Traced
    frame: Frame
    rule: RecursiveRule = field(default_factory=RecursiveRule)
    is_used: bool = False


_under_way: ContextVar[tuple[_UnderWay, ...]] = ContextVar("wend_rules_under_way", default=())


def record(owner: Owner, call: CustomCall, fun: Any, outer: Recording) -> Any:
    """Record a call of `fun`, whose rule is the owner's, and return what it returns, traced."""
    for under in reversed(_under_way.get()):
        if under.owner is owner and under.call.is_like(call):
            under.is_used = True
            attrs = {"name": call.name, "captured": len(under.frame.bindings), "rule": under.rule}
            return _emit(owner, call, under.callee, under.frame, (), attrs, outer)
    callee = call.trace(
        "",
        fun,
        call.types,
        lambda fun, leaves: fun(*call.filled(leaves)),
        [f"argument {call.path(k)}" for k in range(len(call.places))],
    )
    if sum(under.owner is owner for under in _under_way.get()) > _DEEPEST:
        frame = Frame(callee.has_world, callee.bindings)
        attrs = {"name": call.name, "captured": len(frame.bindings), "rule": RecursiveRule()}
        return _emit(owner, call, callee, frame, (), attrs, outer)
    regions, attrs, frame = _settled(owner, call, callee)
    return _emit(owner, call, callee, frame, regions, attrs, outer)


def _settled(
    owner: Owner, call: CustomCall, callee: Traced
) -> tuple[list[Graph], dict[str, Any], Frame]:
    """Record the rule; once more where it calls the function, and captures more than that knew."""
    frame = Frame(callee.has_world, callee.bindings)
    before: Frame | None = None
    while True:
        under = _UnderWay(owner, call, callee, frame)
        with scoped(_under_way, (*_under_way.get(), under)):
            rule = owner.record_rule(call, callee)
        found = _frame_of([callee, *rule.traces])
        if not under.is_used:
            frame = found
            break
        known = {key_of(binding) for binding in frame.bindings}
        fresh = [binding for binding in found.bindings if key_of(binding) not in known]
        is_made_anew = before is not None and not any(isinstance(x, Tracer) for x in fresh)
        if found.has_world == frame.has_world and (not fresh or is_made_anew):
            break
        # What was there both times is captured; arrays that the rule makes anew come and go.
        seen = None if before is None else {key_of(binding) for binding in before.bindings}
        lasting = [x for x in found.bindings if seen is None or key_of(x) in seen]
        before, frame = found, Frame(found.has_world, tuple(lasting))
    regions, attrs = rule.regions(callee, frame)
    attrs |= {"name": call.name, "captured": len(frame.bindings)}
    under.rule.resolve(regions, attrs)
    return regions, attrs, frame


def _frame_of(traces: Sequence[Traced]) -> Frame:
    bindings = {key_of(binding): binding for traced in traces for binding in traced.bindings}
    return Frame(any(traced.has_world for traced in traces), tuple(bindings.values()))


def _emit(
    owner: Owner,
    call: CustomCall,
    callee: Traced,
    frame: Frame,
    rule: Sequence[Graph],
    attrs: dict[str, Any],
    outer: Recording,
) -> Any:
    """Append the node."""
    operands = [outer.lift(array) for array in call.arrays]
    if frame.has_world:
        operands.append(outer.world())
    operands += [outer.lift(binding) for binding in frame.bindings]
    regions = [whole_body(callee, frame, len(call.arrays)), *rule]
    node = outer.b.emit_node(owner.op, operands, regions, **attrs)
    if frame.has_world:
        outer.set_world(node.results[len(callee.result_types)])
    results = [
        outer.wrap(value, weak=type.weak)
        for value, type in zip(node.results, callee.result_types, strict=False)
    ]
    return trees.unflatten(callee.result_tree, results)
