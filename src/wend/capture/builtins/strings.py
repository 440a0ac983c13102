"""String functions of traced values: their results can be printed and used by `assert`."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Iterable
from typing import Any

from wend.base.errors import ConcreteValueError, explain
from wend.base.source import at, user_source
from wend.trace.recording.recording import current
from wend.trace.state.templates import Template, Text, holds_traced

# The `%` conversions that have an equivalent in format strings
_PERCENT = re.compile(r"%(?P<spec>[+0]*\d*(?:\.\d+)?)(?P<kind>[sreEfFgG%])")


def _is_traced(*values: Any) -> bool:
    recording = current()
    return recording is not None and not recording.runs_now() and any(map(holds_traced, values))


def _text_of_value(original: Callable[..., str], conversion: str | None) -> Callable[..., str]:
    """Wrap a builtin function that returns the text of a value."""

    def run(*args: Any, **kwargs: Any) -> str:
        if not args or not _is_traced(args[0]):
            return original(*args, **kwargs)
        spec = args[1] if original is builtins.format and len(args) > 1 else ""
        return Text.of([(args[0], conversion, spec)])

    return run


def text_method(method: Any) -> Callable[..., str] | None:
    """Return the replacement of a string method that formats its arguments, or None."""
    text = getattr(method, "__self__", None)
    if not isinstance(text, str):
        return None
    if method.__name__ == "format" and type(text) is str:

        def formatted(*args: Any, **kwargs: Any) -> str:
            if not _is_traced(*args, *kwargs.values()):
                return text.format(*args, **kwargs)
            template: Template = Template.of(text, args, kwargs)
            return template.text()

        return formatted
    if method.__name__ == "join" and type(text) is str:
        return lambda items: _joined(text, items)
    return None


def _joined(separator: str, items: Iterable[str]) -> str:
    strings = [*items]
    is_text = any(isinstance(item, Text) for item in strings)
    return Text.joined(separator, strings) if is_text else separator.join(strings)


def remainder(left: Any, right: Any) -> Any:
    """Return `left % right`, which may format values into a string."""
    if not isinstance(left, str) or not _is_traced(right):
        return left % right
    values = right if type(right) is tuple else (right,)
    fields = [*_PERCENT.finditer(left)]
    is_supported = type(left) is str and left.count("%") == sum(p[0].count("%") for p in fields)
    if not is_supported or sum(place["kind"] != "%" for place in fields) != len(values):
        raise ConcreteValueError(
            explain(
                f"`%`{at(user_source())} formats a number that is known only when the function "
                "runs.",
                cure='write it as an f-string: f"{x:.2f}", and print that.',
            )
        )
    escaped = left.replace("{", "{{").replace("}", "}}")
    template: Template = Template.of(_PERCENT.sub(_format_field, escaped), values)
    return template.text()


def _format_field(match: re.Match[str]) -> str:
    """Return the format field that corresponds to a `%` conversion."""
    kind, spec = match["kind"], match["spec"]
    if kind == "%":
        return "%"
    if kind in "sr":
        return f"{{!{kind}:>{spec}}}" if spec else f"{{!{kind}}}"
    return f"{{:{spec}{kind}}}"


REPLACED: dict[Callable[..., Any], Callable[..., Any]] = {
    builtins.str: _text_of_value(builtins.str, None),
    builtins.format: _text_of_value(builtins.format, None),
    builtins.repr: _text_of_value(builtins.repr, "r"),
    builtins.ascii: _text_of_value(builtins.ascii, "a"),
}
