"""Methods that compare the items of lists, tuples and deques, as `index`; methods of classes."""

from __future__ import annotations

import builtins
import operator
import types
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from wend.base.errors import ConcreteValueError, explain
from wend.base.source import at, user_source
from wend.capture.guards.namespaces import Namespace
from wend.capture.stage import raises
from wend.capture.stage.item_comparisons import are_equal, asks_users, holds_staged
from wend.capture.stage.operators import choose_value, index_of
from wend.capture.state import operands
from wend.eager.dispatch import Staged
from wend.numpy import elementwise as ew
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.tensor_list import TensorList
from wend.trace.recording.recording import is_traced_now
from wend.trace.state.raised_errors import raise_in_run
from wend.trace.state.templates import Text


def sequence_method(method: Any) -> Callable[..., Any] | None:
    """Return the replacement of a method that compares the items of a sequence, or None."""
    if not isinstance(method, types.BuiltinMethodType) or method.__name__ not in _METHODS:
        return None
    owner: Any = method.__self__
    if not isinstance(owner, _KINDS) or not is_traced_now():
        return None
    staged: Callable[..., Any] = _METHODS[method.__name__]

    def run(item: Any, /, *bounds: Any) -> Any:
        items = _own_items(owner)
        is_staged = holds_staged((item, items)) or asks_users([item, *items])
        return staged(owner, item, *bounds) if is_staged else method(item, *bounds)

    return run


def unbound_method(fun: Any) -> Callable[..., Any] | None:
    """Return the replacement of a method as a container's class holds it, like `list.append`."""
    if not isinstance(fun, types.MethodDescriptorType) or fun.__objclass__ not in (*_KINDS, dict):
        return None

    def run(*args: Any, **kwargs: Any) -> Any:
        owner = args[0] if args else None
        if isinstance(owner, (TensorList, Namespace)):  # stand for lists, and for dicts
            return operands.call(getattr(owner, fun.__name__))(*args[1:], **kwargs)
        if isinstance(owner, fun.__objclass__):
            return operands.call(fun.__get__(owner))(*args[1:], **kwargs)
        return fun(*args, **kwargs)

    return run


_KINDS = list, tuple, deque


def _kind_of(owner: Any) -> Any:
    return next(kind for kind in _KINDS if isinstance(owner, kind))


def _own_items(owner: Any) -> list[Any]:
    """Return the items of a sequence, past what a subclass defines."""
    return [*_kind_of(owner).__iter__(owner)]


def _count(owner: Sequence[Any], item: Any) -> Any:
    """Return `owner.count(item)`."""
    total: Any = 0
    for element in _own_items(owner):
        total = total + ew.where(are_equal(element, item), 1, 0)
    return _as_number(total)


def _index(owner: Sequence[Any], item: Any, start: Any = 0, stop: Any = None) -> Any:
    """Return `owner.index(item, start, stop)`."""
    items = _own_items(owner)
    position, is_absent = _position(items, item, range(len(items))[start:stop])
    if is_absent is not False:
        _raise_absence(is_absent, _absence(owner, "index", item))
    return _as_number(position)


def _remove(owner: Any, item: Any) -> None:
    """Run `owner.remove(item)`."""
    items = _own_items(owner)
    position, is_absent = _position(items, item, range(len(items)))
    if is_absent is not False:
        _raise_absence(is_absent, _absence(owner, "remove", item))
    kind = _kind_of(owner)
    if not isinstance(position, Staged):
        kind.__delitem__(owner, position)
        return
    items = [
        choose_value(ew.less_equal(position, k), lambda k=k: items[k + 1], lambda k=k: items[k])  # type: ignore[misc]
        for k in range(len(items) - 1)
    ]
    kind.clear(owner)
    kind.extend(owner, items)


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


def _absence(owner: Sequence[Any], name: str, item: Any) -> str:
    """Return the text of Python's error."""
    try:
        getattr(_kind_of(owner)(), name)(None)
    except ValueError as error:
        text = str(error)
    return (
        Text.of([(item, "r", ""), text.removeprefix("None")]) if text.startswith("None") else text
    )


def _index_of(items: Any, item: Any, /) -> Any:
    """Return `operator.indexOf(items, item)`."""
    if not isinstance(items, _KINDS):
        return operator.indexOf(items, item)
    position, is_absent = _position([*items], item, range(len(items)))
    if is_absent is not False:
        _raise_absence(is_absent, "sequence.index(x): x not in sequence")
    return _as_number(position)


def _count_of(items: Any, item: Any, /) -> Any:
    """Return `operator.countOf(items, item)`."""
    return _count([*items], item)


class _Sentinel:
    """The value that ends `iter(fun, value)`, which compares it in C."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        is_end = are_equal(self._value, other)
        if isinstance(is_end, Staged):
            raise ConcreteValueError(
                explain(
                    f"iter(function, sentinel){at(user_source())} ends at a value that only the "
                    "run knows.",
                    cure="write the loop: while (item := function()) != sentinel.",
                )
            )
        return bool(is_end)

    __hash__ = None  # type: ignore[assignment]


def _iter(*args: Any) -> Any:
    """Return `iter(…)`."""
    if len(args) != 2 or not callable(args[0]):
        return builtins.iter(*args)
    function, sentinel = args
    return builtins.iter(operands.call(function), _Sentinel(sentinel))


REPLACED: dict[Any, Callable[..., Any]] = {
    operator.indexOf: _index_of,
    operator.countOf: _count_of,
    builtins.iter: _iter,
}
_METHODS = {"count": _count, "index": _index, "remove": _remove}
