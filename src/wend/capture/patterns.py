"""Class, part and length tests of `case` patterns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import ConcreteValueError, explain
from wend.base.source import at, user_source
from wend.capture.attributes import attribute, get_attribute
from wend.capture.builtins.builtins import is_instance
from wend.capture.calls import call
from wend.capture.guards.outside import entered_items
from wend.capture.stage.operators import contains
from wend.capture.state.assignments import get_item
from wend.capture.state.one_shot_iterators import consume
from wend.capture.state.special_methods import proxied_items
from wend.eager.dispatch import Staged
from wend.trace.arrays.tracer import Tracer
from wend.trace.control.tensor_list import TensorList
from wend.trace.recording.recording import current

# `case float(x)` binds the subject itself.
_SELF_MATCHING = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)


# The flags of types whose instances `case [a, b]` and `case {"key": x}` match
_SEQUENCE, _MAPPING = 1 << 5, 1 << 6
_ARRAYS_ARE_SEQUENCES = bool(np.ndarray.__flags__ & _SEQUENCE)
_MISSING = object()


class TakenParts:
    """The parts of a subject that the patterns of a `match` have taken, by number of pattern.

    Python takes each part once, when the pattern around it is tested.
    """

    def __init__(self) -> None:
        self._parts: dict[int, tuple[Sequence[Any], Callable[[], Sequence[Any] | None]]] = {}

    def take(self, number: int, take: Callable[[], Sequence[Any] | None]) -> bool:
        """Take the parts for a pattern; return whether there are all."""
        parts = take()
        if parts is not None:
            self._parts[number] = parts, take
        return parts is not None

    def part(self, number: int, position: int) -> Any:
        """Return a part that a pattern has taken.

        One that was computed in a branch of the test is computed again.
        """
        parts, take = self._parts[number]
        recording = current()
        if recording is not None and any(
            isinstance(leaf, Tracer) and not recording.can_lift(leaf)
            for leaf in trees.flatten(parts[position])[0]
        ):
            parts = take() or parts
        return parts[position]


def is_of_class(
    taken: TakenParts, number: int, subject: Any, kind: type, count: int, attributes: Sequence[str]
) -> bool:
    """Return whether `case kind(…)`, with `count` positional parts and attributes, may match."""
    if not is_instance(subject, kind):
        return False
    positional = _positional(kind) if count else ()
    if len(positional) < count:
        allowed, plural = len(positional), "" if len(positional) == 1 else "s"
        raise TypeError(
            f"{kind.__name__}() accepts {allowed} positional sub-pattern{plural} ({count} given)"
        )
    names = [*positional[:count], *attributes]
    return taken.take(number, lambda: _attributes(subject, names))


def _positional(kind: type) -> Sequence[str]:
    if issubclass(kind, _SELF_MATCHING) and not hasattr(kind, "__match_args__"):
        return ("",)
    names = get_attribute(kind, "__match_args__", ())
    if type(names) is not tuple:
        name = type(names).__name__
        raise TypeError(f"{kind.__name__}.__match_args__ must be a tuple (got {name})")
    return names


def _attributes(subject: Any, names: Sequence[str]) -> list[Any] | None:
    """Return attributes of an object, of which "" is the object itself; None if one is missing."""
    parts = []
    for name in names:
        part = get_attribute(subject, name, _MISSING) if name else subject
        if part is _MISSING:
            return None
        parts.append(part)
    return parts


def is_sequence(taken: TakenParts, number: int, subject: Any, kinds: str) -> bool:
    """Return whether `case [a, b]` may match: a sequence of that length, but no string.

    One that is open, as `[a, *others]`, may be longer. An array is a sequence from NumPy 2.5 on.

    Args:
        taken: takes the items.
        number: of the pattern.
        subject: the subject.
        kinds: a letter for each item: "p" for one that is matched, "_" for others; "*" for several
            that a star binds, "-" for others.
    """
    if isinstance(subject, TensorList):
        raise ConcreteValueError(
            explain(
                f"`case`{at(user_source())} asks for the length of {subject!r}, known only when "
                "it runs.",
                cure="compare its length with an `if`: if len(out) == 2.",
            )
        )
    if isinstance(subject, Staged):
        array: Any = subject
        if not (_ARRAYS_ARE_SEQUENCES and is_instance(array, np.ndarray)):
            return False
    elif not type(subject).__flags__ & _SEQUENCE:
        return False
    is_open = not _STARS.isdisjoint(kinds)
    length, count = len(kinds), len(kinds) - is_open
    if kinds not in ("*", "-"):
        length = call(len)(subject)
        if length < count or (length > count and not is_open):
            return False
    return taken.take(number, lambda: _items(subject, kinds, length))


_STARS = frozenset("*-")


def _items(subject: Any, kinds: str, length: int) -> list[Any]:
    """Return the items of a sequence that a pattern matches; None for others."""
    start = next((k for k, kind in enumerate(kinds) if kind in _STARS), len(kinds))
    after = max(len(kinds) - start - 1, 0)
    if not {"p", "*"} & {*kinds}:
        return [None] * len(kinds)
    is_plain = isinstance(subject, (Staged, np.ndarray)) or type(subject) in (list, tuple)
    if is_plain or "-" in kinds:
        if "*" in kinds:
            length = call(len)(subject)

        def taken(k: int, kind: str) -> Any:
            if kind == "*":
                return [get_item(subject, i) for i in range(start, length - after)]
            return get_item(subject, k if k < start else length - len(kinds) + k)

        return [taken(k, kind) if kind in "p*" else None for k, kind in enumerate(kinds)]
    items = _iterated(subject)
    if "*" not in kinds:
        return _unpacked(items, len(kinds))
    values, count = [*items], start + after
    if len(values) < count:
        raise ValueError(
            f"not enough values to unpack (expected at least {count}, got {len(values)})"
        )
    end = len(values) - after
    return [*values[:start], values[start:end], *values[end:]]


def _unpacked(items: Iterator[Any], count: int) -> list[Any]:
    values = [*itertools.islice(items, count + 1)]
    if len(values) < count:
        raise ValueError(f"not enough values to unpack (expected {count}, got {len(values)})")
    if len(values) > count:
        raise ValueError(f"too many values to unpack (expected {count})")
    return values


def is_mapping(subject: Any, count: int) -> bool:
    """Return whether `case {"key": x}`, with `count` keys, may match."""
    if isinstance(subject, Staged) or not type(subject).__flags__ & _MAPPING:
        return False
    return not count or bool(call(len)(subject) >= count)


def has_keys(taken: TakenParts, number: int, subject: Any, keys: Sequence[Any]) -> bool:
    """Return whether a mapping has the keys of `case {"key": x}`, which asks its `get` for each."""
    return taken.take(number, lambda: _values(subject, keys))


def _values(subject: Any, keys: Sequence[Any]) -> list[Any] | None:
    get, parts = _getter(subject), []
    for key in keys:
        part = get(key)
        if part is _MISSING:
            return None
        parts.append(part)
    return parts


def _getter(subject: Any) -> Callable[[Any], Any]:
    """Return a function that gives an item of a mapping as its `get` does, or `_MISSING`."""
    kind = type(subject)
    if kind.get not in (dict.get, Mapping.get):
        get = call(attribute(subject, "get"))
        return lambda key: get(key, _MISSING)
    if kind.get is Mapping.get:

        def get_or_miss(key: Any) -> Any:
            try:
                return get_item(subject, key)
            except KeyError:
                return _MISSING

        return get_or_miss
    plain = subject if _is_plain(kind) else dict(dict.items(subject))
    return lambda key: get_item(plain, key) if contains(plain, key) else _MISSING


_DICT_OPERATORS = ("__contains__", "__getitem__", "__missing__")


def _is_plain(kind: type) -> bool:
    return kind is dict or all(
        getattr(kind, name, None) is getattr(dict, name, None) for name in _DICT_OPERATORS
    )


def other_items(subject: Any, keys: Sequence[Any]) -> dict[Any, Any]:
    """Return what `**others` of a mapping pattern binds."""
    kind, names = type(subject), subject
    if isinstance(subject, dict) and kind.__iter__ is dict.__iter__:
        subject = names = subject if _is_plain(kind) else dict(dict.items(subject))
    else:
        names = _iterated(call(attribute(subject, "keys"))())
    others = {key: get_item(subject, key) for key in names}
    for key in keys:
        del others[key]
    return others


def _iterated(subject: Any) -> Iterator[Any]:
    return iter(proxied_items(entered_items(consume(subject))))


def check_match_subject(subject: Any) -> Any:
    """Return the subject of a `match` that runs in Python; refuse traced values in it."""
    if any(isinstance(leaf, (Staged, TensorList)) for leaf in trees.flatten(subject)[0]):
        raise ConcreteValueError(
            explain(
                f"`match`{at(user_source())} has alternatives that bind names: Python runs it, and "
                "asks for the class of traced values.",
                cure="write a `case` for each alternative; or a chain of `if`, with isinstance.",
            )
        )
    return subject
