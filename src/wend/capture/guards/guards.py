"""Guards on the Python values that the functions of a trace read."""

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
from wend.capture.guards.free_names import CodeKey, Path, code_key, free_paths, free_paths_excluding
from wend.capture.heap.snapshots import MISSING, Snapshot, short_repr, snapshot
from wend.capture.libraries import is_library
from wend.capture.stage.uncaptured import is_captured


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


class ReadGuard:
    """A guard on one value that a trace read, by its name."""

    __slots__ = ("name", "path", "snapshot")

    def __init__(self, path: Path, snapshot: Snapshot) -> None:
        self.path, self.snapshot = path, snapshot
        self.name = ".".join((path.root, *path.attributes))

    def __repr__(self) -> str:
        return f"{self.name} = {self.snapshot}"


class GuardGroup:
    """The guards on what one function read, from its globals and closure or from one parameter.

    It refers to the function and the parameter weakly: once one is gone, no guard can fail.
    """

    __slots__ = ("function", "owner", "reads")

    def __init__(self, fun: types.FunctionType, owner: Any = None) -> None:
        self.function = weakref.ref(fun)
        self.owner = None if owner is None else weakref.ref(owner)
        self.reads: list[ReadGuard] = []

    def changes(self) -> Iterator[tuple[ReadGuard, Any]]:
        """Yield the guards that fail, with the current values."""
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
            if not read.snapshot.matches(now):
                yield read, now


class GuardSet:
    """The guards of a trace."""

    def __init__(self, groups: Iterable[GuardGroup] = ()) -> None:
        self.groups = tuple(group for group in groups if group.reads)

    def changes(self) -> list[Change]:
        """Return the values that changed since the trace."""
        return [
            Change(read.name, str(read.snapshot), "gone" if now is MISSING else short_repr(now))
            for group in self.groups
            for read, now in group.changes()
        ]

    def texts(self) -> list[str]:
        """Return the numbers, strings and containers that the trace read, by name."""
        guards = (read for group in self.groups for read in group.reads if read.snapshot.is_data)
        return list(dict.fromkeys(map(repr, guards)))


class GuardRecorder:
    """Collects guards while a trace is recorded."""

    def __init__(self) -> None:
        self._functions: dict[int, Any] = {}  # keeps the objects, so that no id is reused
        self._groups: dict[tuple[int, int], GuardGroup] = {}
        self._inner: dict[int, GuardGroup] = {}
        self.hosts: set[CodeKey] = set()  # functions called at run time: they read current values

    def add(self, fun: types.FunctionType, owners: Mapping[str, Any]) -> None:
        """Add guards for a function about to run; `owners`: objects that are its parameters."""
        paths = None if id(fun) in self._functions else free_paths(fun.__code__)
        if paths is not None:
            self._functions[id(fun)] = fun
            outer_paths = [path for path in paths if path.kind != "parameter"]
            self._groups[id(fun), 0] = self._group(GuardGroup(fun), fun, outer_paths, None)
        for name, owner in owners.items():
            if (id(fun), id(owner)) in self._groups or _instance_dict(owner) is None:
                continue
            paths_of_owner = [
                path
                for path in free_paths(fun.__code__)
                if path.kind == "parameter" and path.root == name and path.attributes
            ]
            try:
                group = GuardGroup(fun, owner)
            except TypeError:  # it cannot be held weakly
                continue
            self._functions[id(owner)] = owner
            self._groups[id(fun), id(owner)] = self._group(group, fun, paths_of_owner, owner)

    def _group(
        self, group: GuardGroup, fun: types.FunctionType, paths: Iterable[Path], owner: Any
    ) -> GuardGroup:
        guards: dict[tuple[str, str, tuple[str, ...]], ReadGuard] = {}
        for path in paths:
            root = _root(fun, path, owner)
            if root is MISSING or path.root.startswith("__") or _is_library_module(root):
                continue
            # Only plain attributes are guarded, not the results of getters and methods.
            count = _count_plain(root, path.attributes)
            if owner is not None and not count:
                continue
            guarded = Path(path.kind, path.root, path.attributes[:count])
            value = snapshot(_value(root, guarded.attributes))
            if value is not None:
                guards[guarded.kind, guarded.root, guarded.attributes] = ReadGuard(guarded, value)
        group.reads = list(guards.values())
        return group

    def include(self, reads: GuardSet) -> None:
        """Add the guards of a trace that this one calls."""
        self._inner.update({id(group): group for group in reads.groups})

    def finished(self) -> GuardSet:
        """Return the guards, without those on values that the trace itself changed."""
        for group in self._groups.values():
            changed = {id(read) for read, _ in group.changes()}
            paths_outside_hosts = self._paths_outside_hosts(group)
            group.reads = [
                read
                for read in group.reads
                if id(read) not in changed
                and (paths_outside_hosts is None or _is_prefix_of_any(read, paths_outside_hosts))
            ]
        return GuardSet([*self._groups.values(), *self._inner.values()])

    def _paths_outside_hosts(self, group: GuardGroup) -> tuple[Path, ...] | None:
        """Return the paths mentioned outside of host functions; None if there are none."""
        fun = group.function() if self.hosts else None
        return None if fun is None else free_paths_excluding(fun.__code__, self.hosts)


def _is_prefix_of_any(read: ReadGuard, paths: Iterable[Path]) -> bool:
    """Return whether the guarded path is a prefix of one of the paths."""
    guarded = read.path
    return any(
        (path.kind, path.root, path.attributes[: len(guarded.attributes)])
        == (guarded.kind, guarded.root, guarded.attributes)
        for path in paths
    )


_recorder: ContextVar[GuardRecorder | None] = ContextVar("wend_reading", default=None)


def record_guards() -> AbstractContextManager[GuardRecorder]:
    """Record guards in this block."""
    return scoped(_recorder, GuardRecorder())


def guard_function(fun: types.FunctionType, **owners: Any) -> None:
    """Tell the active trace that it runs a function; `owners`: objects that it gets, by name."""
    recorder = _recorder.get()
    # Functions that captured code defines belong to the code of the defining function.
    if recorder is None or is_captured(fun.__code__) or is_library(fun.__code__.co_filename):
        return
    recorder.add(fun, owners)


def guard_host_function(fun: Any) -> None:
    """Tell the active trace that a function runs with the graph, not now."""
    recorder = _recorder.get()
    if recorder is not None and isinstance(fun, types.FunctionType):
        recorder.hosts.add(code_key(fun.__code__))


def guard_method(fun: Any, owner: Any) -> None:
    """Tell the active trace that it runs a method of an object."""
    if isinstance(fun, types.FunctionType) and fun.__code__.co_argcount:
        guard_function(fun, **{fun.__code__.co_varnames[0]: owner})


def include_guards(reads: GuardSet) -> None:
    """Tell the active trace that it calls a trace with these guards."""
    recorder = _recorder.get()
    if recorder is not None:
        recorder.include(reads)


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


def _count_plain(root: Any, attributes: tuple[str, ...]) -> int:
    """Return how many of the attributes can be read without running code."""
    for count, name in enumerate(attributes):
        root = _static_attribute(root, name)
        if root is MISSING:
            return count
    return len(attributes)


def _value(root: Any, attributes: tuple[str, ...]) -> Any:
    for name in attributes:
        root = _static_attribute(root, name)
    return root


def _static_attribute(owner: Any, name: str) -> Any:
    """Return an attribute of an object, module or class, if reading it runs no code."""
    kind = owner if issubclass(type(owner), type) else type(owner)
    of_class = next((b.__dict__[name] for b in kind.__mro__ if name in b.__dict__), MISSING)
    if owner is not kind and not hasattr(type(of_class), "__set__"):
        instance_dict = _instance_dict(owner)
        if instance_dict is not None and name in instance_dict:
            return instance_dict[name]
    return MISSING if hasattr(type(of_class), "__get__") else of_class


def _instance_dict(owner: Any) -> dict[str, Any] | None:
    """Return the `__dict__` of an object, without running code of its class."""
    try:
        instance_dict = object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return None
    return instance_dict if type(instance_dict) is dict else None


def _is_library_module(value: Any) -> bool:
    """Return whether a value is a module that is not the user's."""
    if not issubclass(type(value), types.ModuleType):
        return False
    file = getattr(value, "__file__", None)
    return file is None or is_library(os.path.abspath(file))
