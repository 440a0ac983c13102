"""The regions of a node with a custom rule: traced functions behind the params of the node."""

from __future__ import annotations

from typing import Any

import numpy as np

from wend.base.lazy.dataclass import dataclass
from wend.base.marked_text import without_marks
from wend.eager.dispatch import Staged
from wend.ir.graph import Graph, Value
from wend.ir.rewrite import copy_nodes
from wend.ir.types import TOKEN, TensorType, Type
from wend.ops.build import Build
from wend.trace.arrays.tracer import Tracer
from wend.trace.traced import Traced


@dataclass(frozen=True, slots=True)
class RuleContext:
    """The inputs of the node's regions besides arguments.

    Attributes:
        has_world: whether they include the token of effects.
        bindings: the captured values.
    """

    has_world: bool
    bindings: tuple[Any, ...]


class RuleBody:
    """A region under construction: a traced function behind the params that the node passes."""

    def __init__(self, traced: Traced, context: RuleContext) -> None:
        self.traced, self.context = traced, context
        self.b = Build(traced.graph.name)
        self.mapping: dict[Value, Value] = {}
        self._function_params = iter(traced.graph.params)
        self._token: list[Value] = []

    def add_params(self, count: int) -> list[Value]:
        """Add params for the next arguments of the function."""
        params = []
        for _ in range(count):
            param = next(self._function_params)
            params.append(self.b.param(param.type, param.name))
            self.mapping[param] = params[-1]
        return params

    def deferred_params(self, count: int) -> list[Value]:
        """Create such params without adding them, to be added later."""
        params = self.add_params(count)
        del self.b.params[len(self.b.params) - count :]
        return params

    def add_token(self) -> list[Value]:
        """Add a param for the token of effects, if the node has one."""
        if self.context.has_world:
            self._token = [self.b.param(TOKEN)]
        return self._token

    def add_captures(self) -> list[Value]:
        """Add params for all captures of the node."""
        bindings = self.context.bindings
        params = [
            self.b.param(_binding_type(binding), _binding_name(binding)) for binding in bindings
        ]
        indices = {binding_key(binding): index for index, binding in enumerate(bindings)}
        for value, binding in zip(self.traced.graph.captures, self.traced.bindings, strict=True):
            index = indices.get(binding_key(binding))
            # An array that the rule creates anew each time is a constant.
            self.mapping[value] = self.b.constant(binding) if index is None else params[index]
        return params

    def inline(self, *, has_own_token: bool = False) -> tuple[list[Value], list[Value]]:
        """Copy the function's nodes; return its results, and the token if there is one.

        `has_own_token`: its checks are ordered among themselves, not by the node's token.
        """
        graph, count = self.traced.graph, len(self.traced.result_types)
        if has_own_token and self.traced.has_world:
            self._token = [self.b.token()]
        if self.traced.has_world:
            (self.mapping[next(self._function_params)],) = self._token
        self.b.nodes += copy_nodes(graph.nodes, self.mapping)
        results = [self.mapping[value] for value in graph.results]
        return results[:count], results[count:] if self.traced.has_world else self._token


def callee_region(traced: Traced, context: RuleContext, count: int) -> Graph:
    """Return a region of a function of the call's arguments; the token is its last result."""
    body = RuleBody(traced, context)
    body.add_params(count)
    body.add_token()
    body.add_captures()
    results, token = body.inline()
    return body.b.finish([*results, *token])


def binding_key(binding: Any) -> int:
    """Return a key that is equal for the same binding."""
    return id(binding.value) if isinstance(binding, Tracer) else id(binding)


def _binding_type(binding: Any) -> Type:
    if isinstance(binding, Tracer):
        return binding.value.type
    if isinstance(binding, Staged):  # a variable
        return binding.type
    assert isinstance(binding, np.ndarray)
    return TensorType(binding.dtype, binding.shape)


def _binding_name(binding: Any) -> str:
    return (
        without_marks(repr(binding)) if isinstance(binding, Staged) else "an array of the program"
    )
