"""What gives texts, where it is given traced values: a text that can only be shown."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from wend.base import trees
from wend.eager.dispatch import Staged
from wend.trace.recording import current
from wend.trace.shown_text import ShownText
from wend.trace.tensor_list import TensorList


def shows_traced(*values: Any) -> bool:
    """Whether the text of some values would name one that only the run knows."""
    recording = current()
    if recording is None or recording.runs_now():
        return False
    kinds = (Staged, TensorList, ShownText)
    return any(isinstance(leaf, kinds) for value in values for leaf in trees.flatten(value)[0])


def _marked(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives a text of its arguments."""

    def run(*args: Any, **kwargs: Any) -> Any:
        found = function(*map(_plain, args), **{key: _plain(x) for key, x in kwargs.items()})
        return ShownText(found) if shows_traced(args, kwargs) else found

    return run


def _plain(x: Any) -> Any:
    return str(x) if isinstance(x, ShownText) else x


def of_method(method: Any) -> Callable[..., Any] | None:
    """What stands for a method of a text that gives a text of its arguments."""
    if type(getattr(method, "__self__", None)) is not str:
        return None
    if method.__name__ in ("format", "format_map"):
        return _marked(method)
    if method.__name__ == "join":
        return lambda items: _joined(method, [*items])
    return None


def _joined(method: Callable[[list[str]], str], items: list[str]) -> str:
    found = method(items)
    return ShownText(found) if any(isinstance(item, ShownText) for item in items) else found


def remainder(left: Any, right: Any) -> Any:
    """`left % right`, which may be the text of values."""
    if type(left) is not str or not shows_traced(right):
        return left % right
    values = tuple(map(_plain, right)) if type(right) is tuple else _plain(right)
    return ShownText(left % values)


REPLACED: dict[Callable[..., Any], Callable[..., Any]] = {
    function: _marked(function)
    for function in (builtins.str, builtins.repr, builtins.ascii, builtins.format)
}
