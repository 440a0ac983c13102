"""String functions of traced values: their results can be printed and used by `assert`."""

from __future__ import annotations

import builtins
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from wend.base.errors import ConcreteValueError, explain
from wend.base.instances import stored_attribute
from wend.base.marked_text import has_marks
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged
from wend.trace.arrays.shown_text import ShownText
from wend.trace.recording.recording import is_traced_now
from wend.trace.state.templates import Template, Text, has_own_texts, holds_traced

_PERCENT = re.compile(
    r"%(?:\((?P<key>[^)]*)\))?(?P<flags>[-+ #0]*)(?P<width>\*|\d*)(?P<precision>\.(?:\*|\d*))?"
    r"[hlL]?(?P<kind>.)",
    re.DOTALL,
)


def _text_of_value(original: Callable[..., str], conversion: str | None) -> Callable[..., str]:
    """Wrap a builtin function that returns the text of a value."""

    def run(*args: Any, **kwargs: Any) -> str:
        count = 2 if original is builtins.format else 1
        if kwargs or not 0 < len(args) <= count or not is_traced_now():
            return original(*args, **kwargs)
        return Text.of([(args[0], conversion, args[1] if len(args) > 1 else "")])

    return run


def _text_of_array(original: Callable[..., str], same: Callable[..., str]) -> Callable[..., str]:
    """Wrap a function that returns the text of an array: without options, that of a builtin."""
    text_of = REPLACED[same]

    def run(*args: Any, **kwargs: Any) -> str:
        is_plain = len(args) == 1 and not kwargs and isinstance(args[0], Staged)
        return (text_of if is_plain and args[0].type.shape != () else original)(*args, **kwargs)

    return run


def text_method(method: Any) -> Callable[..., str] | None:
    """Return the replacement of a string method that formats its arguments, or None."""
    text = stored_attribute(method, "__self__")
    if not isinstance(text, str) or not is_traced_now():
        return None
    if method.__name__ == "format" and type(text) is str:
        return lambda *args, **kwargs: Template.of(text, args, kwargs).text()
    if method.__name__ == "format_map" and type(text) is str:
        return lambda fields: Template.of(text, (), fields).text()
    if method.__name__ == "__mod__" and type(text) is str:
        return lambda values: remainder(text, values)
    if method.__name__ == "join" and type(text) is str:
        return lambda items: Text.joined(text, [*items])
    return None


def remainder(left: Any, right: Any) -> Any:
    """Return `left % right`, which may format values into a string."""
    if not isinstance(left, str) or not is_traced_now():
        return left % right
    if isinstance(left, ShownText):
        raise left.looked_at()
    values = iter(right if type(right) is tuple else (right,))
    if not holds_traced(right) and not has_own_texts(right):
        text = left % right
        if not has_marks(text):
            return text
    template, end = Template(), 0
    for match in _PERCENT.finditer(left):
        template.literal(left[end : match.start()])
        end = match.end()
        _append_field(template, match, right, values)
    template.literal(left[end:])
    if not isinstance(right, Mapping) and next(values, template) is not template:
        raise TypeError("not all arguments converted during string formatting")
    return template.text()


def _in_place_remainder(left: Any, right: Any) -> Any:
    if isinstance(left, str):
        return remainder(left, right)
    left %= right
    return left


def _append_field(
    template: Template, match: re.Match[str], right: Any, values: Iterator[Any]
) -> None:
    """Append what one `%` conversion writes."""
    kind, key = match["kind"], match["key"]
    if kind == "%":
        template.literal("%")
        return
    if "*" in match[0]:
        raise _percent_error()
    value = next(values, _NONE) if key is None else right[key]
    if value is _NONE:
        raise TypeError("not enough arguments for format string")
    precision = match["precision"] or ""
    if not isinstance(value, Staged):
        if kind not in "sra":
            template.shown(match[0].replace(f"({key})", "", 1) % (value,))
            return
        text = Text.of([(value, kind, "")])
        if isinstance(text, ShownText) and (match["width"] or precision):
            raise text.looked_at()
        template.shown(text if isinstance(text, ShownText) else _with_width(match, text))
        return
    align = "<" if "-" in match["flags"] else ">"
    if kind in "sra" and not precision:
        spec = f"{align}{match['width']}" if match["width"] else ""
        template.value(value, kind, spec)
        return
    dtypes = "fiub" if kind in "eEfFgG" else "iub" if kind in "dixXo" else ""
    if value.type.shape != () or value.type.dtype.kind not in dtypes:
        raise _percent_error()
    flags = "".join(flag for flag in "+ #0" if flag in match["flags"])
    if "+" in flags:
        flags = flags.replace(" ", "")
    if align == "<":
        flags = "<" + flags.replace("0", "")
    number = value if kind in "eEfFgG" else operator.add(value, 0)  # of a bool, its integer
    spec = f"{flags}{match['width']}{precision}{'d' if kind == 'i' else kind}"
    template.value(number, None, spec)


_NONE = object()


def _with_width(match: re.Match[str], text: str) -> str:
    """Return a text with the width and the precision of a `%` conversion."""
    return f"%{match['flags']}{match['width']}{match['precision'] or ''}s" % (text,)


def _percent_error() -> ConcreteValueError:
    return ConcreteValueError(
        explain(
            f"`%`{at(user_source())} formats a number that is known only when the function runs.",
            cure='write it as an f-string: f"{x:.2f}", and print that.',
        )
    )


REPLACED: dict[Callable[..., Any], Callable[..., Any]] = {
    builtins.str: _text_of_value(builtins.str, "s"),
    builtins.format: _text_of_value(builtins.format, None),
    builtins.repr: _text_of_value(builtins.repr, "r"),
    builtins.ascii: _text_of_value(builtins.ascii, "a"),
    operator.mod: remainder,
    operator.imod: _in_place_remainder,
}
REPLACED |= {
    np.array2string: _text_of_array(np.array2string, builtins.str),
    np.array_str: _text_of_array(np.array_str, builtins.str),
    np.array_repr: _text_of_array(np.array_repr, builtins.repr),
}
