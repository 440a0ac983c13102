"""Snapshots of Python values, which tell later whether the value has changed."""

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
_MAX_ITEMS, _MAX_DEPTH = (
    32,
    3,
)  # larger containers are compared by identity: a guard check must stay cheap

MISSING = object()


class Snapshot(ABC):
    """A record of a value at one point in time."""

    __slots__ = ()
    is_data = True  # whether to list it: not for modules, functions and arrays

    @abstractmethod
    def matches(self, value: Any) -> bool:
        """Return whether a value is still the recorded one."""

    @abstractmethod
    def __str__(self) -> str: ...


class ValueSnapshot(Snapshot):
    """A number, a string or None, compared by type and value."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def matches(self, value: Any) -> bool:
        recorded = self.value
        if value is recorded:
            return True
        # NaN matches NaN
        return type(value) is type(recorded) and bool(
            value == recorded or (value != value and recorded != recorded)
        )

    def __str__(self) -> str:
        return short_repr(self.value)


class IdentitySnapshot(Snapshot):
    """Any other value, compared by identity; held weakly if that is possible."""

    __slots__ = ("is_data", "reference", "text")

    def __init__(self, value: Any) -> None:
        self.reference: Callable[[], Any]
        try:
            self.reference = weakref.ref(value)
        except TypeError:
            self.reference = lambda: value
        self.is_data = issubclass(type(value), (list, dict, *_SETS))
        self.text = _describe(value)

    def matches(self, value: Any) -> bool:
        return self.reference() is value

    def __str__(self) -> str:
        return self.text


class SequenceSnapshot(Snapshot):
    """A short list, tuple or set, compared by its items."""

    __slots__ = ("kind", "snapshots", "text")

    def __init__(self, value: Any, snapshots: list[Snapshot]) -> None:
        self.kind, self.snapshots, self.text = type(value), snapshots, short_repr(value)

    def matches(self, value: Any) -> bool:
        if type(value) is not self.kind or len(value) != len(self.snapshots):
            return False
        return all(
            snapshot.matches(item) for snapshot, item in zip(self.snapshots, value, strict=False)
        )

    def __str__(self) -> str:
        return self.text


class DictSnapshot(Snapshot):
    """A short dict, compared by its keys and values."""

    __slots__ = ("snapshots", "text")

    def __init__(self, value: dict[Any, Any], snapshots: dict[Any, Snapshot]) -> None:
        self.snapshots, self.text = snapshots, short_repr(value)

    def matches(self, value: Any) -> bool:
        if type(value) is not dict or len(value) != len(self.snapshots):
            return False
        return all(
            snapshot.matches(value.get(key, MISSING)) for key, snapshot in self.snapshots.items()
        )

    def __str__(self) -> str:
        return self.text


def snapshot(value: Any, depth: int = 0) -> Snapshot | None:
    """Return a snapshot of a value; None if it is traced or holds traced values."""
    kind: Any = type(value)
    if kind in _ATOMS or issubclass(kind, np.generic):
        return ValueSnapshot(value)
    if issubclass(kind, Staged):
        return None
    if depth < _MAX_DEPTH and kind in (*_SEQUENCES, *_SETS, dict) and len(value) <= _MAX_ITEMS:
        items = value.values() if kind is dict else value
        item_snapshots = [snapshot(item, depth + 1) for item in items]
        known = [item_snapshot for item_snapshot in item_snapshots if item_snapshot is not None]
        if len(known) < len(item_snapshots):
            return None
        if kind is dict:
            return DictSnapshot(value, dict(zip(value, known, strict=True)))
        return SequenceSnapshot(value, known)
    return IdentitySnapshot(value)


def short_repr(value: Any) -> str:
    """Return a value as messages show it."""
    text = _text(value)
    return text if len(text) <= 40 else f"{text:.37}..."


def _text(value: Any, depth: int = 0) -> str:
    """Return numbers and strings as they are, containers by their items, objects by their type."""
    kind: Any = type(value)
    if issubclass(kind, np.generic):
        return repr(value.item())
    if kind in _ATOMS:
        return repr(value)
    if kind not in (*_SEQUENCES, *_SETS, dict) or depth == _MAX_DEPTH:
        return _describe(value)
    if not value:
        return repr(value)
    shown_items = itertools.islice(value, _MAX_ITEMS)
    if kind is dict:
        shown = ", ".join(
            f"{_text(k, depth + 1)}: {_text(value[k], depth + 1)}" for k in shown_items
        )
        return f"{{{shown}}}"
    shown = ", ".join(_text(item, depth + 1) for item in shown_items)
    if kind is tuple:
        return f"({shown}{',' if len(value) == 1 else ''})"
    return f"[{shown}]" if kind is list else f"{{{shown}}}"


def _describe(value: Any) -> str:
    if issubclass(type(value), np.ndarray):
        return f"an array of shape {value.shape}"
    if issubclass(type(value), (types.FunctionType, type, types.ModuleType)):
        return f"{type(value).__name__} {value.__name__}".replace("type ", "class ")
    kind = type(value).__name__
    return f"{'an' if kind[:1] in 'AEIOUaeiou' else 'a'} {kind}"
