"""What a Python value was, so that one can tell later whether it has changed."""

from __future__ import annotations

import itertools
import types
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from wend.eager.dispatch import Staged

_ATOMS = (type(None), bool, int, float, complex, str, bytes)
_SEQUENCES = (list, tuple)
_SETS = (set, frozenset)
_ITEMS, _DEPTH = 32, 3  # containers beyond are told by identity: looking must stay cheap

MISSING = object()


class Mark(ABC):
    """What a value was."""

    __slots__ = ()
    is_data = True  # whether it is something to list: no module, function or array

    @abstractmethod
    def holds(self, value: Any) -> bool:
        """Whether a value is what it was."""

    @abstractmethod
    def __str__(self) -> str: ...


class Equal(Mark):
    """A number, a string or None: told by its type and value."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def holds(self, value: Any) -> bool:
        mine = self.value
        if value is mine:
            return True
        # NaN is what it was
        return type(value) is type(mine) and bool(
            value == mine or (value != value and mine != mine)
        )

    def __str__(self) -> str:
        return short(self.value)


class Same(Mark):
    """Anything else: told by identity, and kept alive only if it cannot be held weakly."""

    __slots__ = ("is_data", "reference", "text")

    def __init__(self, value: Any) -> None:
        self.reference: Callable[[], Any]
        try:
            self.reference = weakref.ref(value)
        except TypeError:
            self.reference = lambda: value
        self.is_data = issubclass(type(value), (list, dict, *_SETS))
        self.text = _described(value)

    def holds(self, value: Any) -> bool:
        return self.reference() is value

    def __str__(self) -> str:
        return self.text


class Items(Mark):
    """A short list, tuple or set: told by what is in it."""

    __slots__ = ("kind", "marks", "text")

    def __init__(self, value: Any, marks: list[Mark]) -> None:
        self.kind, self.marks, self.text = type(value), marks, short(value)

    def holds(self, value: Any) -> bool:
        if type(value) is not self.kind or len(value) != len(self.marks):
            return False
        return all(mark.holds(item) for mark, item in zip(self.marks, value, strict=False))

    def __str__(self) -> str:
        return self.text


class Entries(Mark):
    """A short dict: told by its keys and what they stand for."""

    __slots__ = ("marks", "text")

    def __init__(self, value: dict[Any, Any], marks: dict[Any, Mark]) -> None:
        self.marks, self.text = marks, short(value)

    def holds(self, value: Any) -> bool:
        if type(value) is not dict or len(value) != len(self.marks):
            return False
        return all(mark.holds(value.get(key, MISSING)) for key, mark in self.marks.items())

    def __str__(self) -> str:
        return self.text


def mark(value: Any, depth: int = 0) -> Mark | None:
    """What a value is now; None for what is traced or holds such: it is no constant."""
    kind: Any = type(value)
    if kind in _ATOMS or issubclass(kind, np.generic):
        return Equal(value)
    if issubclass(kind, Staged):
        return None
    if depth < _DEPTH and kind in (*_SEQUENCES, *_SETS, dict) and len(value) <= _ITEMS:
        inner = value.values() if kind is dict else value
        marks = [mark(item, depth + 1) for item in inner]
        known = [one for one in marks if one is not None]
        if len(known) < len(marks):
            return None
        if kind is dict:
            return Entries(value, dict(zip(value, known, strict=True)))
        return Items(value, known)
    return Same(value)


def short(value: Any) -> str:
    """A value as messages show it."""
    text = _text(value)
    return text if len(text) <= 40 else f"{text:.37}..."


def _text(value: Any, depth: int = 0) -> str:
    """Numbers and strings as they are, containers by what is in them, objects by their kind."""
    kind: Any = type(value)
    if issubclass(kind, np.generic):
        return repr(value.item())
    if kind in _ATOMS:
        return repr(value)
    if kind not in (*_SEQUENCES, *_SETS, dict) or depth == _DEPTH:
        return _described(value)
    if not value:
        return repr(value)
    some = itertools.islice(value, _ITEMS)
    if kind is dict:
        shown = ", ".join(f"{_text(k, depth + 1)}: {_text(value[k], depth + 1)}" for k in some)
        return f"{{{shown}}}"
    shown = ", ".join(_text(item, depth + 1) for item in some)
    if kind is tuple:
        return f"({shown}{',' if len(value) == 1 else ''})"
    return f"[{shown}]" if kind is list else f"{{{shown}}}"


def _described(value: Any) -> str:
    if issubclass(type(value), np.ndarray):
        return f"an array of shape {value.shape}"
    if issubclass(type(value), (types.FunctionType, type, types.ModuleType)):
        return f"{type(value).__name__} {value.__name__}".replace("type ", "class ")
    kind = type(value).__name__
    return f"{'an' if kind[:1] in 'AEIOUaeiou' else 'a'} {kind}"
