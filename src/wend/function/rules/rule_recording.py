"""Records a call with its rule as one node, also where the rule calls the function again.

All parts of a rule are recorded together with the call. The outside values that they use, traced
values and arrays, become operands of the node, like the captures of a function.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import field
from typing import Any, ClassVar

from wend.base import trees
from wend.base.context_values import scoped
from wend.base.errors import MissingRuleError, explain
from wend.base.lazy.dataclass import dataclass
from wend.function.rules.custom_call import CustomCall
from wend.function.rules.rule_body import RuleContext, binding_key, callee_region
from wend.ir.graph import Graph
from wend.ir.op import Op
from wend.ops.custom import RecursiveRule
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.recording import Recording, current
from wend.trace.traced import Traced

# A rule may call its own function on other arguments each time. So many nested calls are recorded
# with their rules; each level serves one more order of derivatives.
_MAX_RECURSIVE_RULES = 3


class CustomRule(ABC):
    """The parts of a rule as recorded for one call."""

    op: Op
    traces: list[Traced]

    @abstractmethod
    def regions(self, callee: Traced, context: RuleContext) -> tuple[list[Graph], dict[str, Any]]:
        """Return the regions besides the callee, and their attrs."""


class CustomFunction(ABC):
    """A function with a custom rule.

    Attributes:
        op: the operation of the nodes that its calls record; its name is that of the decorator.
        setter: the call that sets the rule, for messages.
    """

    op: ClassVar[Op]
    setter: ClassVar[str]

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: int | Sequence[int] = ()) -> None:
        if not callable(fun):
            raise TypeError(f"{self.op.name} takes a function, not {fun!r}")
        self.fun = fun
        self.name = str(getattr(fun, "__name__", "function"))
        self.nondiff_argnums = (
            (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        )
        functools.update_wrapper(self, fun, updated=())

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if not self.has_rule():
            raise MissingRuleError(
                explain(
                    f"{self.name} is a {self.op.name} without a rule.",
                    cure=f"set one: {self.name}.{self.setter}.",
                )
            )
        outer = current()
        if outer is None:
            return self.fun(*args, **kwargs)
        call = CustomCall(self.fun, self.name, self.nondiff_argnums, args, kwargs)
        return record(self, call, self.fun, outer)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<wend.{self.op.name} {self.name}>"

    @abstractmethod
    def has_rule(self) -> bool:
        """Return whether the rule has been set."""

    @abstractmethod
    def record_rule(self, call: CustomCall, callee: Traced) -> CustomRule:
        """Record the parts of the rule."""


@dataclass(slots=True)
class _ActiveRule:
    """A rule that is being recorded, for the calls that it makes of its own function."""

    owner: CustomFunction
    call: CustomCall
    callee: Traced
    context: RuleContext
    rule: RecursiveRule = field(default_factory=RecursiveRule)
    is_used: bool = False


_active_rules: ContextVar[tuple[_ActiveRule, ...]] = ContextVar("wend_rules_under_way", default=())


def record(owner: CustomFunction, call: CustomCall, fun: Any, outer: Recording) -> Any:
    """Record a call of `fun` with the rule of `owner`; return its traced value."""
    for active in reversed(_active_rules.get()):
        if active.owner is owner and active.call.has_same_trace(call):
            active.is_used = True
            attrs = {
                "name": call.name,
                "captured": len(active.context.bindings),
                "rule": active.rule,
            }
            return _emit_node(owner, call, active.callee, active.context, (), attrs, outer)
    callee = call.trace(
        "",
        fun,
        call.types,
        lambda fun, leaves: fun(*call.all_args(leaves)),
        [f"argument {call.path(k)}" for k in range(len(call.traced_positions))],
    )
    if sum(active.owner is owner for active in _active_rules.get()) > _MAX_RECURSIVE_RULES:
        context = RuleContext(callee.has_world, callee.bindings)
        attrs = {"name": call.name, "captured": len(context.bindings), "rule": RecursiveRule()}
        return _emit_node(owner, call, callee, context, (), attrs, outer)
    regions, attrs, context = _record_fixpoint(owner, call, callee)
    return _emit_node(owner, call, callee, context, regions, attrs, outer)


def _record_fixpoint(
    owner: CustomFunction, call: CustomCall, callee: Traced
) -> tuple[list[Graph], dict[str, Any], RuleContext]:
    """Record the rule until its captures are known.

    A rule that calls the function is recorded again if it captures more than those calls assumed.
    """
    context = RuleContext(callee.has_world, callee.bindings)
    previous: RuleContext | None = None
    while True:
        active = _ActiveRule(owner, call, callee, context)
        with scoped(_active_rules, (*_active_rules.get(), active)):
            rule = owner.record_rule(call, callee)
        traced_context = _joint_context([callee, *rule.traces])
        if not active.is_used:
            context = traced_context
            break
        known_keys = {binding_key(binding) for binding in context.bindings}
        new_bindings = [
            binding for binding in traced_context.bindings if binding_key(binding) not in known_keys
        ]
        is_recreated = previous is not None and not any(isinstance(x, Tracer) for x in new_bindings)
        if traced_context.has_world == context.has_world and (not new_bindings or is_recreated):
            break
        # Only bindings of both recordings are captured, since arrays that the rule creates differ.
        previous_keys = (
            None if previous is None else {binding_key(binding) for binding in previous.bindings}
        )
        stable_bindings = [
            x
            for x in traced_context.bindings
            if previous_keys is None or binding_key(x) in previous_keys
        ]
        previous, context = (
            traced_context,
            RuleContext(traced_context.has_world, tuple(stable_bindings)),
        )
    regions, attrs = rule.regions(callee, context)
    attrs |= {"name": call.name, "captured": len(context.bindings)}
    active.rule.resolve(regions, attrs)
    return regions, attrs, context


def _joint_context(traces: Sequence[Traced]) -> RuleContext:
    """Return the context of the regions of these traces."""
    bindings = {binding_key(binding): binding for traced in traces for binding in traced.bindings}
    return RuleContext(any(traced.has_world for traced in traces), tuple(bindings.values()))


def _emit_node(
    owner: CustomFunction,
    call: CustomCall,
    callee: Traced,
    context: RuleContext,
    rule_regions: Sequence[Graph],
    attrs: dict[str, Any],
    outer: Recording,
) -> Any:
    """Append the node."""
    callee.prepare_call(outer)
    operands = [outer.lift(array) for array in call.arrays]
    if context.has_world:
        operands.append(outer.world())
    operands += [outer.lift(binding) for binding in context.bindings]
    regions = [callee_region(callee, context, len(call.arrays)), *rule_regions]
    node = outer.b.emit_node(owner.op, operands, regions, **attrs)
    if context.has_world:
        outer.set_world(node.results[len(callee.result_types)])
    results = [
        outer.wrap(value, weak=type.weak)
        for value, type in zip(node.results, callee.result_types, strict=False)
    ]
    return trees.unflatten(callee.result_tree, results)
