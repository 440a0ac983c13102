"""What fixpoints over a loop found, kept while its node lives.

The fixpoint of an outer loop goes through its body more than once, and so asks about each inner
loop more than once: without a memo, building a gradient takes time exponential in the depth.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from wend.ir.graph import Node

T = TypeVar("T")


class Memo(Generic[T]):
    """Answers about nodes; an answer may not refer to its node, or neither would ever go."""

    def __init__(self) -> None:
        self._found: WeakKeyDictionary[Node, dict[Hashable, T]] = WeakKeyDictionary()

    def __call__(self, node: Node, question: Hashable, find: Callable[[], T]) -> T:
        """The answer to a question about a node, found when first asked."""
        answers = self._found.setdefault(node, {})
        if question not in answers:
            answers[question] = find()
        return answers[question]
