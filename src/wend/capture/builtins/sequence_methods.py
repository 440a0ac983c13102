"""`count`, `index`, `remove` of lists and tuples that hold traced values, or look for one."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

from wend.capture.stage import raises
from wend.capture.stage.item_comparisons import are_equal, asks_users, holds_staged
from wend.capture.stage.operators import choose_value, index_of
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
    items: Any = method.__self__
    if type(items) not in (list, tuple) or not is_traced_now():
        return None
    staged: Callable[..., Any] = _METHODS[method.__name__]

    def run(item: Any, /, *bounds: Any) -> Any:
        is_staged = holds_staged((item, items)) or asks_users([item, *items])
        return staged(items, item, *bounds) if is_staged else method(item, *bounds)

    return run


def _count(items: Sequence[Any], item: Any) -> Any:
    """Return `items.count(item)`."""
    total: Any = 0
    for element in items:
        total = total + ew.where(are_equal(element, item), 1, 0)
    return _as_number(total)


def _index(items: Sequence[Any], item: Any, start: Any = 0, stop: Any = None) -> Any:
    """Return `items.index(item, start, stop)`."""
    position, is_absent = _position(items, item, range(len(items))[start:stop])
    if is_absent is not False:
        _raise_absence(is_absent, _absence(items, item))
    return _as_number(position)


def _remove(items: list[Any], item: Any) -> None:
    """Run `items.remove(item)`."""
    position, is_absent = _position(items, item, range(len(items)))
    if is_absent is not False:
        _raise_absence(is_absent, "list.remove(x): x not in list")
    if not isinstance(position, Staged):
        del items[position]
        return
    items[:] = [
        choose_value(ew.less_equal(position, k), lambda k=k: items[k + 1], lambda k=k: items[k])  # type: ignore[misc]
        for k in range(len(items) - 1)
    ]


def _position(items: Sequence[Any], item: Any, positions: range) -> tuple[Any, Any]:
    """Return the first of some positions whose item is equal, and whether there is none."""
    if asks_users([item, *items]):
        position = index_of(item, items, positions.start, positions.stop)
        return position, position < 0
    result: Any = len(items)
    is_absent: Any = True
    for position in reversed(positions):
        is_match = are_equal(items[position], item)
        if is_match is True:
            result, is_absent = position, False
        elif is_match is not False:
            result = ew.where(is_match, position, result)
            is_absent = ew.logical_and(ew.logical_not(is_match), is_absent)
    return result, is_absent


def _raise_absence(is_absent: Any, text: str) -> None:
    """Raise Python's error where no item is equal."""
    if is_absent is True:
        raise ValueError(text)
    if not raises.divert(is_absent, ValueError, [text]):
        raise_in_run(ValueError(text), is_absent)


def _as_number(x: Any) -> Any:
    return x.as_weak() if isinstance(x, Tracer) else x


def _absence(items: Sequence[Any], item: Any) -> str:
    """Return the text of Python's error."""
    try:
        type(items)().index(None)
    except ValueError as error:
        text = str(error)
    return (
        Text.of([(item, "r", ""), text.removeprefix("None")]) if text.startswith("None") else text
    )


_METHODS = {"count": _count, "index": _index, "remove": _remove}
