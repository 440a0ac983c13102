"""What it takes to do an operation on elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from wend.backends.native.scalarize.scope import Elements, Scope
from wend.ir.graph import Node

# Writes what stands for a node, and gives the elements of each result.
Write: TypeAlias = Callable[[Scope, Node], Sequence[Elements]]


def _nothing(node: Node) -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Rule:
    """How an operation is done on the elements of small arrays.

    Attributes:
        write: does it.
        fits: whether it can be done, where operands and results are small arrays or scalars.
        cost: how many scalar operations it takes.
        reads: how many of the operands, from the first on, may be large: single elements of
            them are read.
    """

    write: Write
    fits: Callable[[Node], bool] = lambda node: True
    cost: Callable[[Node], int] = _nothing
    reads: int = 0
