"""Texts with places for values that only the run knows: what `print` and `assert_` say."""

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

_PARSE = Formatter()
_ROOT = re.compile(r"[^.\[]*")
_CONVERSIONS: dict[str, Callable[[Any], str]] = {"r": repr, "s": str, "a": ascii}


class Text(ShownText):
    """An f-string with traced values: a string, that `print` and `assert` write with numbers.

    Attributes:
        template: what it says, with places for the values.
    """

    __slots__ = ("template",)
    template: Template

    @staticmethod
    def of(parts: Iterable[str | tuple[Any, str | None, str]]) -> str:
        """The string of literal parts and (value, conversion, spec); a `Text` where one is traced.

        Values that are known now are written as Python does.
        """
        here = current()
        is_traced = here is not None and not here.runs_now()
        template = Template()
        for part in parts:
            if isinstance(part, str):
                template.literal(part)
                continue
            value, conversion, spec = part
            if is_traced and holds_traced(value):
                template.value(value, conversion, spec)
            else:
                known = value if conversion is None else _CONVERSIONS[conversion](value)
                template.literal(format(known, spec))
        return template.text() if template.arrays else str(template).format()

    @staticmethod
    def joined(between: str, texts: Sequence[str]) -> str:
        """The texts with another between them; a `Text` where one is."""
        parts = [part for text in texts for part in (between, text)][1:]
        template = Template()
        for part in parts:
            template.value(part)
        return template.text() if template.arrays else str(template).format()

    def __add__(self, other: str) -> str:
        return Text.joined("", [self, other])

    def __radd__(self, other: str) -> str:
        return Text.joined("", [other, self])


class Template:
    """A format string, and the arrays for its places in order.

    Attributes:
        arrays: traced arrays, and NumPy arrays, which may change until it is written.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.arrays: list[Any] = []

    @staticmethod
    def of(format: str, values: Sequence[Any] = (), fields: Mapping[str, Any] | None = None) -> Any:
        """That of a format string; also a `Text`.

        Raises:
            TypeMismatchError: it has a place that no value is given for, or a spec that its value
                does not know.
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
        """A string that is written with numbers; until then it names the traced values."""
        text = Text(str(self).format(*map(_Named, self.arrays)))
        text.template = self
        return text

    def literal(self, text: str) -> None:
        """Add text as it is."""
        self._parts.append(text.replace("{", "{{").replace("}", "}}"))

    def value(self, x: Any, conversion: str | None = None, spec: str = "") -> None:
        """Add a value: a place for what only the run knows, else the text of it."""
        if isinstance(x, Text):
            self._parts += x.template._parts
            self.arrays += x.template.arrays
        elif _is_array(x) and conversion in ("r", "a") and not spec:
            self._represented(x)
        elif _is_array(x):
            if conversion in ("r", "a") and is_weak(x):
                conversion = None  # Python's numbers look the same
            _check_spec(x, conversion, spec)
            self._place(x, ("!" + conversion if conversion else "") + (":" + spec if spec else ""))
        elif holds_traced(x):
            self._container(x)
        else:
            self.literal(format(_CONVERSIONS[conversion](x) if conversion else x, spec))

    def _place(self, array: Any, rest: str = "") -> None:
        self._parts.append(f"{{{rest}}}")
        self.arrays.append(read(array))

    def _container(self, x: Any) -> None:
        """What Python would write of it, with a place for each array inside that may change."""
        leaves, tree = trees.flatten(x)
        shown = [_Place(k) if _is_array(leaf) else leaf for k, leaf in enumerate(leaves)]
        # By number: a dict is written in its own order, flattened in that of its keys.
        first, *rest = _Place.mark.split(str(trees.unflatten(tree, shown)))
        self.literal(first)
        for number, text in zip(rest[::2], rest[1::2], strict=True):
            self._represented(leaves[int(number)])
            self.literal(text)

    def _represented(self, x: Any) -> None:
        """What `repr` would write of an array, with a place for its numbers."""
        if isinstance(x, Variable):
            start, end = x.frame
            self.literal(start)
            self._place(x)
            self.literal(end)
        else:
            self._place(x, "" if is_weak(x) else "!r")

    def _format(self, format: str, values: Sequence[Any], fields: Mapping[str, Any]) -> None:
        numbers = itertools.count()
        for literal, name, spec, conversion in _PARSE.parse(format):
            self.literal(literal)
            if name is None:
                continue
            is_numbered = _ROOT.match(name)[0] == ""  # type: ignore[index]
            full = f"{next(numbers)}{name}" if is_numbered else name
            try:
                value, _ = _PARSE.get_field(full, values, fields)
            except (KeyError, IndexError):
                raise _nothing_for(format, name, len(values), fields) from None
            spec = _PARSE.vformat(spec, values, fields) if spec and "{" in spec else spec or ""
            self.value(value, conversion, spec)


def _is_array(x: Any) -> bool:
    return isinstance(x, (Staged, np.ndarray)) and is_array_leaf(x)


def holds_traced(x: Any) -> bool:
    """Whether a value, or something in it, is only known to the run."""
    if isinstance(x, (Staged, Text)):
        return True
    return any(isinstance(leaf, (Staged, Text)) for leaf in trees.flatten(x)[0])


def _check_spec(x: Any, conversion: str | None, spec: str) -> None:
    """A spec that a number of this dtype does not know is refused where it was written."""
    dtype = getattr(x, "dtype", None)
    if not spec or conversion or dtype is None:
        return
    try:
        format(np.zeros((), dtype)[()], spec)
    except (ValueError, TypeError) as error:
        raise TypeMismatchError(
            explain(
                f"the format {{:{spec}}}{at(user_source())} is for other values than {dtype}.",
                str(error),
                cure="use a format of that kind, or cast the value.",
            )
        ) from None


def _nothing_for(
    format: str, name: str, count: int, fields: Mapping[str, Any]
) -> TypeMismatchError:
    given = [f"{count} by position", *fields]
    return TypeMismatchError(
        explain(
            f"the format {format!r}{at(user_source())} has a place {{{name}}}, for which no value "
            "is given.",
            f"given: {', '.join(given)}",
            cure="pass the value; braces that are meant as such are written twice: {{ }}.",
        )
    )


class _Named:
    """A traced value in a text that is looked at before it is written."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __repr__(self) -> str:
        return str(self.array)

    def __format__(self, spec: str) -> str:
        return str(self.array)


class _Place:
    """Where an array among others is written."""

    mark = re.compile("\0([0-9]+)\0")

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"\0{self.number}\0"
