"""Effects in traced functions: they happen when the function runs, in program order (D16)."""

from __future__ import annotations

import builtins
from typing import Any

from wend.base.errors import AssertionFailed
from wend.base.source import at, user_source
from wend.ops import effects as ops
from wend.trace.arguments import is_array_leaf
from wend.trace.checks import check_predicate
from wend.trace.recording import current


def print(*values: Any, sep: str = " ", format: str | None = None) -> None:
    """Print values when the function runs, as often as it runs.

    Args:
        *values: arrays, plain or traced; other things are printed as they were when traced.
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
    words, arrays = [], []
    for value in values:
        if is_array_leaf(value):
            words.append("{}")
            arrays.append(value)
        else:
            words.append(str(value).replace("{", "{{").replace("}", "}}"))
    return sep.join(words), arrays
