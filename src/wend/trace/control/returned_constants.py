"""Texts and large integers in results: part of the structure, which no run of a trace changes."""

from __future__ import annotations

from typing import Any

from wend.base import trees
from wend.base.marked_text import has_marks


class ReturnedConstant:
    """A constant in a result; rebuilding the result gives the constant itself."""

    def __init__(self, value: str | bytes | int) -> None:
        self.value = value


def returned_constant(x: Any) -> Any:
    """Return a node without leaves for a text, or for an integer beyond 64 bits.

    A text that shows traced values stays, and is refused: only the run could write it.
    """
    if type(x) is int:
        return x if -(2**63) <= x < 2**63 else ReturnedConstant(x)
    is_known = type(x) in (str, bytes) and not (isinstance(x, str) and has_marks(x))
    return ReturnedConstant(x) if is_known else x


trees.register_node(ReturnedConstant, lambda node: ((), node.value), lambda value, children: value)
