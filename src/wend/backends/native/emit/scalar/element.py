"""What an elementwise operation is to native code: how one element of its result is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from wend.backends.native.target.kinds import REGISTERS, Kind
from wend.ir.graph import Node

# (low, node, kind of the operands, operands) -> result; of `select` the kind of the choices
Write: TypeAlias = Callable[..., str]


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Element:
    """How one element is computed.

    Attributes:
        write: writes it.
        kinds: of which kinds of dtype (`"fiub"`).
        suits: whether it computes what a node does, which is of such a kind.
    """

    write: Write
    kinds: str
    suits: Callable[[Node], bool] = lambda node: True

    def takes(self, node: Node) -> bool:
        """Whether it can compute what a node does."""
        dtypes = [value.tensor.dtype for value in (*node.operands, *node.results)]
        fits = kind_of(node).dtype.kind in self.kinds and all(d in REGISTERS for d in dtypes)
        return fits and self.suits(node)


def kind_of(node: Node) -> Kind:
    """The kind of the operands; of the choices, for `select`."""
    return Kind(node.operands[-1].tensor.dtype)
