"""Snapshots of Python values, which tell later whether the value has changed."""

from __future__ import annotations

import itertools
import types
import weakref
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from wend.capture.heap.buffers import BUFFERS, bytes_of
from wend.eager.dispatch import Staged
from wend.runtime.array_boundary import to_host
from wend.runtime.storage import StorageOwner

_ATOMS = (type(None), bool, int, float, complex, str, bytes)
_SEQUENCES = (list, tuple)
_SETS = (set, frozenset)
_MAX_SHOWN_ITEMS, _MAX_SHOWN_DEPTH = 32, 3


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
    """A number, a string or None, compared by type and value; -0.0 is not 0.0."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def matches(self, value: Any) -> bool:
        recorded = self.value
        if value is recorded:
            return True
        if type(value) is not type(recorded):
            return False
        if isinstance(value, (float, complex, np.inexact)):
            return repr(value) == repr(recorded)  # tells zeros apart, and NaN is NaN
        return bool(value == recorded)

    def __str__(self) -> str:
        return short_repr(self.value)


class IdentitySnapshot(Snapshot):
    """Any other value, compared by identity; held weakly if that is possible."""

    __slots__ = ("reference", "text")
    is_data = False

    def __init__(self, value: Any) -> None:
        self.reference: Callable[[], Any]
        try:
            self.reference = weakref.ref(value)
        except TypeError:
            self.reference = lambda: value
        self.text = _describe(value)

    def matches(self, value: Any) -> bool:
        return value is not None and self.reference() is value  # a reference that is gone is None

    def __str__(self) -> str:
        return self.text


class SequenceSnapshot(Snapshot):
    """A list, tuple, deque or set, compared by its items in their order."""

    __slots__ = ("kind", "snapshots", "text")

    def __init__(self, value: Any, snapshots: list[Snapshot]) -> None:
        self.kind, self.snapshots, self.text = type(value), snapshots, short_repr(value)

    def matches(self, value: Any) -> bool:
        if type(value) is not self.kind or count_of(value) != len(self.snapshots):
            return False
        return all(
            snapshot.matches(item)
            for snapshot, item in zip(self.snapshots, items_of(value), strict=False)
        )

    def __str__(self) -> str:
        return self.text


class DictSnapshot(Snapshot):
    """A dict, compared by its keys, their order, and its values."""

    __slots__ = ("keys", "kind", "snapshots", "text")

    def __init__(self, value: dict[Any, Any], snapshots: list[Snapshot]) -> None:
        self.kind = type(value)
        self.keys = [
            snapshot(key) or IdentitySnapshot(key) for key in _class_of_order(value).__iter__(value)
        ]
        self.snapshots, self.text = snapshots, short_repr(value)

    def matches(self, value: Any) -> bool:
        if type(value) is not self.kind or count_of(value) != len(self.snapshots):
            return False
        return all(
            key_snapshot.matches(key) and item_snapshot.matches(item)
            for key_snapshot, item_snapshot, (key, item) in zip(
                self.keys, self.snapshots, _class_of_order(value).items(value), strict=False
            )
        )

    def __str__(self) -> str:
        return self.text


class BufferSnapshot(Snapshot):
    """A mutable buffer, compared by its class and bytes."""

    __slots__ = ("contents", "kind", "text")

    def __init__(self, value: Any) -> None:
        self.kind, self.contents, self.text = type(value), bytes_of(value), _describe(value)

    def matches(self, value: Any) -> bool:
        return type(value) is self.kind and bytes_of(value) == self.contents

    def __str__(self) -> str:
        return self.text


class ElementsSnapshot(Snapshot):
    """The elements of an array, compared bit by bit."""

    __slots__ = ("elements", "text")
    is_data = False

    def __init__(self, array: Any) -> None:
        self.elements = _elements(array)
        self.text = f"an array of shape {array.shape}"

    def matches(self, value: Any) -> bool:
        return bool(_elements(value) == self.elements)

    def __str__(self) -> str:
        return self.text


def _elements(array: Any) -> Any:
    """Return the shape, dtype and bytes of an array; Python's values for an array of objects."""
    array = to_host(array)
    contents = array.tolist() if array.dtype.hasobject else array.tobytes()
    return array.shape, array.dtype, contents


CONTAINERS = (list, tuple, dict, set, frozenset, deque, OrderedDict, defaultdict, Counter)
_BASES = (list, tuple, dict, set, frozenset, deque)


def container_kind(kind: type) -> type | None:
    """Return the builtin container that a class is, or derives from; None if it is no container."""
    if kind in _BASES:
        return kind
    return next((base for base in _BASES if issubclass(kind, base)), None)


def items_of(container: Any) -> Iterable[Any]:
    """Return the items of a container, or the values of a dict, without running user code."""
    kind: Any = container_kind(type(container))
    items: Iterable[Any]
    items = (
        _class_of_order(container).values(container) if kind is dict else kind.__iter__(container)
    )
    return items


def count_of(container: Any) -> int:
    """Return how many items a container has, without running user code."""
    kind: Any = container_kind(type(container))
    count: int = kind.__len__(container)
    return count


def _class_of_order(container: Any) -> Any:
    """Return the class whose methods give the items of a dict in order."""
    return OrderedDict if isinstance(container, OrderedDict) else dict


def is_atom(kind: type) -> bool:
    """Return whether values of a class are numbers, strings or None, compared by value."""
    return kind in _ATOMS or issubclass(kind, np.generic)


def is_number(value: Any) -> bool:
    """Return whether a value is a number of Python or NumPy, and no bool."""
    return type(value) in (int, float, complex) or isinstance(value, np.number)


def snapshot(value: Any, around: tuple[int, ...] = ()) -> Snapshot | None:
    """Return a snapshot of a value; None if it is traced or holds traced values.

    `around`: the ids of the containers that it is in.
    """
    kind: Any = type(value)
    if is_atom(kind):
        return ValueSnapshot(value)
    if issubclass(kind, Staged) and not issubclass(kind, StorageOwner):
        return None
    if kind is memoryview or issubclass(kind, BUFFERS):
        return BufferSnapshot(value)
    base = container_kind(kind)
    if base is None or id(value) in around:
        return IdentitySnapshot(value)
    item_snapshots = [snapshot(item, (*around, id(value))) for item in items_of(value)]
    known = [item_snapshot for item_snapshot in item_snapshots if item_snapshot is not None]
    if len(known) < len(item_snapshots):
        return None
    return DictSnapshot(value, known) if base is dict else SequenceSnapshot(value, known)


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
    if kind not in (*_SEQUENCES, *_SETS, dict) or depth == _MAX_SHOWN_DEPTH:
        return _describe(value)
    if not value:
        return repr(value)
    shown_items = itertools.islice(value.items() if kind is dict else value, _MAX_SHOWN_ITEMS)
    if kind is dict:
        shown = ", ".join(f"{_text(k, depth + 1)}: {_text(x, depth + 1)}" for k, x in shown_items)
        return f"{{{shown}}}"
    shown = ", ".join(_text(item, depth + 1) for item in shown_items)
    if kind is tuple:
        return f"({shown}{',' if len(value) == 1 else ''})"
    return f"[{shown}]" if kind is list else f"{{{shown}}}"


def _describe(value: Any) -> str:
    if issubclass(type(value), np.ndarray):
        return f"an array of shape {value.shape}"
    if issubclass(type(value), (types.FunctionType, type, types.ModuleType)):
        name = getattr(value, "__name__", "?")
        return f"{type(value).__name__} {name}".replace("type ", "class ")
    kind = type(value).__name__
    return f"{'an' if kind[:1] in 'AEIOUaeiou' else 'a'} {kind}"
