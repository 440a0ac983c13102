"""The node of a result that is None in some runs, where no trace for each of the two may be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wend.base import trees
from wend.eager.dispatch import Staged

# Makes of it a value of a trace; set by `capture`
optional_value: Callable[[Any, Any], Any] = lambda value, is_none: value  # noqa: E731


class ReturnedOptional:
    """A number or an array, and a flag that tells whether the result is None instead."""

    def __init__(self, value: Any, is_none: Any) -> None:
        self.value, self.is_none = value, is_none


def _rebuilt(_: None, parts: Any) -> Any:
    value, is_none = parts
    if isinstance(is_none, Staged):
        return optional_value(value, is_none)
    if type(is_none) is int:
        return ReturnedOptional(value, is_none)  # a part of a structure
    return None if is_none else value


trees.register_node(ReturnedOptional, lambda x: ((x.value, x.is_none), None), _rebuilt)
