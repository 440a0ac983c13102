"""What the functions of a trace read of the Python around them, and what of it has changed."""

from __future__ import annotations

import os
import types
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from wend.base.context_values import scoped
from wend.capture.guards.free_names import (
    Path,
    Place,
    mentioned,
    mentioned_without,
    place,
)
from wend.capture.heap.snapshots import (
    MISSING,
    Mark,
    mark,
    short,
)
from wend.capture.libraries import is_library
from wend.capture.stage.uncaptured import is_captured


@dataclass(frozen=True, slots=True)
class Change:
    """A value that is not what it was when it was traced."""

    name: str
    old: str
    new: str

    def __str__(self) -> str:
        if self.new == self.old:
            return f"{self.name} is another ({self.old})"
        return f"{self.name} is {self.new}, not {self.old}"


class ReadGuard:
    """One value that a trace read, by its name."""

    __slots__ = ("mark", "name", "path")

    def __init__(self, path: Path, mark: Mark) -> None:
        self.path, self.mark = path, mark
        self.name = ".".join((path.root, *path.attributes))

    def __repr__(self) -> str:
        return f"{self.name} = {self.mark}"


class GuardGroup:
    """What one function read, from its globals and closure or from one of its parameters.

    It holds the function and the parameter weakly: where one is gone, nothing can change.
    """

    __slots__ = ("function", "owner", "reads")

    def __init__(self, fun: types.FunctionType, owner: Any = None) -> None:
        self.function = weakref.ref(fun)
        self.owner = None if owner is None else weakref.ref(owner)
        self.reads: list[ReadGuard] = []

    def changes(self) -> Iterator[tuple[ReadGuard, Any]]:
        """What is not what it was, with what it is now."""
        fun = self.function()
        if fun is None:
            return
        owner = self.owner and self.owner()
        if self.owner is not None and owner is None:
            return
        names = fun.__globals__
        for read in self.reads:
            path = read.path
            if path.kind == "global" and not path.attributes:
                now = names.get(path.root, MISSING)
            else:
                now = _value(_root(fun, path, owner), path.attributes)
            if not read.mark.holds(now):
                yield read, now


class GuardSet:
    """What a trace read of Python."""

    def __init__(self, groups: Iterable[GuardGroup] = ()) -> None:
        self.groups = tuple(group for group in groups if group.reads)

    def changes(self) -> list[Change]:
        """What has changed since."""
        return [
            Change(read.name, str(read.mark), "gone" if now is MISSING else short(now))
            for group in self.groups
            for read, now in group.changes()
        ]

    def texts(self) -> list[str]:
        """The numbers, strings and containers that it read, by name."""
        found = (read for group in self.groups for read in group.reads if read.mark.is_data)
        return list(dict.fromkeys(map(repr, found)))


class GuardRecorder:
    """Collects what functions read while a trace is recorded."""

    def __init__(self) -> None:
        self._functions: dict[int, Any] = {}  # kept, so that ids stay their own
        self._groups: dict[tuple[int, int], GuardGroup] = {}
        self._inner: dict[int, GuardGroup] = {}
        self.hosts: set[Place] = set()  # functions that run with the graph: they read anew

    def add(self, fun: types.FunctionType, owners: Mapping[str, Any]) -> None:
        """Note a function that is about to run; `owners`: objects that are its parameters."""
        paths = None if id(fun) in self._functions else mentioned(fun.__code__)
        if paths is not None:
            self._functions[id(fun)] = fun
            outside = [path for path in paths if path.kind != "parameter"]
            self._groups[id(fun), 0] = self._group(GuardGroup(fun), fun, outside, None)
        for name, owner in owners.items():
            if (id(fun), id(owner)) in self._groups or _own_names(owner) is None:
                continue
            own = [
                path
                for path in mentioned(fun.__code__)
                if path.kind == "parameter" and path.root == name and path.attributes
            ]
            try:
                group = GuardGroup(fun, owner)
            except TypeError:  # it cannot be held weakly
                continue
            self._functions[id(owner)] = owner
            self._groups[id(fun), id(owner)] = self._group(group, fun, own, owner)

    def _group(
        self, group: GuardGroup, fun: types.FunctionType, paths: Iterable[Path], owner: Any
    ) -> GuardGroup:
        found: dict[tuple[str, str, tuple[str, ...]], ReadGuard] = {}
        for path in paths:
            root = _root(fun, path, owner)
            if root is MISSING or path.root.startswith("__") or _is_library(root):
                continue
            # As far as attributes are plain: what getters and methods give is not looked at.
            count = _plain(root, path.attributes)
            if owner is not None and not count:
                continue
            known = Path(path.kind, path.root, path.attributes[:count])
            now = mark(_value(root, known.attributes))
            if now is not None:
                found[known.kind, known.root, known.attributes] = ReadGuard(known, now)
        group.reads = list(found.values())
        return group

    def include(self, reads: GuardSet) -> None:
        """Add what a trace read that this one calls."""
        self._inner.update({id(group): group for group in reads.groups})

    def finished(self) -> GuardSet:
        """What was read, without what the trace itself has changed: that is its own doing."""
        for group in self._groups.values():
            changed = {id(read) for read, _ in group.changes()}
            kept = self._kept(group)
            group.reads = [
                read
                for read in group.reads
                if id(read) not in changed and (kept is None or _is_among(read, kept))
            ]
        return GuardSet([*self._groups.values(), *self._inner.values()])

    def _kept(self, group: GuardGroup) -> tuple[Path, ...] | None:
        """What is mentioned outside of host functions; None: there are none."""
        fun = group.function() if self.hosts else None
        return None if fun is None else mentioned_without(fun.__code__, self.hosts)


def _is_among(read: ReadGuard, paths: Iterable[Path]) -> bool:
    """Whether one of the paths leads by what was read."""
    own = read.path
    return any(
        (path.kind, path.root, path.attributes[: len(own.attributes)])
        == (own.kind, own.root, own.attributes)
        for path in paths
    )


_reading: ContextVar[GuardRecorder | None] = ContextVar("wend_reading", default=None)


def reading() -> AbstractContextManager[GuardRecorder]:
    """Collect what functions read in this block."""
    return scoped(_reading, GuardRecorder())


def note(fun: types.FunctionType, **owners: Any) -> None:
    """Tell the trace under way that it runs a function; `owners`: objects it is given, by name."""
    found = _reading.get()
    # Functions that captured code makes are part of the code of what made them.
    if found is None or is_captured(fun.__code__) or is_library(fun.__code__.co_filename):
        return
    found.add(fun, owners)


def note_host(fun: Any) -> None:
    """Tell the trace under way that a function runs with the graph, not now."""
    found = _reading.get()
    if found is not None and isinstance(fun, types.FunctionType):
        found.hosts.add(place(fun.__code__))


def note_method(fun: Any, owner: Any) -> None:
    """Tell the trace under way that it runs a method of an object."""
    if isinstance(fun, types.FunctionType) and fun.__code__.co_argcount:
        note(fun, **{fun.__code__.co_varnames[0]: owner})


def include(reads: GuardSet) -> None:
    """Tell the trace under way that it calls what was traced before."""
    found = _reading.get()
    if found is not None:
        found.include(reads)


def _root(fun: types.FunctionType, path: Path, owner: Any) -> Any:
    if path.kind == "global":
        return fun.__globals__.get(path.root, MISSING)
    if path.kind == "parameter":
        return MISSING if owner is None else owner
    cell = (fun.__closure__ or ())[fun.__code__.co_freevars.index(path.root)]
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return MISSING


def _plain(root: Any, attributes: tuple[str, ...]) -> int:
    """How many of the attributes can be had without running anything."""
    for count, name in enumerate(attributes):
        root = _attribute(root, name)
        if root is MISSING:
            return count
    return len(attributes)


def _value(root: Any, attributes: tuple[str, ...]) -> Any:
    for name in attributes:
        root = _attribute(root, name)
    return root


def _attribute(owner: Any, name: str) -> Any:
    """What an object, a module or a class holds by a name, if it can be had by looking."""
    kind = owner if issubclass(type(owner), type) else type(owner)
    of_class = next((b.__dict__[name] for b in kind.__mro__ if name in b.__dict__), MISSING)
    if owner is not kind and not hasattr(type(of_class), "__set__"):
        own = _own_names(owner)
        if own is not None and name in own:
            return own[name]
    return MISSING if hasattr(type(of_class), "__get__") else of_class


def _own_names(owner: Any) -> dict[str, Any] | None:
    """What an object holds by names, without running code of its class."""
    try:
        found = object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return None
    return found if type(found) is dict else None


def _is_library(value: Any) -> bool:
    """Whether it is a module that is not the user's."""
    if not issubclass(type(value), types.ModuleType):
        return False
    file = getattr(value, "__file__", None)
    return file is None or is_library(os.path.abspath(file))
