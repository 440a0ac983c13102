"""Refuses effects where a backward pass would repeat them, or leave them out."""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from wend.base.context_values import scoped
from wend.base.errors import NotDifferentiableError, explain
from wend.base.source import at
from wend.ir.graph import Graph, Node
from wend.ir.op import Effect
from wend.trace.traced import Traced

# What would be an effect, and can be left out, is not recorded here.
is_refused: ContextVar[bool] = ContextVar("is_refused", default=False)


def without_effects() -> AbstractContextManager[Any]:
    """Record what can have no effects."""
    return scoped(is_refused, True)


def _effect_in(graph: Graph) -> Node | None:
    """The first node with an effect, at any depth."""
    return next((node for node in graph.walk() if node.op.effect is not Effect.NONE), None)


def refuse_effects(traced: Traced, what: str, why: str, cure: str) -> None:
    """Refuse a recorded function that has effects.

    Raises:
        NotDifferentiableError: it has one, or assigns to a variable; which is named.
    """
    if traced.assigned:
        found = f"{what}: it assigns to {traced.assigned[0]!r:.60}."
        raise NotDifferentiableError(explain(found, why, cure=cure))
    node = _effect_in(traced.graph)
    if node is not None:
        found = f"{node.op.name}{at(node.source)}"
        raise NotDifferentiableError(explain(f"{what}: it has an effect, {found}.", why, cure=cure))
