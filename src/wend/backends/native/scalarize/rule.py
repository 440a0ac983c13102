"""Rules that expand an operation on small arrays into operations on their elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from wend.backends.native.scalarize.scope import Elements, Scope
from wend.ir.graph import Node

# Emits the expansion of a node and returns the elements of each result.
Expand: TypeAlias = Callable[[Scope, Node], Sequence[Elements]]


def _zero_cost(node: Node) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Rule:
    """The expansion of an operation on small arrays into scalar operations.

    Attributes:
        expand: emits the expansion.
        fits: whether a node, whose operands and results are small arrays or scalars, can be
            expanded.
        cost: the number of scalar operations of the expansion.
        reads: how many of the leading operands may be large arrays, of which single elements are
            read.
    """

    expand: Expand
    fits: Callable[[Node], bool] = lambda node: True
    cost: Callable[[Node], int] = _zero_cost
    reads: int = 0
