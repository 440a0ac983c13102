"""Reads of the Python world outside of a trace, each with what it gave (D44)."""

from __future__ import annotations

import contextlib
import types
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Any

import numpy as np

from wend.backends.fastcall import MISSING, GuardCheck
from wend.base.lazy.dataclass import dataclass
from wend.capture.guards.checks import (
    attribute_checks,
    call_check,
    cell_check,
    content_checks,
    distinct,
    global_check,
    item_check,
)
from wend.capture.heap.buffers import shows_memory
from wend.capture.heap.containers import containers_in
from wend.capture.heap.places import (
    AttributePlace,
    CellPlace,
    ElementsPlace,
    GlobalPlace,
    ItemsPlace,
    Place,
    instance_dict,
)
from wend.capture.heap.snapshots import Snapshot, ValueSnapshot, is_number, short_repr


@dataclass(frozen=True, slots=True)
class Change:
    """A value that changed since it was traced."""

    name: str
    old: str
    new: str

    def __str__(self) -> str:
        if self.new == self.old:
            return f"{self.name} is another ({self.old})"
        return f"{self.name} is {self.new}, not {self.old}"


class Read(ABC):
    """A guard on one value that a trace read from an object of outside, its owner.

    The owner is held weakly where that is possible: once it is gone, the guard cannot fail.
    """

    __slots__ = ("key", "name", "owner", "snapshot")

    def __init__(self, name: str, owner: Any, key: Any, snapshot: Snapshot) -> None:
        self.name, self.key, self.snapshot = name, key, snapshot
        self.owner: Callable[[], Any] = lambda: owner
        if not shows_memory(owner):  # one that does is made anew by each read of it
            with contextlib.suppress(TypeError):
                self.owner = weakref.ref(owner)

    def __repr__(self) -> str:
        return f"{self.name} = {self.snapshot}"

    @abstractmethod
    def value_in(self, owner: Any) -> Any:
        """Return the current value in the owner; `MISSING` if there is none."""

    def change(self) -> Change | None:
        """Return the change of the value since it was read, or None."""
        owner = self.owner()
        if owner is None:
            return None
        now = self.value_in(owner)
        if self.snapshot.matches(now):
            return None
        return Change(self.name, str(self.snapshot), "gone" if now is MISSING else short_repr(now))

    def checks(self) -> Iterator[GuardCheck | None]:
        """Yield checks that hold as long as the guard does; None if it fails now."""
        owner = self.owner()
        if owner is None:
            return
        value = self.value_in(owner)
        if not self.snapshot.matches(value):
            yield None
            return
        links = [*self.links(owner, value)]
        if None in links:
            yield call_check(lambda: self.change() is None)
            return
        yield from links
        yield from content_checks(self.snapshot, value)

    def places(self) -> Iterator[Place]:
        """Yield the places that code writes which changes what is read here."""
        owner = self.owner()
        value = self.value_in(owner)
        yield from self.own_places(owner)
        if type(value) is np.ndarray:
            yield ElementsPlace(self.name, value)
        for container in containers_in(value):
            yield ItemsPlace(self.name, container)

    def own_places(self, owner: Any) -> Iterator[Place]:
        """Yield the place in the owner, if it can be written by itself."""
        yield from ()

    @abstractmethod
    def links(self, owner: Any, value: Any) -> Iterator[GuardCheck | None]:
        """Yield the checks that the owner has this value; None if compiled code cannot tell."""


class GlobalRead(Read):
    """A read of a global; the owner is the module's dict."""

    __slots__ = ()

    def value_in(self, owner: Any) -> Any:
        return owner.get(self.key, MISSING)

    def links(self, owner: Any, value: Any) -> Iterator[GuardCheck | None]:
        yield global_check(owner, self.key, value)

    def own_places(self, owner: Any) -> Iterator[Place]:
        yield GlobalPlace(self.key, owner)


class AttributeRead(Read):
    """A read of an attribute: of what the object, or its class, holds under the name."""

    __slots__ = ()

    def value_in(self, owner: Any) -> Any:
        return static_attribute(owner, self.key)

    def links(self, owner: Any, value: Any) -> Iterator[GuardCheck | None]:
        yield from attribute_checks(owner, self.key, value)

    def own_places(self, owner: Any) -> Iterator[Place]:
        yield AttributePlace(self.name, owner, self.key)


class PartRead(Read):
    """A read of what a function or `functools.partial` is made of."""

    __slots__ = ()

    def value_in(self, owner: Any) -> Any:
        return getattr(owner, self.key, MISSING)

    def links(self, owner: Any, value: Any) -> Iterator[GuardCheck | None]:
        if isinstance(owner, types.FunctionType):
            yield GuardCheck("part", owner, self.key, value)
        else:
            yield from attribute_checks(owner, self.key, value)


class KeysRead(Read):
    """A read of the names that a module, or an object or class itself, has."""

    __slots__ = ()

    def value_in(self, owner: Any) -> Any:
        if type(owner) is dict:  # of a module
            return tuple(owner)
        return tuple(vars(owner) if isinstance(owner, type) else instance_dict(owner) or ())

    def links(self, owner: Any, value: Any) -> Iterator[GuardCheck | None]:
        yield None


class ItemRead(Read):
    """A read of an item of a list, tuple or dict."""

    __slots__ = ()

    def value_in(self, owner: Any) -> Any:
        try:
            return owner[self.key]
        except (KeyError, IndexError):
            return MISSING

    def links(self, owner: Any, value: Any) -> Iterator[GuardCheck | None]:
        yield from item_check(owner, self.key, value)


class CellRead(Read):
    """A read of a closure's variable; the owner is the cell."""

    __slots__ = ()

    def value_in(self, owner: Any) -> Any:
        try:
            return owner.cell_contents
        except ValueError:  # not bound
            return MISSING

    def links(self, owner: Any, value: Any) -> Iterator[GuardCheck | None]:
        yield cell_check(owner, value)

    def own_places(self, owner: Any) -> Iterator[Place]:
        yield CellPlace(self.name, owner)


class CallRead(Read):
    """A read of what a method of an object with a memory returns; the program would call it too."""

    __slots__ = ()

    def value_in(self, owner: Any) -> Any:
        try:
            name, args, keywords = self.key
            return getattr(owner, name)(*args, **dict(keywords))
        except Exception:  # noqa: BLE001  # the trace that is made next raises it
            return MISSING

    def links(self, owner: Any, value: Any) -> Iterator[GuardCheck | None]:
        yield None


class ContentsRead(Read):
    """A read of a whole container, or of the elements of an array."""

    __slots__ = ()

    def value_in(self, owner: Any) -> Any:
        return owner

    def links(self, owner: Any, value: Any) -> Iterator[GuardCheck | None]:
        yield from ()


class GuardSet:
    """The guards of a trace."""

    def __init__(self, reads: Iterable[Read] = ()) -> None:
        self.reads = tuple(reads)

    def hold(self) -> bool:
        """Return whether no guard fails."""
        return all(read.change() is None for read in self.reads)

    def checks(self) -> list[GuardCheck] | None:
        """Return checks that hold as long as no guard fails; None if one fails now."""
        checks: list[GuardCheck] = []
        for read in self.reads:
            for check in read.checks():
                if check is None:
                    return None
                checks.append(check)
        return distinct(checks)

    def changed_numbers(self) -> dict[Any, Place]:
        """Return the places, by key, of numbers whose values are others now, of their classes."""
        places: dict[Any, Place] = {}
        for read in self.reads:
            owner = read.owner()
            if owner is not None and isinstance(read.snapshot, ValueSnapshot):
                old, now = read.snapshot.value, read.value_in(owner)
                if type(now) is type(old) and is_number(old) and not read.snapshot.matches(now):
                    own: Iterable[Place] = read.own_places(owner)
                    if isinstance(read, ItemRead) and isinstance(owner, (list, dict)):
                        own = [ItemsPlace(read.name.partition("[")[0], owner)]
                    places.update((place.key, place) for place in own)
        return places

    def changes(self) -> list[Change]:
        """Return the values that changed since the trace."""
        return [change for read in self.reads if (change := read.change()) is not None]

    def texts(self) -> list[str]:
        """Return the numbers, strings and containers that the trace read, by name."""
        return list(dict.fromkeys(repr(read) for read in self.reads if read.snapshot.is_data))


def static_attribute(owner: Any, name: str) -> Any:
    """Return what an object, module or class holds under a name, without running code.

    It is a value, or a method, property or other descriptor as the class holds it; `MISSING` if
    there is none.
    """
    kind = type(owner)
    of_class = class_attribute(kind, name)
    if isinstance(of_class, types.MemberDescriptorType):
        return getattr(owner, name, MISSING)  # a slot
    if hasattr(type(of_class), "__set__"):
        return of_class
    if issubclass(kind, type):
        own = class_attribute(owner, name)
    else:
        own = (instance_dict(owner) or {}).get(name, MISSING)
    return of_class if own is MISSING else own


def class_attribute(kind: type, name: str) -> Any:
    """Return what a class or a base of it holds under a name; `MISSING` if there is none."""
    return next((b.__dict__[name] for b in kind.__mro__ if name in b.__dict__), MISSING)


def held_names(owner: Any, names: Set[str]) -> set[str]:
    """Return the names under which an object, module or class holds something."""
    kind = type(owner)
    namespaces: list[Mapping[str, Any]] = [base.__dict__ for base in kind.__mro__]
    if issubclass(kind, type):
        namespaces += [base.__dict__ for base in owner.__mro__]
    else:
        namespaces.append(instance_dict(owner) or {})
    return {name for namespace in namespaces for name in names & namespace.keys()}
