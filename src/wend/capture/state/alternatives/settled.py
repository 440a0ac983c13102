"""Values that outlive a call: each is None or a number, as the trace is for."""

from __future__ import annotations

import operator
from collections import deque
from typing import Any

from wend.base.instances import is_replaceable
from wend.base.keys import attributes_of
from wend.capture.state.alternatives.optional_value import OptionalValue, is_in_use


def settle(*values: Any) -> list[Any]:
    """Return values in which each part is None or a number, as this trace is for.

    Lists, dicts and objects change in place.

    Raises:
        ConcreteValueError: only the run knows.
    """
    if not is_in_use.get():
        return [*values]
    seen: dict[int, tuple[Any, Any]] = {}
    return [_settled(value, seen) for value in values]


def _settled(part: Any, seen: dict[int, tuple[Any, Any]]) -> Any:
    """Return a part as it is settled; `seen` has, by their numbers, parts and what they became."""
    if isinstance(part, OptionalValue):
        return part.decided("None or a number outlives the call")
    if id(part) in seen:
        return seen[id(part)][1]
    seen[id(part)] = part, part
    if isinstance(part, tuple):
        items = [_settled(item, seen) for item in part]
        if not all(map(operator.is_, items, part)):
            new = part._make(items) if hasattr(part, "_make") else tuple(items)
            seen[id(part)] = part, new
        return seen[id(part)][1]
    places: dict[Any, Any] = {}
    if isinstance(part, (list, deque)):
        places = dict(enumerate(part))
    elif isinstance(part, dict):
        places = part
    elif is_replaceable(part):
        places = dict(attributes_of(part))
    for key, value in [*places.items()]:
        settled = _settled(value, seen)
        if settled is value:
            continue
        if is_replaceable(part):
            object.__setattr__(part, key, settled)
        else:
            part[key] = settled
    return part
