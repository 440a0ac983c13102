"""Refuses effects in functions whose runs a backward pass would repeat or skip.

Checks are none: what runs again drops them (D36).
"""

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

# While it is set, optional effects such as progress lines are not recorded.
effects_are_refused: ContextVar[bool] = ContextVar("is_refused", default=False)


def without_effects() -> AbstractContextManager[Any]:
    """Return a context in which functions without effects are traced."""
    return scoped(effects_are_refused, True)


def _first_effect(graph: Graph) -> Node | None:
    """Return the first node with an effect other than a check, at any depth."""
    effects = (Effect.WORLD, Effect.STATE)
    return next((node for node in graph.walk() if node.op.effect in effects), None)


def refuse_effects(traced: Traced, what: str, reason: str, cure: str) -> None:
    """Refuse a traced function that has effects.

    Raises:
        NotDifferentiableError: it has an effect, or assigns to a variable, which is named.
    """
    if traced.assigned:
        problem = f"{what}: it assigns to {traced.assigned[0]!r:.60}."
        raise NotDifferentiableError(explain(problem, reason, cure=cure))
    node = _first_effect(traced.graph)
    if node is not None:
        problem = f"{node.op.name}{at(node.source)}"
        raise NotDifferentiableError(
            explain(f"{what}: it has an effect, {problem}.", reason, cure=cure)
        )
