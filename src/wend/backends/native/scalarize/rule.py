"""Rules that expand an operation on small arrays into operations on their elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from wend.backends.native.scalarize.scope import ScalarElements, ScalarScope
from wend.base.lazy.dataclass import dataclass
from wend.ir.graph import Node

# Emits the expansion of a node and returns the elements of each result.
Expand: TypeAlias = Callable[[ScalarScope, Node], Sequence[ScalarElements]]


@dataclass(frozen=True, slots=True)
class ExpansionRule:
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
    cost: Callable[[Node], int] = lambda node: 0
    reads: int = 0
