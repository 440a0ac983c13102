"""Texts, large integers, sets and exceptions in results: part of the structure of every run."""

from __future__ import annotations

import copy
from typing import Any

from wend.base import trees
from wend.base.marked_text import has_marks


class ReturnedConstant:
    """A constant in a result; rebuilding the result gives it, or a copy if it may change."""

    def __init__(self, value: Any) -> None:
        self.value = value


def returned_constant(x: Any) -> Any:
    """Return a node without leaves for a text, set or exception, or for a large integer.

    A text that shows traced values stays, and is refused: only the run could write it. So does what
    holds a traced value.
    """
    if type(x) is int:
        return x if -(2**63) <= x < 2**63 else ReturnedConstant(x)
    if type(x) in (set, frozenset):
        return ReturnedConstant(x) if all(map(_is_known, x)) else x
    if isinstance(x, Exception):
        parts = (*x.args, *vars(x).values())
        is_known = type(x).__module__ == "builtins" and all(map(_is_known, parts))
        return ReturnedConstant(x.with_traceback(None)) if is_known else x
    return ReturnedConstant(x) if type(x) in (str, bytes) and _is_known(x) else x


def _is_known(x: Any) -> bool:
    """Return whether all runs of a trace hold the same value, which nobody can change."""
    if type(x) in (tuple, frozenset):
        return all(map(_is_known, x))
    return type(x) in _CONSTANTS and not (isinstance(x, str) and has_marks(x))


_CONSTANTS = (str, bytes, bool, int, float, complex, type(None))


def _rebuilt(value: Any, children: Any) -> Any:
    return copy.copy(value) if isinstance(value, (set, Exception)) else value


trees.register_node(ReturnedConstant, lambda node: ((), node.value), _rebuilt)
