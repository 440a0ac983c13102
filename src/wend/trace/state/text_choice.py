"""Values that are one of several texts, as the state of a machine: the run knows which.

A loop or branch that leaves another text on each path carries the number of the text. What is done
with the text is done with each of its options while the function is traced, and the number chooses
among the results.
"""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import numpy as np

from wend.base import refusals, trees
from wend.base.errors import ConcreteValueError, StructureError, TypeMismatchError, explain
from wend.base.marked_text import has_marks
from wend.base.refusals import refusal
from wend.base.source import at, user_source
from wend.eager import raising
from wend.eager.dispatch import Staged
from wend.eager.promotion import PYTHON_SCALARS
from wend.numpy import elementwise as ew
from wend.ops.effects import spec_of_texts
from wend.trace.arrays.shown_text import ShownChoice, ShownField, ShownText
from wend.trace.arrays.tracer import Tracer
from wend.trace.recording.arguments import is_int64
from wend.trace.recording.recording import current
from wend.trace.state.effects import raise_if

MOST_OPTIONS = 32  # a text that grows in a loop has no end of them
_MISSING = object()
_CONVERSIONS: dict[str | None, Callable[[Any], Any]] = {"r": repr, "s": str, "a": ascii}

# Higher layers set these: what runs one of two functions by a traced test; what makes a number
# part of the trace, where that may be
if_value: Callable[[Any, Callable[[], Any], Callable[[], Any]], Any] = lambda test, then, other: (  # noqa: E731
    then() if test else other()
)
decide: Callable[[Any], tuple[bool | None, Any]] = lambda test: (None, None)  # noqa: E731


class TextChoice(ShownChoice):
    """One of several texts.

    Args:
        index: the number of the text.
        options: the texts; None and members of enumerations may be among them.
    """

    __slots__ = ("index", "options")
    __array_ufunc__ = None

    def __init__(self, index: Any, options: tuple[Any, ...]) -> None:
        self.index, self.options = index, options

    def mapped(self, function: Callable[[Any], Any]) -> Any:
        """Return `function(text)`; it is called for each option, and has no effects."""
        if not isinstance(self.index, Staged):
            return function(self.options[int(self.index)])
        values: list[Any] = []
        errors: dict[int, Exception] = {}
        for k, option in enumerate(self.options):
            try:
                values.append(function(option))
            except Exception as error:
                if refusals.is_refusal(error):
                    raise
                if not _has_plain_text(error):
                    return function(self.decided(f"whether {error!r:.40} is raised is needed"))
                errors[k] = error
                values.append(_MISSING)
        some = next((value for value in values if value is not _MISSING), _MISSING)
        if some is _MISSING:
            raise errors.popitem()[1]
        for number, raised in errors.items():
            self._raise_if(number, type(raised), raised.args)
        return selected(self.index, [some if value is _MISSING else value for value in values])

    def by_branches(self, function: Callable[[Any], Any]) -> Any:
        """Return `function(text)`, which may have effects: it runs for the text of the run only."""
        if not isinstance(self.index, Staged):
            return function(self.options[int(self.index)])
        arms = [functools.partial(function, option) for option in self.options]
        return _selected_by_branches(self.index, arms, 0)

    def _raise_if(self, k: int, error: type[Exception], args: tuple[Any, ...]) -> None:
        if not raising.divert(lambda: self.index == k, error, lambda: args[0]):
            raising.may_raise("text", (error,))
            raise_if(self.index == k, error, "{}", *args)

    def has_own_text(self) -> bool:
        """Return whether a user's function makes the text of an option, a member of an Enum."""
        methods = [
            getattr(type(option), name, None)
            for option in self.options
            for name in ("__str__", "__repr__")
        ]
        return any(isinstance(m, types.FunctionType) and m.__module__ != "enum" for m in methods)

    def equals(self, other: Any) -> Any:
        """Return `self == other`."""
        if isinstance(other, TextChoice):
            options = united([self, other])
            left, right = (chosen(x, options).index for x in (self, other))
            is_equal = ew.equal(left, right)
            return is_equal.as_weak() if isinstance(is_equal, Tracer) else bool(is_equal)
        if isinstance(other, (Staged, np.ndarray)):
            return self.decided("its comparison with an array is needed") == other
        return self.mapped(lambda option: option == other)

    def is_at(self, option: Any) -> Any:
        """Return whether the text is one of the options."""
        position = _position(option, self.options)
        if isinstance(self.index, Staged):
            return ew.equal(self.index, position) if len(self.options) > 1 else True
        return self.index == position

    def is_(self, other: Any) -> Any:
        """Return `self is other`, of None and members of enumerations."""
        if isinstance(other, (TextChoice, str)):
            return self.equals(other)
        return self.mapped(lambda option: option is other)

    def decided(self, use: str, cure: str = "") -> Any:
        """Return the text, as this trace is for.

        Raises:
            ConcreteValueError: only the run knows it.
        """
        if not isinstance(self.index, Staged):
            return self.options[int(self.index)]
        site = None
        for k, option in enumerate(self.options[:-1]):
            outcome, site = decide(ew.equal(self.index, k))
            if outcome:
                return option
            if outcome is None:
                break
        else:
            return self.options[-1]
        error = ConcreteValueError(
            explain(
                f"{use}{at(user_source())}: only the run knows which {self.described()} is.",
                cure=cure
                or "compare it with each of them: `if text == 'a': … elif text == 'b': …`.",
            )
        )
        error.deciding_test = site  # type: ignore[attr-defined]
        raise error

    def described(self) -> str:
        """Return a text for messages."""
        return f"one of {', '.join(map(repr, self.options)):.60}"

    def shown(self, conversion: str | None, spec: str) -> Any:
        """Return the text as a format string shows it: a text, or a choice."""
        convert = _CONVERSIONS.get(conversion, lambda x: x)
        return self.mapped(lambda option: format(convert(option), spec))

    def field(self) -> tuple[Any, str]:
        """Return the number, and the spec by which a format string shows the text."""
        return self.index, spec_of_texts(self.options)

    def _marked(self, text: Any) -> str:
        recording = current()
        if isinstance(text, str):
            return text
        if recording is None:
            return self.described()
        field = ShownField(*(text.index, None, text.field()[1]), text.described())
        return ShownText.of_field(field, recording)

    def __str__(self) -> str:
        return self._marked(self.shown("s", ""))

    def __repr__(self) -> str:
        return self._marked(self.shown("r", ""))

    def __format__(self, spec: str) -> str:
        return self._marked(self.shown(None, spec))

    def __hash__(self) -> int:
        return hash(self.decided("its hash is needed"))

    def __bool__(self) -> bool:
        return bool(self.decided("its truth is needed"))

    def __eq__(self, other: object) -> Any:
        return self.equals(other)

    def __ne__(self, other: object) -> Any:
        is_equal = self.equals(other)
        return ew.logical_not(is_equal).as_weak() if isinstance(is_equal, Staged) else not is_equal

    def __getitem__(self, key: Any) -> Any:
        return self.mapped(lambda option: option[key])

    def __contains__(self, item: Any) -> bool:
        return item in self.decided("whether an item is in it is needed")

    def __len__(self) -> int:
        return len(self.decided("its length is needed"))

    def __iter__(self) -> Any:
        return iter(self.decided("its characters are needed"))


def _operator(function: Callable[[Any, Any], Any], *, reflects: bool = False) -> Any:
    def run(self: TextChoice, other: Any) -> Any:
        one: Any = self
        if function is operator.add and isinstance(other, str) and has_marks(other):
            one = str(self)  # the run joins the texts
        return mapped(function, *((other, one) if reflects else (one, other)))

    return run


for _name in ("lt", "le", "gt", "ge", "add", "mul", "mod"):
    _function = getattr(operator, _name)
    setattr(TextChoice, f"__{_name}__", _operator(_function))
    if _name in ("add", "mul", "mod"):
        setattr(TextChoice, f"__r{_name}__", _operator(_function, reflects=True))


def mapped(function: Callable[..., Any], *args: Any) -> Any:
    """Return `function(*args)`, where choices among the arguments stand for texts."""
    among = sorted((x for x in args if isinstance(x, TextChoice)), key=lambda x: -len(x.options))
    choices = {id(x.index): x for x in among}  # of one number, that with the fewest texts
    if not choices:
        return function(*args)
    joint = functools.reduce(_joint, choices.values(), TextChoice(0, ((),)))

    def of_texts(texts: tuple[Any, ...]) -> Any:
        numbers = {
            key: _position(text, choice.options)
            for (key, choice), text in zip(choices.items(), texts, strict=True)
        }
        return function(
            *(x.options[numbers[id(x.index)]] if isinstance(x, TextChoice) else x for x in args)
        )

    return joint.mapped(of_texts)


def _joint(one: TextChoice, other: TextChoice) -> TextChoice:
    """Return the choice of a tuple and another text as one of longer tuples."""
    options = tuple((*texts, text) for texts in one.options for text in other.options)
    if not isinstance(one.index, Staged) and one.index == 0:
        return TextChoice(other.index, options)
    index = one.index * len(other.options) + other.index
    return TextChoice(index.as_weak() if isinstance(index, Tracer) else index, options)


def either(test: Any, value: Any, other: Any) -> Any:
    """Return one of two values by a test, which may be traced."""
    if value is other or test is True:
        return value
    if test is False:
        return other
    if _is_number(value) and _is_number(other) and _kind(value) == _kind(other):
        result = ew.where(test, value, other)
        return result.as_weak() if isinstance(result, Tracer) else result
    return if_value(test, lambda: value, lambda: other)


def _has_plain_text(error: Exception) -> bool:
    """Return whether the run may raise an error: it has one text, and no attributes."""
    is_text = len(error.args) == 1 and type(error.args[0]) is str and not has_marks(error.args[0])
    return type(error).__module__ == "builtins" and is_text


# Choices among values
def is_option(x: Any) -> bool:
    """Return whether a value may be an option: a text of Python, None, or a member of an Enum."""
    if type(x) is str:
        return not has_marks(x)
    return x is None or (isinstance(x, Enum) and type(x).__eq__ in (object.__eq__, str.__eq__))


def is_text(x: Any) -> bool:
    """Return whether a value is an option, and not None."""
    return x is not None and is_option(x)


def united(values: Sequence[Any]) -> tuple[Any, ...]:
    """Return the options of several values, those of the first at first.

    Raises:
        StructureError: there are too many.
    """
    options: list[Any] = []
    for value in values:
        for option in value.options if isinstance(value, TextChoice) else (value,):
            if not any(type(option) is type(other) and option == other for other in options):
                options.append(option)
    if len(options) > MOST_OPTIONS:
        raise refusal(
            StructureError(
                explain(
                    f"a text{at(user_source())} is one of more than {MOST_OPTIONS}, as one that is "
                    "longer in each trip of a loop.",
                    cure="append its parts to a list, and join them after the call.",
                )
            )
        )
    return tuple(options)


def chosen(value: Any, options: tuple[Any, ...]) -> TextChoice:
    """Return an option, or a choice of some of the options, as a choice of all."""
    if not isinstance(value, TextChoice):
        return TextChoice(_position(value, options), options)
    if value.options == options[: len(value.options)]:
        return TextChoice(value.index, options)
    positions = [_position(option, options) for option in value.options]
    return TextChoice(selected(value.index, positions), options)


def _position(option: Any, options: tuple[Any, ...]) -> int:
    return next(k for k, x in enumerate(options) if type(x) is type(option) and x == option)


def selected(index: Any, values: Sequence[Any]) -> Any:
    """Return the value at a traced index; the values are made before."""
    first, *others = values
    is_constant = type(first) in PYTHON_SCALARS or is_option(first)
    if all(x is first for x in others) or (
        is_constant and all(type(x) is type(first) and repr(x) == repr(first) for x in others)
    ):
        return first
    if all(is_option(x) or isinstance(x, TextChoice) for x in values):
        options = united(values)
        numbers = [chosen(x, options).index for x in values]
        is_same = all(type(x) is int and x == k for k, x in enumerate(numbers))
        return TextChoice(index if is_same else selected(index, numbers), options)
    if all(type(x) is tuple and len(x) == len(first) for x in values):
        return tuple(selected(index, column) for column in zip(*values, strict=True))
    if all(_is_number(x) and _kind(x) == _kind(first) for x in values):
        return _selected_number(index, values)
    arms = [functools.partial(_itself, value) for value in values]
    return _selected_by_branches(index, arms, 0)


def _itself(x: Any) -> Any:
    return x


def _is_number(x: Any) -> bool:
    """Return whether a value is one of Python's numbers, perhaps traced."""
    is_known = type(x) in PYTHON_SCALARS and not (type(x) is int and not is_int64(x))
    return is_known or (isinstance(x, Tracer) and x.weak and x.type.shape == ())


def _kind(x: Any) -> str:
    return x.type.dtype.kind if isinstance(x, Tracer) else np.dtype(type(x)).kind


def _selected_number(index: Any, values: Sequence[Any]) -> Any:
    """Return one of numbers of one kind."""
    result = values[-1]
    for k in reversed(range(len(values) - 1)):
        if not _is_same_number(values[k], result):
            test = ew.equal(index, k)
            pair = values[k], result
            is_test = values[k] is True and result is False
            result = test if is_test else ew.where(test, *pair)
    return result.as_weak() if isinstance(result, Tracer) else result


def _is_same_number(x: Any, y: Any) -> bool:
    return x is y or (type(x) in PYTHON_SCALARS and type(x) is type(y) and repr(x) == repr(y))


def _selected_by_branches(index: Any, arms: Sequence[Callable[[], Any]], start: int) -> Any:
    if start == len(arms) - 1:
        return arms[start]()
    others = functools.partial(_selected_by_branches, index, arms, start + 1)
    return if_value(ew.equal(index, start), arms[start], others)


def is_choice(x: Any) -> bool:
    """Return whether a value is a choice of texts."""
    return type(x) is TextChoice


# As parts of values that graphs carry, and of results
trees.register_node(
    TextChoice, lambda x: ((x.index,), x.options), lambda options, x: TextChoice(x[0], options)
)


class ReturnedText:
    """A text of a result, by its number."""

    def __init__(self, index: Any, options: tuple[Any, ...]) -> None:
        self.index, self.options = index, options


def _rebuilt(options: tuple[Any, ...], parts: Any) -> Any:
    (index,) = parts
    is_of_run = hasattr(index, "__array__")
    if not is_of_run and not isinstance(index, Staged):
        return ReturnedText(index, options)  # a part of a structure
    if np.ndim(index) if is_of_run else index.type.shape != ():
        raise refusal(
            TypeMismatchError(
                explain(
                    f"each element of a vmap returns {TextChoice(index, options).described()}.",
                    cure="return its number, and look it up in a tuple of the texts.",
                )
            )
        )
    return TextChoice(index, options) if isinstance(index, Staged) else options[int(index)]


trees.register_node(ReturnedText, lambda x: ((x.index,), x.options), _rebuilt)
