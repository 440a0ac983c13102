"""What gives texts, where it is given traced values: texts that `print` and `assert` can write."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Iterable
from typing import Any

from wend.base.errors import ConcreteValueError, explain
from wend.base.source import at, user_source
from wend.trace.recording.recording import current
from wend.trace.state.templates import Template, Text, holds_traced

# What `%` says of a number as a format string does
_PERCENT = re.compile(r"%(?P<spec>[+0]*\d*(?:\.\d+)?)(?P<kind>[sreEfFgG%])")


def _is_traced(*values: Any) -> bool:
    recording = current()
    return recording is not None and not recording.runs_now() and any(map(holds_traced, values))


def _of_one(original: Callable[..., str], conversion: str | None) -> Callable[..., str]:
    """A builtin function that gives the text of a value."""

    def run(*args: Any, **kwargs: Any) -> str:
        if not args or not _is_traced(args[0]):
            return original(*args, **kwargs)
        spec = args[1] if original is builtins.format and len(args) > 1 else ""
        return Text.of([(args[0], conversion, spec)])

    return run


def of_method(method: Any) -> Callable[..., str] | None:
    """What stands for a method of a text that gives a text of its arguments."""
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


def _joined(between: str, items: Iterable[str]) -> str:
    listed = [*items]
    is_text = any(isinstance(item, Text) for item in listed)
    return Text.joined(between, listed) if is_text else between.join(listed)


def remainder(left: Any, right: Any) -> Any:
    """`left % right`, which may be the text of values."""
    if not isinstance(left, str) or not _is_traced(right):
        return left % right
    values = right if type(right) is tuple else (right,)
    places = [*_PERCENT.finditer(left)]
    is_known = type(left) is str and left.count("%") == sum(p[0].count("%") for p in places)
    if not is_known or sum(place["kind"] != "%" for place in places) != len(values):
        raise ConcreteValueError(
            explain(
                f"`%`{at(user_source())} makes a text of a number that is only known when the "
                "function runs.",
                cure='write it as an f-string: f"{x:.2f}", and print that.',
            )
        )
    written = left.replace("{", "{{").replace("}", "}}")
    template: Template = Template.of(_PERCENT.sub(_place, written), values)
    return template.text()


def _place(found: re.Match[str]) -> str:
    """The place of a format string that stands for one of `%`."""
    kind, spec = found["kind"], found["spec"]
    if kind == "%":
        return "%"
    if kind in "sr":
        return f"{{!{kind}:>{spec}}}" if spec else f"{{!{kind}}}"
    return f"{{:{spec}{kind}}}"


REPLACED: dict[Callable[..., Any], Callable[..., Any]] = {
    builtins.str: _of_one(builtins.str, None),
    builtins.format: _of_one(builtins.format, None),
    builtins.repr: _of_one(builtins.repr, "r"),
    builtins.ascii: _of_one(builtins.ascii, "a"),
}
