"""Persistent lists at run time; the newest version costs what a Python list costs.

Versions share one Python list. The newest owns it; an older one remembers the change that leads
to the newer one and undoes it when it is read (Baker, "Shallow binding makes functional arrays
fast", 1991). A loop that only goes forward never undoes anything.

The items of a list may stay elsewhere (in the memory of a native run) until they are read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from wend.base.zero import ZERO

_POP: Any = object()  # change: drop the last item
_Change = tuple[Any, Any]  # (position, new item); (_POP, None); (None, item to push)


class ItemSource(Protocol):
    """A provider of items that are read on demand."""

    def __len__(self) -> int: ...

    def read(self) -> list[Any]:
        """Return the items in a new list."""
        ...


class Sequence:
    """An immutable list of run-time values.

    Attributes:
        source: the provider of the items, if they came from one.
    """

    __slots__ = ("_change", "_items", "_newer", "source")

    def __init__(self, items: list[Any] | None, source: ItemSource | None = None) -> None:
        self._items = items
        self._newer: Sequence | None = None
        self._change: _Change | None = None
        self.source = source

    @staticmethod
    def of(items: list[Any]) -> Sequence:
        """Return a sequence of these items, and take ownership of the list."""
        return Sequence(items)

    @staticmethod
    def at(source: ItemSource) -> Sequence:
        """Return a sequence whose items are read from a source on demand."""
        return Sequence(None, source)

    def items(self) -> list[Any]:
        """Return the items; the caller must not change the list."""
        if self._items is None:
            if self._newer is None:
                assert self.source is not None
                self._items = self.source.read()
            else:
                self._become_newest()
        assert self._items is not None
        return self._items

    def __len__(self) -> int:
        return len(self.items()) if self.source is None else len(self.source)

    def __getitem__(self, index: Any) -> Any:
        return self.items()[index]

    def push(self, item: Any) -> Sequence:
        items = self.items()
        if not items:
            return Sequence([item])  # nothing to share; two lists may start from one empty one
        items.append(item)
        return self._succeed(items, (_POP, None))

    def pop(self) -> tuple[Sequence, Any]:
        items = self.items()
        last = items.pop()
        return self._succeed(items, (None, last)), last

    def set(self, index: Any, item: Any) -> Sequence:
        items = self.items()
        if not -len(items) <= index < len(items):
            raise IndexError("list assignment index out of range")
        old = items[index]
        items[index] = item
        return self._succeed(items, (index, old))

    def _succeed(self, items: list[Any], undo: _Change) -> Sequence:
        newer = Sequence(items)
        self._items, self._newer, self._change = None, newer, undo
        return newer

    def _become_newest(self) -> None:
        chain = [self]
        while chain[-1]._items is None:
            assert chain[-1]._newer is not None
            chain.append(chain[-1]._newer)
        for older in chain[-2::-1]:
            newer = older._newer
            assert newer is not None and newer._items is not None and older._change is not None
            newer._change = _apply(newer._items, older._change)
            older._items, newer._items = newer._items, None
            newer._newer, older._newer, older._change = older, None, None


def _apply(items: list[Any], change: _Change) -> _Change:
    """Make a change, and return the one that undoes it."""
    position, item = change
    if position is _POP:
        return None, items.pop()
    if position is None:
        items.append(item)
        return _POP, None
    old, items[position] = items[position], item
    return position, old


def zeros_like(value: Any) -> Any:
    """Return zeros of a value's shape: an array, or a sequence of them."""
    if value is ZERO:
        return ZERO
    if isinstance(value, Sequence):
        return Sequence.of([zeros_like(item) for item in value.items()])
    return np.zeros_like(value)[()]


def add_values(x: Any, y: Any) -> Any:
    """Return the sum of two values, item by item for sequences; Zero is the identity."""
    if x is ZERO or y is ZERO:
        return y if x is ZERO else x
    if isinstance(x, Sequence):
        add: Callable[[Any, Any], Any] = add_values
        items = list(x.items())  # a copy: x and y may be versions that share one list
        return Sequence.of([add(a, b) for a, b in zip(items, y.items(), strict=True)])
    return np.add(x, y)
