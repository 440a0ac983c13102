"""Class, part and length tests of `case` patterns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.errors import ConcreteValueError, explain
from wend.base.source import at, user_source
from wend.capture.attributes import attribute, get_attribute, has_attribute
from wend.capture.builtins.builtins import is_instance
from wend.capture.calls import call
from wend.eager.dispatch import Staged
from wend.trace.control.tensor_list import TensorList

# `case float(x)` binds the subject itself.
_SELF_MATCHING = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)


_SEQUENCE = 1 << 5  # the flag of a type whose instances `case [a, b]` matches
_ARRAYS_ARE_SEQUENCES = bool(np.ndarray.__flags__ & _SEQUENCE)


def is_of_class(subject: Any, kind: type, count: int, attributes: Sequence[str]) -> bool:
    """Return whether `case kind(…)`, with `count` positional parts and attributes, may match."""
    if not is_instance(subject, kind):
        return False
    if count:
        names = _positional(kind)
        if len(names) < count:
            raise TypeError(
                f"{kind.__name__}() accepts {len(names)} positional sub-patterns ({count} given)"
            )
        attributes = [*names[:count], *attributes]
    return all(not name or has_attribute(subject, name) for name in attributes)


def matched_part(subject: Any, kind: type, index: int) -> Any:
    """Return what a positional part of `case kind(…)` matches against."""
    name = _positional(kind)[index]
    return attribute(subject, name) if name else subject


def _positional(kind: type) -> Sequence[str]:
    is_self_matching = issubclass(kind, _SELF_MATCHING) and not hasattr(kind, "__match_args__")
    return ("",) if is_self_matching else get_attribute(kind, "__match_args__", ())


def is_sequence(subject: Any, count: int, is_open: bool) -> bool:
    """Return whether `case [a, b]` may match: a sequence of that length, but no string.

    One that is open, as `[a, *others]`, may be longer. An array is a sequence from NumPy 2.5 on.
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
        return len(array) >= count if is_open else len(array) == count
    match subject:
        case [*items]:
            return len(items) >= count if is_open else len(items) == count
    return False


def starred_items(subject: Any, start: int, after: int) -> list[Any]:
    """Return what `*others` of a sequence pattern binds."""
    return [subject[k] for k in range(start, len(subject) - after)]


def is_mapping(subject: Any) -> bool:
    """Return whether `case {"key": x}` may match."""
    match subject:
        case {}:
            return not isinstance(subject, Staged)
    return False


_DICT_OPERATORS = ("__contains__", "__getitem__", "__iter__", "__missing__")


def items_by_get(subject: Any) -> Any:
    """Return a mapping whose `in` and `[]` find what `get`, which a mapping pattern asks, finds."""
    kind = type(subject)
    if kind is dict:
        return subject
    if kind.get not in (dict.get, Mapping.get):
        return _ByGet(subject)
    if not isinstance(subject, dict):
        return subject
    is_plain = all(getattr(kind, x, None) is getattr(dict, x, None) for x in _DICT_OPERATORS)
    return subject if is_plain else dict(dict.items(subject))


class _ByGet:
    """A mapping whose `in` and `[]` ask the `get` of another, a method of the user's."""

    def __init__(self, mapping: Mapping[Any, Any]) -> None:
        self._get = call(attribute(mapping, "get"))

    def __contains__(self, key: Any) -> bool:
        return self[key] is not _MISSING

    def __getitem__(self, key: Any) -> Any:
        return self._get(key, _MISSING)


_MISSING = object()


def other_items(subject: Any, keys: Sequence[Any]) -> dict[Any, Any]:
    """Return what `**others` of a mapping pattern binds."""
    items = subject if isinstance(items_by_get(subject), _ByGet) else items_by_get(subject)
    return {key: items[key] for key in items if key not in keys}


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
