"""Texts that name traced values: they can be printed or raised, but not examined.

While a function is recorded, `str(x)` of a traced `x` is not yet the text that the run will print.
It is a marked text, wherever Python code takes it: code that wend does not capture may join it with
others, and captured code then finds the values by their marks.
"""

from __future__ import annotations

import itertools
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any
from weakref import WeakValueDictionary

from wend.base.errors import ConcreteValueError, explain
from wend.base.marked_text import mark, split_marks, without_marks
from wend.base.source import at, is_wend_file, user_source


class ShownList(ABC):
    """A list whose items, and their number, are known in the run."""

    @abstractmethod
    def items_to_show(self) -> tuple[Any, str]:
        """Return the array of its items, and the spec by which a text shows it as a list."""


class ShownChoice(ABC):
    """One of several texts, which is known in the run."""

    __slots__ = ()

    @abstractmethod
    def shown(self, conversion: str | None, spec: str) -> Any:
        """Return the text as a format string shows it: a text, or a choice of texts."""

    @abstractmethod
    def field(self) -> tuple[Any, str]:
        """Return the number of the text, and the spec by which a format string shows it."""


class ShownField:
    """A value in a text, and how it is formatted.

    Attributes:
        array: the value, an array or a `ShownList`.
        conversion: "r" or "s", as in a format string; or None.
        spec: the format spec.
        text: what is shown for it before it is known.
    """

    __slots__ = ("__weakref__", "array", "conversion", "spec", "text")

    def __init__(self, array: Any, conversion: str | None, spec: str, text: str) -> None:
        self.array, self.conversion, self.spec, self.text = array, conversion, spec, text


# Scalars whose `str` has fewer digits than NumPy's default format, which casts to a Python number.
_SHORT_DTYPES = frozenset({"float16", "float32", "complex64"})


def text_conversion(array: Any) -> str | None:
    """Return the conversion of a format string with which an array is written as by `str`."""
    dtype = getattr(array, "type", array).dtype  # a Python number has no `dtype` of its own
    return "s" if dtype.name in _SHORT_DTYPES and is_scalar(array) else None


def is_scalar(array: Any) -> bool:
    """Return whether an array, traced or plain, is known to have no axes."""
    return getattr(getattr(array, "type", array), "shape", None) == ()


_fields: WeakValueDictionary[int, ShownField] = WeakValueDictionary()  # recordings hold them
_numbers = itertools.count()


class ShownText(str):
    """A text that names traced values, such as `<traced f64[], argument x>`.

    Raises:
        ConcreteValueError: it is compared, measured, taken apart or made part of another text.
    """

    __slots__ = ()

    @classmethod
    def of_field(cls, field: ShownField, recording: Any) -> ShownText:
        """Return the text of a value; the recording keeps the value as long as it lasts."""
        number = next(_numbers)
        _fields[number] = field
        recording.shown_fields.append(field)
        return cls(mark(field.text, number))

    def parts(self) -> Iterator[str | ShownField]:
        """Yield the literal texts and the values.

        Raises:
            ConcreteValueError: a value's text was changed, or its trace is over.
        """
        try:
            parts = split_marks(str.__str__(self))
        except ValueError:
            raise self.looked_at() from None
        for part in parts:
            if isinstance(part, str):
                yield part
                continue
            text, number = part
            field = _fields.get(number)
            if field is None or field.text != text:
                raise self.looked_at()
            yield field

    @property  # type: ignore[misc]  # a text does not say that it names traced values
    def __class__(self) -> Any:
        return str

    def __bool__(self) -> bool:
        return True  # a text of numbers is never empty

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        if is_wend_file(sys._getframe(1).f_code.co_filename):  # a message
            return format(without_marks(self), spec)
        raise self.looked_at()

    def __repr__(self) -> str:
        """Return the text in quotes, as it stands in the text of a list."""
        parts = [*self.parts()]
        literals = [part for part in parts if isinstance(part, str)]
        if any(isinstance(part, ShownField) and not is_scalar(part.array) for part in parts):
            raise self.looked_at()  # its text has several lines
        both = any("'" in text for text in literals) and any('"' in text for text in literals)
        quote = '"' if not both and any("'" in text for text in literals) else "'"
        # With both quotes in it, `repr` escapes as the whole text needs it.
        escaped = [repr(text + "\"'")[1:-4] if both else repr(text)[1:-1] for text in literals]
        texts = iter(escaped)
        marks = (m for m in split_marks(str.__str__(self)) if not isinstance(m, str))
        inner = "".join(
            next(texts) if isinstance(part, str) else mark(*next(marks)) for part in parts
        )
        return ShownText(f"{quote}{inner}{quote}")

    def __add__(self, other: str) -> str:
        if not isinstance(other, str):
            return NotImplemented
        return type(self)(str.__add__(self, other))

    def __radd__(self, other: str) -> str:
        if not isinstance(other, str):
            return NotImplemented
        return type(self)(str.__add__(other, self))

    def looked_at(self) -> ConcreteValueError:
        """Return the error for any use other than showing the text."""
        shown = without_marks(str.__str__(self))
        return ConcreteValueError(
            explain(
                f"the text {shown!r:.60} is used{at(user_source())}, but the numbers in it are "
                "only known when the function runs.",
                cure="print it, or compute with the numbers themselves; make the text of what "
                "the function returns.",
            )
        )


def _refusing_method(name: str) -> Any:
    def run(self: ShownText, /, *args: Any, **kwargs: Any) -> Any:
        raise self.looked_at()

    run.__name__ = name
    return run


_COMPARISONS = {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__"}
_ALLOWED = {*vars(ShownText), "__getnewargs__"}
for _name in ({*dir(str), "__radd__", "__rmod__"} - {*dir(object)} - _ALLOWED) | _COMPARISONS:
    setattr(ShownText, _name, _refusing_method(_name))
