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

import numpy as np

from wend.base import trees
from wend.base.errors import NotDifferentiableError, explain
from wend.base.source import at
from wend.function.custom_call import CustomCall
from wend.ir.graph import Graph, Node, Value
from wend.ir.op import Effect, Op
from wend.ir.rewrite import copy_nodes
from wend.ir.types import TOKEN, TensorType, Type
from wend.ops.build import Build
from wend.ops.custom import OwnRule
from wend.trace.recording import Recording
from wend.trace.traced import Traced
from wend.trace.tracer import Tracer


@dataclass(frozen=True, slots=True)
class Frame:
    """What the regions of the node are given besides arguments: the world, and what is captured."""

    has_world: bool
    bindings: tuple[Any, ...]


class Body:
    """A region of the node: a recorded function behind the params that the node gives it."""

    def __init__(self, traced: Traced, frame: Frame) -> None:
        self.traced, self.frame = traced, frame
        self.b = Build(traced.graph.name)
        self.mapping: dict[Value, Value] = {}
        self._own = iter(traced.graph.params)
        self._world: list[Value] = []

    def take(self, count: int) -> list[Value]:
        """Params for the next arguments of the function."""
        found = []
        for _ in range(count):
            param = next(self._own)
            found.append(self.b.param(param.type, param.name))
            self.mapping[param] = found[-1]
        return found

    def ahead(self, count: int) -> list[Value]:
        """The same, to be put among the params later."""
        found = self.take(count)
        del self.b.params[len(self.b.params) - count :]
        return found

    def world(self) -> list[Value]:
        """A param for the token of effects, if the node has one."""
        if self.frame.has_world:
            self._world = [self.b.param(TOKEN)]
        return self._world

    def captured(self) -> list[Value]:
        """Params for all that the node captures."""
        bindings = self.frame.bindings
        params = [self.b.param(_type(binding), _name(binding)) for binding in bindings]
        places = {_key(binding): k for k, binding in enumerate(bindings)}
        for value, binding in zip(self.traced.graph.captures, self.traced.bindings, strict=True):
            k = places.get(_key(binding))
            # An array that the rule makes anew each time is a constant of it.
            self.mapping[value] = self.b.constant(binding) if k is None else params[k]
        return params

    def run(self) -> tuple[list[Value], list[Value]]:
        """Append the function's nodes; return its results, and the token if there is one."""
        graph, count = self.traced.graph, len(self.traced.result_types)
        if self.traced.has_world:
            (self.mapping[next(self._own)],) = self._world
        self.b.nodes += copy_nodes(graph.nodes, self.mapping)
        found = [self.mapping[value] for value in graph.results]
        return found[:count], found[count:] if self.traced.has_world else self._world


def whole_body(traced: Traced, frame: Frame, count: int) -> Graph:
    """A function of the call's own arguments as a region; the token is its last result."""
    body = Body(traced, frame)
    body.take(count)
    body.world()
    body.captured()
    results, world = body.run()
    return body.b.finish([*results, *world])


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
    rule: OwnRule = field(default_factory=OwnRule)
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
        token = _under_way.set((*_under_way.get(), under))
        try:
            rule = owner.record_rule(call, callee)
        finally:
            _under_way.reset(token)
        found = _frame_of([callee, *rule.traces])
        if not under.is_used:
            frame = found
            break
        known = {_key(binding) for binding in frame.bindings}
        fresh = [binding for binding in found.bindings if _key(binding) not in known]
        is_made_anew = before is not None and not any(isinstance(x, Tracer) for x in fresh)
        if found.has_world == frame.has_world and (not fresh or is_made_anew):
            break
        # What was there both times is captured; arrays that the rule makes anew come and go.
        seen = None if before is None else {_key(binding) for binding in before.bindings}
        lasting = [x for x in found.bindings if seen is None or _key(x) in seen]
        before, frame = found, Frame(found.has_world, tuple(lasting))
    regions, attrs = rule.regions(callee, frame)
    attrs |= {"name": call.name, "captured": len(frame.bindings)}
    under.rule.settle(regions, attrs)
    return regions, attrs, frame


def _frame_of(traces: Sequence[Traced]) -> Frame:
    bindings = {_key(binding): binding for traced in traces for binding in traced.bindings}
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


def effect_in(graph: Graph) -> Node | None:
    """The first node with an effect, at any depth."""
    return next((node for node in graph.walk() if node.op.effect is not Effect.NONE), None)


def refuse_effects(traced: Traced, what: str, why: str, cure: str) -> None:
    """Refuse a recorded function that has effects.

    Raises:
        NotDifferentiableError: it has one, which is named.
    """
    node = effect_in(traced.graph)
    if node is not None:
        found = f"{node.op.name}{at(node.source)}"
        raise NotDifferentiableError(explain(f"{what}: it has an effect, {found}.", why, cure=cure))


def _key(binding: Any) -> int:
    """What makes two bindings one."""
    return id(binding.value) if isinstance(binding, Tracer) else id(binding)


def _type(binding: Any) -> Type:
    if isinstance(binding, Tracer):
        return binding.value.type
    assert isinstance(binding, np.ndarray)
    return TensorType(binding.dtype, binding.shape)


def _name(binding: Any) -> str:
    return repr(binding) if isinstance(binding, Tracer) else "an array of the program"
