"""The regions of a call with a rule: recorded functions behind the params that the node gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wend.eager.dispatch import Staged
from wend.ir.graph import Graph, Value
from wend.ir.rewrite import copy_nodes
from wend.ir.types import TOKEN, TensorType, Type
from wend.ops.build import Build
from wend.trace.arrays.tracer import Tracer
from wend.trace.traced import Traced


@dataclass(frozen=True, slots=True)
class Frame:
    """What the regions of the node are given besides arguments: the world, and what is captured."""

    has_world: bool
    bindings: tuple[Any, ...]


class RuleBody:
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
        places = {key_of(binding): k for k, binding in enumerate(bindings)}
        for value, binding in zip(self.traced.graph.captures, self.traced.bindings, strict=True):
            k = places.get(key_of(binding))
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
    body = RuleBody(traced, frame)
    body.take(count)
    body.world()
    body.captured()
    results, world = body.run()
    return body.b.finish([*results, *world])


def key_of(binding: Any) -> int:
    """What makes two bindings one."""
    return id(binding.value) if isinstance(binding, Tracer) else id(binding)


def _type(binding: Any) -> Type:
    if isinstance(binding, Tracer):
        return binding.value.type
    if isinstance(binding, Staged):  # a variable
        return binding.type
    assert isinstance(binding, np.ndarray)
    return TensorType(binding.dtype, binding.shape)


def _name(binding: Any) -> str:
    return repr(binding) if isinstance(binding, Staged) else "an array of the program"
