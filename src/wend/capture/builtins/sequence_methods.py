"""`count` and `index` of Python lists and tuples that hold traced values, or look for one."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

from wend.capture.stage.truth import truth
from wend.eager.dispatch import Staged
from wend.numpy import elementwise as ew
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.recording import is_traced_now
from wend.trace.state.raised_errors import raise_in_run
from wend.trace.state.templates import Text


def sequence_method(method: Any) -> Callable[..., Any] | None:
    """Return the replacement of a method that compares the items of a sequence, or None."""
    if not isinstance(method, types.BuiltinMethodType) or method.__name__ not in _METHODS:
        return None
    items = method.__self__
    if type(items) not in (list, tuple) or not is_traced_now():
        return None
    staged = _METHODS[method.__name__]

    def run(item: Any, /, *bounds: Any) -> Any:
        is_staged = isinstance(item, Staged) or any(isinstance(x, Staged) for x in items)
        return staged(items, item, *bounds) if is_staged else method(item, *bounds)

    return run


def _count(items: Sequence[Any], item: Any) -> Any:
    """Return `items.count(item)`."""
    total: Any = 0
    for element in items:
        total = total + ew.where(_matches(element, item), 1, 0)
    return _as_number(total)


def _index(items: Sequence[Any], item: Any, *bounds: Any) -> Any:
    """Return `items.index(item, start, stop)`."""
    positions = range(len(items))[slice(*bounds)] if bounds else range(len(items))
    result, is_absent = len(items), True
    for position in reversed(positions):
        is_match = _matches(items[position], item)
        if is_match is True:
            result, is_absent = position, False
        elif is_match is not False:
            result = ew.where(is_match, position, result)
            is_absent = ew.logical_and(ew.logical_not(is_match), is_absent)
    if is_absent is True:
        return items.index(item, *bounds) if not isinstance(item, Staged) else _absent(items, item)
    if is_absent is not False:
        raise_in_run(ValueError(_absence(items, item)), is_absent)
    return _as_number(result)


def _matches(element: Any, item: Any) -> Any:
    """Return whether an item of a sequence is or equals another value."""
    if element is item:
        return True
    is_match = element == item
    return truth(is_match) if isinstance(is_match, Staged) else bool(is_match)


def _as_number(x: Any) -> Any:
    return x.as_weak() if isinstance(x, Tracer) else x


def _absence(items: Sequence[Any], item: Any) -> str:
    """Return the text of Python's error."""
    try:
        type(items)().index(None)  # type: ignore[arg-type]
    except ValueError as error:
        text = str(error)
    return Text.of([(item, "r", ""), text.removeprefix("None")]) if text.startswith("None") else text


def _absent(items: Sequence[Any], item: Any) -> Any:
    raise ValueError(_absence(items, item))


_METHODS = {"count": _count, "index": _index}
