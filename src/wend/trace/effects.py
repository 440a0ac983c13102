"""Effects in traced functions: they happen when the function runs, in program order (D16)."""

from __future__ import annotations

import builtins
from typing import Any

from wend.base import trees
from wend.base.errors import AssertionFailed
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged
from wend.ops import effects as ops
from wend.trace.arguments import is_array_leaf
from wend.trace.checks import check_predicate
from wend.trace.recording import current


def print(*values: Any, sep: str = " ", format: str | None = None) -> None:
    """Print values when the function runs, as often as it runs.

    Args:
        *values: arrays, plain or traced, also in lists, tuples and dicts; other things are
            printed as they were when traced.
        sep: what stands between them.
        format: a format string with a `{}` for each value, in place of `sep`.

    Example:
        >>> import wend
        >>> wend.print("x is", 3.0)
        x is 3.0
    """
    template, arrays = _template(values, sep, format)
    recording = current()
    if recording is None:
        builtins.print(template.format(*arrays))  # noqa: T201 - what it is for
        return
    recording.emit(ops.print_, arrays, {"format": template})


def assert_(condition: Any, message: str = "", *values: Any) -> None:
    """Stop with an error unless the condition holds when the function runs.

    Args:
        condition: a bool scalar, plain or traced.
        message: what to say, with a `{}` for each value.
        *values: arrays for the message.

    Raises:
        AssertionFailed: the condition is false; it is an `AssertionError`.

    Example:
        >>> import wend
        >>> wend.assert_(1 < 2, "one is {}", 1)
    """
    where = at(user_source())
    check_predicate(condition, f"assert_{where}")
    message = message or f"assertion{where} failed"
    recording = current()
    if recording is None:
        if not condition:
            raise AssertionFailed(message.format(*values))
        return
    recording.emit(ops.assert_, [condition, *values], {"message": message})


def _template(values: tuple[Any, ...], sep: str, format: str | None) -> tuple[str, list[Any]]:
    """The format string, and the values that it has places for."""
    if format is not None:
        return format, [*values]
    words, arrays = [], list[Any]()
    for value in values:
        words.append("{}" if is_array_leaf(value) else _written(value, arrays))
        if is_array_leaf(value):
            arrays.append(value)
    return sep.join(words), arrays


def _written(value: Any, arrays: list[Any]) -> str:
    """What Python would print, with a `{}` for each traced array inside, which goes to `arrays`."""
    leaves, treedef = trees.flatten(value)
    if not any(isinstance(leaf, Staged) for leaf in leaves):
        return _plain(str(value))
    arrays += [leaf for leaf in leaves if isinstance(leaf, Staged)]
    shown = [_Place() if isinstance(leaf, Staged) else leaf for leaf in leaves]
    return _plain(str(trees.unflatten(treedef, shown))).replace(_Place.mark, "{}")


def _plain(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


class _Place:
    """Where the number of a traced array is printed."""

    mark = "\0"

    def __repr__(self) -> str:
        return self.mark
