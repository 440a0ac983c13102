"""Records what a trace reads of the Python around it, as guards (D44).

Captured code reports its reads where they happen: names, attributes and items of objects of
outside. An object is of outside if a name that the function does not bind leads to it, over
attributes and items. Code that is not captured is not observed: of such functions, the methods of
operators above all, the values that their code mentions are guarded.
"""

from __future__ import annotations

import builtins
import functools
import os
import types
from collections.abc import ItemsView, Iterator, ValuesView
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from wend.backends.fastcall import MISSING
from wend.base.context_values import scoped
from wend.capture.guards.free_names import CodeKey, Path, code_key, free_paths, free_paths_excluding
from wend.capture.guards.reads import (
    AttributeRead,
    CellRead,
    ClassRead,
    ContentsRead,
    GlobalRead,
    GuardSet,
    ItemRead,
    KeysRead,
    PartRead,
    Read,
    instance_dict,
    static_attribute,
)
from wend.capture.heap.snapshots import (
    CONTAINERS,
    ElementsSnapshot,
    IdentitySnapshot,
    Snapshot,
    container_kind,
    is_atom,
    items_of,
    snapshot,
)
from wend.capture.libraries import is_library
from wend.capture.syntax.names import PREFIX
from wend.capture.uncaptured import is_captured
from wend.eager.dispatch import Staged
from wend.ir.dtypes import is_supported
from wend.trace.recording.known_values import contents_read_by
from wend.trace.recording.recording import current
from wend.trace.state.variable import Variable

_UNOBSERVED = (
    *(types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, type),
    *(Staged, Variable, np.ndarray, np.generic, np.ufunc, property),
)


class GuardRecorder:
    """Collects guards while a trace is recorded."""

    def __init__(self) -> None:
        self._reads: dict[tuple[Any, ...], Read] = {}
        self._alive: dict[int, Any] = {}  # objects of outside, so that no id is used again
        self._outside: dict[int, str] = {}  # objects of outside -> their names
        self._arrays: dict[int, np.ndarray] = {}  # arrays that containers of outside hold
        self._cells: dict[int, list[tuple[types.FunctionType, str]]] = {}
        self._uncaptured: dict[tuple[int, int], Any] = {}
        self._inner: dict[int, Read] = {}
        self.hosts: set[CodeKey] = set()  # functions called at run time: they read current values

    # What captured code reads
    def read_global(
        self, namespace: dict[str, Any], name: str, value: Any, *, is_base: bool = False
    ) -> Any:
        """Note that captured code reads a global; return the value for it to use."""
        if name not in namespace:
            # The guard is that no global comes to hide the builtin.
            self._note(GlobalRead, namespace, name, IdentitySnapshot(MISSING), name)
            return value
        self._note_keyed(GlobalRead, namespace, name, value, name, is_base)
        return self.enter(value, name)

    def read_attribute(self, owner: Any, name: str, value: Any, is_base: bool = False) -> Any:
        """Note that captured code reads an attribute; return the value for it to use."""
        label = self._outside.get(id(owner))
        if label is None:
            holder = self._class_of_attribute(owner, name)
            if holder is None:
                return value
            owner, label = holder, holder.__name__
        if static_attribute(owner, name) is not value:
            return value  # made by code of the user's, which is observed itself
        label = f"{label}.{name}"
        self._note_keyed(AttributeRead, owner, name, value, label, is_base)
        return self.enter(value, label)

    def read_absence(self, owner: Any, name: str) -> None:
        """Note that captured code finds that an object of outside lacks an attribute."""
        label = self._outside.get(id(owner))
        if label is not None:
            absent = IdentitySnapshot(MISSING)
            self._note(AttributeRead, owner, name, absent, f"{label}.{name}")

    def read_item(self, owner: Any, key: Any, value: Any, is_base: bool = False) -> Any:
        """Note that captured code reads an item of a container; return the value for it to use."""
        label = self._outside.get(id(owner))
        if label is None or container_kind(type(owner)) is None or isinstance(key, Staged):
            return value
        if isinstance(key, slice):
            self.read_contents(owner)
            return value
        label = f"{label}[{key!r}]"
        self._note_keyed(ItemRead, owner, key, value, label, is_base)
        return self.enter(value, label)

    def read_method(self, method: types.MethodType) -> None:
        """Note that captured code calls a method of the user's."""
        kind, name = type(method.__self__), method.__func__.__name__
        for base in kind.__mro__:
            if base.__dict__.get(name) is method.__func__:
                self._mark(base, base.__name__)
                label = f"{base.__name__}.{name}()"
                self._note(ClassRead, base, name, IdentitySnapshot(method.__func__), label)
                return

    def read_container(self, value: Any) -> None:
        """Note that captured code reads a whole container, if it is one."""
        if container_kind(type(value)) is not None:
            self.read_contents(value)

    def read_contents(self, owner: Any) -> bool:
        """Note that code reads the whole of an object or container; return if it is of outside."""
        label = self._outside.get(id(owner))
        if label is None:
            return False
        if container_kind(type(owner)) is not None:
            self._note(ContentsRead, owner, None, snapshot(owner), label)
        names = tuple(instance_dict(owner) or ())
        if instance_dict(owner) is not None:
            self._note(KeysRead, owner, None, snapshot(names), f"the attributes of {label}")
        for name in (*names, *_slots(type(owner))):
            value = static_attribute(owner, name)
            if value is not MISSING:
                self._note_keyed(AttributeRead, owner, name, value, f"{label}.{name}", False)
                self.enter(value, f"{label}.{name}")
        return True

    def read_elements(self, array: Any) -> None:
        """Note that Python reads the elements of an array of outside."""
        label = self._outside.get(id(array), "an array")
        self._note(ContentsRead, array, None, ElementsSnapshot(array), f"the contents of {label}")

    def enter(self, value: Any, label: str) -> Any:
        """Take a value of outside into the trace; return the value for captured code to use.

        Arrays become captures of the function that is recorded. Objects are observed from now on.
        """
        kind = type(value)
        if is_atom(kind):
            return value
        if kind is np.ndarray:
            return self._enter_array(value, label)
        if container_kind(kind) is not None:
            self._enter_container(value, label)
        if kind is types.ModuleType and not _is_library_module(value):
            self._mark(value, label)
        if kind not in CONTAINERS and not issubclass(kind, _UNOBSERVED) and not _is_of_wend(kind):
            self._enter_object(value, label)
        return value

    def _mark(self, value: Any, label: str) -> bool:
        """Mark an object as one of outside; return whether it was not known yet."""
        if id(value) in self._outside:
            return False
        self._outside[id(value)] = label
        self._keep(value)
        return True

    def _keep(self, value: Any) -> None:
        """Keep an object of outside alive; a class may be one that the trace has made."""
        if not issubclass(type(value), type) or "<locals>" not in value.__qualname__:
            self._alive[id(value)] = value

    def _enter_array(self, array: np.ndarray, label: str) -> Any:
        self._mark(array, label)
        recording = current()
        if recording is None or recording.runs_now():
            return array
        captures = recording.function().captures
        if captures.frozen is not None:
            return array
        if not is_supported(array.dtype):
            self.read_elements(array)
            return array
        return recording.function().captured(array)

    def _enter_container(self, container: Any, label: str) -> None:
        if not self._mark(container, label):
            return
        for value in items_of(container):
            if type(value) is np.ndarray:
                self._arrays[id(value)] = value
                self._mark(value, f"an array in {label}")
            elif not is_atom(type(value)) and not issubclass(type(value), _UNOBSERVED):
                self.enter(value, f"an item of {label}")

    def _enter_object(self, value: Any, label: str) -> None:
        self._mark(value, label)
        for method in _operators(type(value)):
            self.add_uncaptured(method, value)

    def items(self, value: Any) -> Any:
        """Return an iterable whose items captured code takes; arrays of outside become captures."""
        if not self._arrays or type(value) not in (list, tuple):
            return value
        if not any(self._holds_array(item) for item in value):
            return value
        entered = [self.entered_item(item) for item in value]
        return entered if type(value) is list else tuple(entered)

    def entered_result(self, owner: Any, result: Any) -> Any:
        """Return what a method of a container of outside gives, for captured code to use."""
        if isinstance(result, (ValuesView, ItemsView)) and any(map(self._holds_array, result)):
            return [self.entered_item(item) for item in result]
        if id(result) in self._arrays or any(result is item for item in items_of(owner)):
            return self.enter(result, f"an item of {self._outside[id(owner)]}")
        return result

    def _holds_array(self, item: Any) -> bool:
        if type(item) is tuple:
            return any(map(self._holds_array, item))
        return id(item) in self._arrays

    def entered_item(self, item: Any) -> Any:
        """Return an item with the arrays of outside in it as captures."""
        if type(item) is tuple:
            return tuple(map(self.entered_item, item)) if self._holds_array(item) else item
        if id(item) in self._arrays:
            return self._enter_array(item, self._outside[id(item)])
        return item

    @staticmethod
    def _class_of_attribute(owner: Any, name: str) -> type | None:
        """Return the user's class that holds an attribute of an instance made in the trace."""
        if issubclass(type(owner), _UNOBSERVED) or name in (instance_dict(owner) or ()):
            return None
        for base in type(owner).__mro__:
            if name in base.__dict__:
                is_observed = not base.__flags__ & _IMMUTABLE_TYPE and not _is_of_wend(base)
                return base if is_observed else None
        return None

    def _note_keyed(
        self, kind: type[Read], owner: Any, key: Any, value: Any, label: str, is_base: bool
    ) -> None:
        """Note a read; if only a part of the value is read, guard which container it is."""
        is_part = is_base and container_kind(type(value)) is not None
        self._note(kind, owner, key, IdentitySnapshot(value) if is_part else snapshot(value), label)

    def _note(
        self, kind: type[Read], owner: Any, key: Any, value: Snapshot | None, label: str
    ) -> None:
        identity = (kind, id(owner), key, type(key), type(value))
        if value is not None and identity not in self._reads:
            self._keep(owner)
            self._reads[identity] = kind(label, owner, key, value)

    # What functions that run are made of
    def add_captured(self, fun: types.FunctionType) -> None:
        """Guard the parts of a function that runs in captured form, and its closure."""
        if not self._mark(fun, fun.__name__):
            return
        code = fun.__code__
        self._note(PartRead, fun, "__code__", IdentitySnapshot(code), f"{fun.__name__}()")
        self._add_defaults(fun)
        for name, cell in zip(code.co_freevars, fun.__closure__ or (), strict=True):
            if not name.startswith("__"):
                self._add_cell(fun, name, cell)

    def _add_defaults(self, fun: types.FunctionType) -> None:
        for name in ("__defaults__", "__kwdefaults__"):
            value = getattr(fun, name)
            label = f"{fun.__name__}.{name}"
            if value:
                self._note(PartRead, fun, name, snapshot(value), label)
                self._enter_container(value, label)

    def add_partial(self, partial: functools.partial[Any]) -> None:
        """Guard the arguments that a `functools.partial` of outside holds."""
        if id(partial) not in self._outside:
            return
        for name in ("args", "keywords"):
            value = getattr(partial, name)
            if value:
                self._note(PartRead, partial, name, snapshot(value), f"partial.{name}")
                self._enter_container(value, f"partial.{name}")

    def _add_cell(self, fun: types.FunctionType, name: str, cell: types.CellType) -> Any:
        try:
            value = cell.cell_contents
        except ValueError:  # not bound yet
            return MISSING
        self._cells.setdefault(id(cell), []).append((fun, name))
        self._note_keyed(CellRead, cell, None, value, name, True)
        if not issubclass(type(value), Staged):
            self.enter(value, name)
        return value

    def add_uncaptured(self, fun: types.FunctionType, owner: Any = MISSING) -> None:
        """Guard the values that the code of a function mentions; it runs as plain Python.

        `owner`: the object of which it is a method.
        """
        code = fun.__code__
        key = (id(fun), id(owner))
        if key in self._uncaptured:
            return
        self._uncaptured[key] = fun, owner
        self.add_captured(fun)
        self_name = code.co_varnames[0] if code.co_argcount and owner is not MISSING else None
        cells = dict(zip(code.co_freevars, fun.__closure__ or (), strict=True))
        for path in free_paths(code):
            if path.kind == "parameter":
                value = owner if path.root == self_name else MISSING
            elif path.kind == "global":
                value = self._add_global(fun.__globals__, path.root)
            else:
                value = self._add_cell(fun, path.root, cells[path.root])
                self.read_container(value)
            self._add_attributes(value, path)

    def _add_global(self, namespace: dict[str, Any], name: str) -> Any:
        if name.startswith("__"):
            return MISSING
        value = namespace.get(name, getattr(builtins, name, MISSING))
        self.read_global(namespace, name, value)
        return value

    def _add_attributes(self, value: Any, path: Path) -> None:
        """Guard the attributes that can be read without running code."""
        label = path.root
        for name in path.attributes:
            owner, value = value, static_attribute(value, name)
            if owner is MISSING or value is MISSING or _is_library_module(owner):
                return
            label = f"{label}.{name}"
            self._note(AttributeRead, owner, name, snapshot(value), label)
            self.enter(value, label)
        if type(value) is np.ndarray:
            self.read_elements(value)

    def restart(self) -> None:
        """Drop all guards: the function is traced again."""
        self._reads.clear()
        self._outside.clear()
        self._arrays.clear()
        self._cells.clear()
        self._uncaptured.clear()
        self._alive.clear()
        self._inner.clear()
        self.hosts.clear()

    def include(self, reads: GuardSet) -> None:
        """Add the guards of a trace that this one calls."""
        self._inner.update({id(read): read for read in reads.reads})

    def finished(self) -> GuardSet:
        """Return the guards, without those on values that the trace itself changed."""
        of_hosts = {
            cell for cell, users in self._cells.items() if all(map(self._is_of_host, users))
        }
        reads = [
            read
            for (kind, owner, *_), read in self._reads.items()
            if not (kind is CellRead and owner in of_hosts) and read.change() is None
        ]
        return GuardSet([*reads, *self._inner.values()])

    def _is_of_host(self, user: tuple[types.FunctionType, str]) -> bool:
        """Return whether only functions that are called at run time mention a closure variable."""
        fun, name = user
        if not self.hosts:
            return False
        paths = free_paths_excluding(fun.__code__, self.hosts)
        return not any(path.root == name and path.kind == "closure" for path in paths)


_recorder: ContextVar[GuardRecorder | None] = ContextVar("wend_reading", default=None)


@contextmanager
def record_guards() -> Iterator[GuardRecorder]:
    """Record guards in this block."""
    recorder = GuardRecorder()
    with scoped(_recorder, recorder), contents_read_by(recorder.read_elements):
        yield recorder


def restart_guards() -> None:
    """Drop the guards of the active trace, which is made again."""
    recorder = _recorder.get()
    if recorder is not None:
        recorder.restart()


def active_recorder() -> GuardRecorder | None:
    """Return the recorder of the trace under way, if captured code is recorded now."""
    recorder = _recorder.get()
    if recorder is None:
        return None
    recording = current()
    return None if recording is None or recording.runs_now() else recorder


def guard_captured(fun: types.FunctionType) -> None:
    """Tell the active trace that it runs a function in captured form."""
    recorder = _recorder.get()
    if recorder is not None:
        recorder.add_captured(fun)


def guard_partial(partial: functools.partial[Any]) -> None:
    """Tell the active trace that it calls a `functools.partial`."""
    recorder = _recorder.get()
    if recorder is not None:
        recorder.add_partial(partial)


def guard_uncaptured(fun: Any, owner: Any = MISSING) -> None:
    """Tell the active trace that it runs a function of the user's as plain Python."""
    recorder = _recorder.get()
    if recorder is None or not isinstance(fun, types.FunctionType):
        return
    is_local = fun.__code__.co_qualname.startswith(PREFIX)  # made by captured code
    is_users = not is_library(fun.__code__.co_filename) and not is_captured(fun.__code__)
    if is_users and not is_local:
        recorder.add_uncaptured(fun, owner)


def guard_argument(value: Any, label: str) -> None:
    """Tell the active trace that it gets an object that is part of its key by identity."""
    recorder = _recorder.get()
    if recorder is not None and not issubclass(type(value), (Staged, Variable)):
        recorder.enter(value, label)


def guard_host_function(fun: Any) -> None:
    """Tell the active trace that a function runs with the graph, not now."""
    recorder = _recorder.get()
    if recorder is not None and isinstance(fun, types.FunctionType):
        recorder.hosts.add(code_key(fun.__code__))


def include_guards(reads: GuardSet) -> None:
    """Tell the active trace that it calls a trace with these guards."""
    recorder = _recorder.get()
    if recorder is not None:
        recorder.include(reads)


# The type flag of classes that are written in C
_IMMUTABLE_TYPE = 1 << 8
# Methods that captured code calls in captured form
_CAPTURED_METHODS = frozenset(
    {"__init__", "__new__", "__call__", "__enter__", "__exit__", "__post_init__", "__getattr__"}
)


def _operators(kind: type) -> list[types.FunctionType]:
    """Return the special methods of the user's that a class has, which run as plain Python."""
    return [
        method
        for base in kind.__mro__
        for name, method in vars(base).items()
        if name.startswith("__")
        and isinstance(method, types.FunctionType)
        and name not in _CAPTURED_METHODS
        and not is_library(method.__code__.co_filename)
    ]


def _slots(kind: type) -> list[str]:
    return [
        name
        for base in kind.__mro__
        for name, value in vars(base).items()
        if isinstance(value, types.MemberDescriptorType)
    ]


def _is_of_wend(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "wend"


def _is_library_module(value: Any) -> bool:
    """Return whether a value is a module that is not the user's."""
    if not issubclass(type(value), types.ModuleType):
        return False
    file = getattr(value, "__file__", None)
    return (file is None and value.__spec__ is not None) or (
        file is not None and is_library(os.path.abspath(file))
    )
