"""Containers that a traced list was given or has given: it holds their arrays, not themselves.

A change of one that the list holds would not show in the list; one that the list has given back
is another object than the one it was given.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from wend.base.context_values import scoped
from wend.trace.aliasing.containers import containers_in


class ListedContainers:
    """The containers in the items of the traced lists of one trace, by id.

    Attributes:
        appended: those that a list was given.
        read: those that a list has given, and holds.
        popped: those that a list has given, and no longer holds.
        is_repeated: whether a list may hold one twice.
    """

    def __init__(self) -> None:
        self.appended: dict[int, Any] = {}
        self.read: dict[int, Any] = {}
        self.popped: dict[int, Any] = {}
        self.is_repeated = False

    def holds(self, key: int) -> bool:
        """Return whether a list may hold the container with this id."""
        return key in self.appended or key in self.read

    def was_read(self, key: int) -> bool:
        """Return whether a list has given the container with this id."""
        return key in self.read or key in self.popped

    def is_known(self, key: int) -> bool:
        """Return whether a list was given the container with this id, or has given it."""
        return key in self.appended or self.was_read(key)

    def add_alias(self, container: Any, key: int) -> None:
        """Note that a container may be the one with this id."""
        for known in (self.appended, self.read, self.popped):
            if key in known:
                known[id(container)] = container

    def others(self, container: Any) -> list[Any]:
        """Return the containers that one a list has given may be, which a variable may hold."""
        known = {**self.appended, **self.read, **self.popped}
        return [x for key, x in known.items() if x is not container and type(x) is type(container)]


_active: ContextVar[ListedContainers | None] = ContextVar("wend_listed_containers", default=None)


def tracking() -> AbstractContextManager[Any]:
    """Track the containers in the items of traced lists in this block, the trace of a function."""
    return scoped(_active, ListedContainers())


def listed() -> ListedContainers | None:
    """Return what is known of the trace that is active, if a list has items with containers."""
    active = _active.get()
    return active if active and (active.appended or active.read or active.popped) else None


def note_appended(item: Any, is_new: Callable[[Any], bool] = lambda container: True) -> None:
    """Note that a traced list was given an item.

    `is_new` tells whether a container is made anew wherever the item is given.
    """
    active = _active.get()
    if active is None:
        return
    for container in containers_in(item):
        active.is_repeated |= active.holds(id(container)) or not is_new(container)
        active.appended[id(container)] = container


def note_first_items(items: Any) -> None:
    """Note the items of a list that becomes a traced one, which may be tried several times."""
    active, containers = _active.get(), [*containers_in([*items])][1:]
    if active is not None:
        by_id = {id(container): container for container in containers}
        active.is_repeated |= len(by_id) < len(containers)
        active.appended |= by_id


def note_read(item: Any, *, is_popped: bool) -> None:
    """Note that a traced list has given an item, which it may hold further."""
    active = _active.get()
    if active is not None:
        target = active.popped if is_popped else active.read
        target.update((id(container), container) for container in containers_in(item))
