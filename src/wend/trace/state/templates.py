"""Format strings with fields for values only known at run time, for `print` and `assert_`."""

from __future__ import annotations

import functools
import itertools
import operator
from _string import formatter_field_name_split  # type: ignore[import-not-found]
from collections.abc import Callable, Iterable, Mapping, Sequence
from string import Formatter
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from wend.base import trees
from wend.base.errors import TypeMismatchError, explain
from wend.base.marked_text import has_marks, mark, split_marks, without_marks
from wend.base.source import at, user_source
from wend.eager.dispatch import Staged, read
from wend.eager.promotion import is_weak
from wend.numpy import shaping
from wend.ops.effects import LIST, LIST_OF_NUMBERS, TEXTS, WITHOUT_AXES
from wend.trace.arrays.attributes import class_name
from wend.trace.arrays.concrete_array import ConcreteTracedArray
from wend.trace.arrays.shown_text import (
    ShownChoice,
    ShownField,
    ShownList,
    ShownText,
    is_scalar,
    text_conversion,
)
from wend.trace.recording.arguments import is_array_leaf, is_zero_dim
from wend.trace.recording.recording import current, is_traced_now
from wend.trace.state.variable import Variable

_FORMATTER = Formatter()
_CONVERSIONS: dict[str, Callable[[Any], str]] = {"r": repr, "s": str, "a": ascii}


class Text(ShownText):
    """An f-string with traced values: a string that `print` and `assert` write at run time."""

    __slots__ = ()

    @property
    def template(self) -> Template:
        """The text as a format string and values."""
        template = Template()
        template.shown(self)
        return template

    @staticmethod
    def of(parts: Iterable[str | Template | ShownChoice | tuple[Any, str | None, str]]) -> str:
        """Return the text of literals and (value, conversion, spec); a `Text` if one is traced.

        Templates and choices stand for values that were formatted before. Where the run chooses
        among texts and no other value is traced, it chooses among the whole texts.
        """
        parts = [*parts]
        if any(isinstance(x, ShownChoice) or _is_of_choice(x) for x in parts):
            pieces = [*map(Text._piece, parts)]
            if not any(isinstance(piece, ShownText) for piece in pieces):
                whole: str = functools.reduce(operator.add, pieces)
                return whole
        if not is_traced_now():
            return "".join(
                _formatted(*part) if isinstance(part, tuple) else str(part) for part in parts
            )
        template = Template()
        for part in parts:
            if isinstance(part, str):
                template.literal(part)
            elif isinstance(part, Template):
                template.extend(part)
            else:
                template.value(*(part if isinstance(part, tuple) else (part,)))
        return template.text()

    @staticmethod
    def _piece(part: Any) -> Any:
        """Return a part of an f-string: a text, a `Text` if it is traced, or a choice."""
        if _is_of_choice(part):
            return part[0].shown(*part[1:])
        return part if isinstance(part, (str, ShownChoice)) else Text.of([part])

    @staticmethod
    def formatted(value: Any, conversion: str | None, spec: str) -> str | Template | ShownChoice:
        """Return a value as it is shown now: what follows in an f-string may change it."""
        if isinstance(value, ShownChoice):
            shown: str | ShownChoice = value.shown(conversion, spec)
            return shown
        if not is_traced_now():
            return _formatted(value, conversion, spec)
        template = Template()
        template.value(value, conversion, spec)
        return template

    @staticmethod
    def adopted(text: str) -> str:
        """Return a text that uncaptured code made, as a `Text` if it names traced values."""
        return Text(text) if type(text) is not Text and has_marks(str.__str__(text)) else text

    @staticmethod
    def joined(separator: str, texts: Sequence[str]) -> str:
        """Return the texts joined by a separator; a `Text` or a choice if one of them is."""
        if any(isinstance(text, ShownChoice) for text in texts):
            parts = [part for text in texts for part in (separator, text)]
            return Text.of(
                x if isinstance(x, (str, ShownChoice)) else str.join("", [x]) for x in parts[1:]
            )
        if not all(isinstance(text, str) for text in texts):
            return str.join(separator, texts)  # which raises
        return Text.adopted(str.join(separator, map(str.__str__, texts)))


class TextField(NamedTuple):
    """A value in a template."""

    array: Any
    conversion: str | None
    spec: str

    def __str__(self) -> str:
        conversion = f"!{self.conversion}" if self.conversion else ""
        return f"{{{conversion}{':' + self.spec if self.spec else ''}}}"

    def marked(self) -> str:
        """Return the text that is shown until the value is known."""
        recording = current()
        assert recording is not None
        text = without_marks(str(self.array))
        return ShownText.of_field(ShownField(*self, text), recording)


class Template:
    """A format string, and the arrays for its fields in order.

    Args:
        by_element: whether a spec formats each element of an array; NumPy refuses it.
    """

    def __init__(self, *, by_element: bool = False) -> None:
        self._parts: list[str | TextField] = []
        self._by_element = by_element

    @staticmethod
    def of(
        format: str,
        values: Sequence[Any] = (),
        fields: Mapping[str, Any] | None = None,
        *,
        by_element: bool = False,
    ) -> Any:
        """Return the template of a format string or a `Text`.

        Raises:
            TypeError: it has a spec for an array, which is not formatted by element.
            TypeMismatchError: it has a field without a value, or a spec that its value does not
                support.
        """
        new = Template(by_element=by_element)
        if isinstance(format, ShownText):
            new.value(format)
        else:
            new._format(format, values, fields or {})
        return new

    @property
    def arrays(self) -> list[Any]:
        """The values of the fields in order, as they were when the text was made."""
        return [part.array for part in self._parts if isinstance(part, TextField)]

    def with_arrays(self, arrays: Sequence[Any]) -> Template:
        """Return the template with other arrays for its fields."""
        new, remaining = Template(), iter(arrays)
        new._parts = [
            part._replace(array=next(remaining)) if isinstance(part, TextField) else part
            for part in self._parts
        ]
        return new

    def __str__(self) -> str:
        return "".join(
            str(part) if isinstance(part, TextField) else part.replace("{", "{{").replace("}", "}}")
            for part in self._parts
        )

    def text(self) -> str:
        """Return the text; one with traced values names them until it is written."""
        if not any(isinstance(part, TextField) for part in self._parts):
            return "".join(map(str, self._parts))
        parts = (p.marked() if isinstance(p, TextField) else p for p in self._parts)
        return Text("".join(map(str.__str__, parts)))

    def literal(self, text: str) -> None:
        """Append literal text."""
        self._parts.append(text)

    def extend(self, other: Template) -> None:
        """Append another template."""
        self._parts += other._parts

    def shown(self, text: str) -> None:
        """Append a text, with a field for each traced value that it names."""
        if not has_marks(str.__str__(text)):
            self.literal(str.__str__(text))
            return
        for part in ShownText(text).parts():
            if isinstance(part, str):
                self.literal(part)
            else:
                self._field(part.array, part.conversion, part.spec)

    def value(self, x: Any, conversion: str | None = None, spec: str = "") -> None:
        """Append a value: a field if it is only known at run time, otherwise its text."""
        if isinstance(x, ShownText):
            if spec:
                raise x.looked_at()
            if conversion in ("r", "a"):
                x = repr(x)
            self.shown(_in_ascii(x) if conversion == "a" else x)
        elif isinstance(x, ShownChoice):
            text = x.shown(conversion, spec)
            if isinstance(text, str):
                self.literal(text)
            else:
                self._field(text.field()[0], None, text.field()[1])
        elif not _is_array(x):
            self.shown(_text_of_object(x, conversion, spec))
        elif not spec and conversion in ("r", "a"):
            self._repr_field(x)
        elif not spec and conversion == "s":
            self._field(x, text_conversion(x))
        else:
            if conversion in ("r", "a") and is_weak(x):
                conversion = "s"  # the repr of a Python number is its str
            if spec and not conversion and not self._by_element and getattr(x, "shape", ()) != ():
                raise TypeError("unsupported format string passed to numpy.ndarray.__format__")
            _check_spec(x, conversion, spec)
            self._field(x, conversion, spec)

    def _field(self, array: Any, conversion: str | None = None, spec: str = "") -> None:
        if isinstance(array, ShownList):
            array, spec = array.items_to_show()
        if conversion == "r" and is_scalar(array) and is_zero_dim(array):
            array, conversion, spec = shaping.reshape(read(array), 1), None, WITHOUT_AXES
        if not conversion:
            _check_spec(array, conversion, spec)
        self._parts.append(TextField(_now(array), conversion, spec))

    def _repr_field(self, x: Any) -> None:
        """Append the `repr` of an array, with a field for its elements."""
        if isinstance(x, Variable):
            self.shown(repr(x))
        else:
            self._field(x, None if is_weak(x) else "r")

    def _format(self, format: str, values: Sequence[Any], fields: Mapping[str, Any]) -> None:
        numbers = itertools.count()

        def field(name: str) -> Any:
            root, path = formatter_field_name_split(name)
            key: Any = next(numbers) if root == "" else root
            try:
                value = values[key] if isinstance(key, int) else fields[key]
            except (KeyError, IndexError):
                raise _missing_value_error(format, name, len(values), fields) from None
            for is_attribute, part in path:
                value = (attribute_of if is_attribute else item_of)(value, part)
            return value

        for literal, name, spec, conversion in _FORMATTER.parse(format):
            self.literal(literal)
            if name is None:
                continue
            value, parts = field(name), []
            # Fields of the spec are numbered on
            for text, inner, inner_spec, inner_conversion in _FORMATTER.parse(spec or ""):
                parts.append(text)
                if inner is not None:
                    shown = Text.of([(field(inner), inner_conversion, inner_spec or "")])
                    if isinstance(shown, ShownText):
                        raise shown.looked_at()
                    parts.append(shown)
            self.value(value, conversion, "".join(parts))


def _is_of_choice(part: Any) -> bool:
    return isinstance(part, tuple) and isinstance(part[0], ShownChoice)


def _is_array(x: Any) -> bool:
    is_array = isinstance(x, (Staged, np.ndarray)) and is_array_leaf(x)
    return is_array and not getattr(x, "is_optional_value", False)


def _now(array: Any) -> Any:
    """Return an array with its elements as of here: the text does not follow later changes."""
    recording = current()
    if recording is None or recording.runs_now():
        return read(array)
    if isinstance(array, ConcreteTracedArray) and not isinstance(array, Staged):
        return np.array(np.ndarray.view(array, np.ndarray))
    array = read(array)
    return recording.wrap(recording.lift(array), weak=is_weak(array))


def _formatted(x: Any, conversion: str | None, spec: str) -> str:
    return format(_CONVERSIONS[conversion](x) if conversion else x, spec)


# How a format string reads what its fields name, where code is captured
attribute_of: Callable[[Any, str], Any] = getattr
item_of: Callable[[Any, Any], Any] = operator.getitem
# How a text calls a `__str__` or `__repr__` of the user's: captured, where code is captured
capture_method: Callable[[Any], Any] = lambda method: method  # noqa: E731


def _text_of_object(x: Any, conversion: str | None, spec: str) -> str:
    """Return the text of an object, with marked texts for the traced values in it."""
    if not is_traced_now():
        return _formatted(x, conversion, spec)
    x = _with_own_texts(x)
    kind: Any = type(x)
    if conversion is None and (spec or kind.__format__ is not object.__format__):
        return _called(kind.__format__, format, "__format__ must return a str, not {}", x, spec)
    if conversion in ("r", "a"):
        text = _called(kind.__repr__, repr, "__repr__ returned non-string (type {})", x)
    elif kind.__str__ is object.__str__:
        text = _called(kind.__repr__, repr, "__str__ returned non-string (type {})", x)
    else:
        text = _called(kind.__str__, str, "__str__ returned non-string (type {})", x)
    if conversion == "a":
        text = _in_ascii(text)
    if not spec:
        return text
    if has_marks(text):
        raise ShownText(text).looked_at()
    return format(text, spec)


def _in_ascii(text: str) -> str:
    """Return a text with escapes in place of what is not ASCII, but for its marks."""
    parts = split_marks(str.__str__(text))
    return "".join(
        part.encode("ascii", "backslashreplace").decode() if isinstance(part, str) else mark(*part)
        for part in parts
    )


def _called(method: Any, builtin: Callable[..., str], wrong: str, *args: Any) -> str:
    """Return the result of a special method, called through its builtin unless it is a user's.

    Raises:
        TypeError: it is no text; `wrong` is what Python says then.
    """
    if not isinstance(method, FunctionType):
        return builtin(*args)
    text = capture_method(method)(*args)
    if isinstance(text, str):
        return text
    name = class_name(text) if isinstance(text, Staged) else type(text).__name__
    raise TypeError(wrong.format(name))


class _OwnText:
    """An item of a container whose text is made: its `repr` is made as for the item alone."""

    def __init__(self, item: Any) -> None:
        self.item = item

    def __repr__(self) -> str:
        template = Template()
        template.value(self.item, "r")
        return str.__str__(template.text())


def _with_own_texts(x: Any) -> Any:
    """Return a value with items replaced in its containers: arrays, and the user's objects."""
    leaves, tree = trees.flatten(x)
    if len(leaves) == 1 and leaves[0] is x:
        return x
    items = [_OwnText(leaf) if _has_own_text(leaf) else leaf for leaf in leaves]
    if all(new is old for new, old in zip(items, leaves, strict=True)):
        return x
    return trees.unflatten(tree, items)


def _has_own_text(x: Any) -> bool:
    is_array = isinstance(x, np.ndarray) and not isinstance(x, ConcreteTracedArray) and _is_array(x)
    return is_array or (isinstance(type(x).__repr__, FunctionType) and not isinstance(x, Staged))


def has_own_texts(x: Any) -> bool:
    """Return whether a method of the user's makes the text of a value, or of something in it."""
    kinds = {type(leaf) for leaf in trees.flatten(x)[0]}
    return any(
        isinstance(method, FunctionType)
        for kind in kinds
        for method in (kind.__repr__, kind.__str__)
    )


def holds_traced(x: Any) -> bool:
    """Return whether a value, or something in it, is only known at run time."""
    if isinstance(x, (Staged, ShownText)):
        return True
    return any(isinstance(leaf, (Staged, ShownText)) for leaf in trees.flatten(x)[0])


def _check_spec(x: Any, conversion: str | None, spec: str) -> None:
    """Refuse a spec that does not fit the dtype, at the line that wrote it."""
    dtype = x.type.dtype if isinstance(x, Staged) else getattr(x, "dtype", None)
    is_of_wend = spec in (LIST_OF_NUMBERS, LIST, WITHOUT_AXES) or spec.startswith(TEXTS)
    if not spec or conversion or dtype is None or is_of_wend:
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
