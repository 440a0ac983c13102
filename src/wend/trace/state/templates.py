"""Format strings with fields for values only known at run time, for `print` and `assert_`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from string import Formatter
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import TypeMismatchError, explain
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged, read
from wend.eager.promotion import is_weak
from wend.trace.arrays.shown_text import ShownText
from wend.trace.recording.arguments import is_array_leaf
from wend.trace.recording.recording import current
from wend.trace.state.variable import Variable

_FORMATTER = Formatter()
_FIELD_ROOT = re.compile(r"[^.\[]*")
_CONVERSIONS: dict[str, Callable[[Any], str]] = {"r": repr, "s": str, "a": ascii}


class Text(ShownText):
    """An f-string with traced values: a string that `print` and `assert` write at run time.

    Attributes:
        template: its format string and values.
    """

    __slots__ = ("template",)
    template: Template

    @staticmethod
    def of(parts: Iterable[str | tuple[Any, str | None, str]]) -> str:
        """Return the text of literals and (value, conversion, spec); a `Text` if one is traced.

        Values that are known now are formatted as Python does.
        """
        recording = current()
        is_traced = recording is not None and not recording.runs_now()
        template = Template()
        for part in parts:
            if isinstance(part, str):
                template.literal(part)
                continue
            value, conversion, spec = part
            if is_traced and holds_traced(value):
                template.value(value, conversion, spec)
            else:
                converted = value if conversion is None else _CONVERSIONS[conversion](value)
                template.literal(format(converted, spec))
        return template.text() if template.arrays else str(template).format()

    @staticmethod
    def joined(separator: str, texts: Sequence[str]) -> str:
        """Return the texts joined by a separator; a `Text` if one of them is."""
        parts = [part for text in texts for part in (separator, text)][1:]
        template = Template()
        for part in parts:
            template.value(part)
        return template.text() if template.arrays else str(template).format()

    def __add__(self, other: str) -> str:
        return Text.joined("", [self, other])

    def __radd__(self, other: str) -> str:
        return Text.joined("", [other, self])


class Template:
    """A format string, and the arrays for its fields in order.

    Attributes:
        arrays: traced arrays, and NumPy arrays, which may change before the text is written.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.arrays: list[Any] = []

    @staticmethod
    def of(format: str, values: Sequence[Any] = (), fields: Mapping[str, Any] | None = None) -> Any:
        """Return the template of a format string or a `Text`.

        Raises:
            TypeMismatchError: it has a field without a value, or a spec that its value does not
                support.
        """
        new = Template()
        if isinstance(format, Text):
            new.value(format)
        else:
            new._format(format, values, fields or {})
        return new

    def __str__(self) -> str:
        return "".join(self._parts)

    def text(self) -> Text:
        """Return a string that is written at run time; until then it names the traced values."""
        text = Text(str(self).format(*map(_DisplayName, self.arrays)))
        text.template = self
        return text

    def literal(self, text: str) -> None:
        """Append literal text."""
        self._parts.append(text.replace("{", "{{").replace("}", "}}"))

    def value(self, x: Any, conversion: str | None = None, spec: str = "") -> None:
        """Append a value: a field if it is only known at run time, otherwise its text."""
        if isinstance(x, Text):
            self._parts += x.template._parts
            self.arrays += x.template.arrays
        elif _is_array(x) and conversion in ("r", "a") and not spec:
            self._repr_field(x)
        elif _is_array(x):
            if conversion in ("r", "a") and is_weak(x):
                conversion = None  # the repr of a Python number is its str
            _check_spec(x, conversion, spec)
            self._field(x, ("!" + conversion if conversion else "") + (":" + spec if spec else ""))
        elif holds_traced(x):
            self._container(x)
        else:
            self.literal(format(_CONVERSIONS[conversion](x) if conversion else x, spec))

    def _field(self, array: Any, suffix: str = "") -> None:
        self._parts.append(f"{{{suffix}}}")
        self.arrays.append(read(array))

    def _container(self, x: Any) -> None:
        """Append what Python would write for a container, with a field for each array in it."""
        leaves, tree = trees.flatten(x)
        shown = [_Marker(k) if _is_array(leaf) else leaf for k, leaf in enumerate(leaves)]
        # By number: a dict is printed in insertion order, but flattened in key order.
        first, *parts = _Marker.pattern.split(str(trees.unflatten(tree, shown)))
        self.literal(first)
        for number, text in zip(parts[::2], parts[1::2], strict=True):
            self._repr_field(leaves[int(number)])
            self.literal(text)

    def _repr_field(self, x: Any) -> None:
        """Append the `repr` of an array, with a field for its elements."""
        if isinstance(x, Variable):
            start, end = x.repr_parts
            self.literal(start)
            self._field(x)
            self.literal(end)
        else:
            self._field(x, "" if is_weak(x) else "!r")

    def _format(self, format: str, values: Sequence[Any], fields: Mapping[str, Any]) -> None:
        numbers = itertools.count()
        for literal, name, spec, conversion in _FORMATTER.parse(format):
            self.literal(literal)
            if name is None:
                continue
            is_numbered = _FIELD_ROOT.match(name)[0] == ""  # type: ignore[index]
            full = f"{next(numbers)}{name}" if is_numbered else name
            try:
                value, _ = _FORMATTER.get_field(full, values, fields)
            except (KeyError, IndexError):
                raise _missing_value_error(format, name, len(values), fields) from None
            spec = _FORMATTER.vformat(spec, values, fields) if spec and "{" in spec else spec or ""
            self.value(value, conversion, spec)


def _is_array(x: Any) -> bool:
    return isinstance(x, (Staged, np.ndarray)) and is_array_leaf(x)


def holds_traced(x: Any) -> bool:
    """Return whether a value, or something in it, is only known at run time."""
    if isinstance(x, (Staged, Text)):
        return True
    return any(isinstance(leaf, (Staged, Text)) for leaf in trees.flatten(x)[0])


def _check_spec(x: Any, conversion: str | None, spec: str) -> None:
    """Refuse a spec that does not fit the dtype, at the line that wrote it."""
    dtype = getattr(x, "dtype", None)
    if not spec or conversion or dtype is None:
        return
    try:
        format(np.zeros((), dtype)[()], spec)
    except (ValueError, TypeError) as error:
        raise TypeMismatchError(
            explain(
                f"the format {{:{spec}}}{at(user_source())} cannot format values of dtype {dtype}.",
                str(error),
                cure="use a format of that kind, or cast the value.",
            )
        ) from None


def _missing_value_error(
    format: str, name: str, count: int, fields: Mapping[str, Any]
) -> TypeMismatchError:
    available = [f"{count} by position", *fields]
    return TypeMismatchError(
        explain(
            f"the format {format!r}{at(user_source())} has a field {{{name}}}, for which no value "
            "is given.",
            f"given: {', '.join(available)}",
            cure="pass the value; write literal braces twice: {{ }}.",
        )
    )


class _DisplayName:
    """A traced value in a text that is shown before it is written."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __repr__(self) -> str:
        return str(self.array)

    def __format__(self, spec: str) -> str:
        return str(self.array)


class _Marker:
    """Marks the position of an array in the text of a container."""

    pattern = re.compile("\0([0-9]+)\0")

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"\0{self.number}\0"
