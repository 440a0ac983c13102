"""Records what a trace reads of the Python around it, as guards (D44).

Captured code reports its reads where they happen: names, attributes and items of objects of
outside. An object is of outside if a name that the function does not bind leads to it, over
attributes and items. Code that is not captured is not observed: of such functions, the methods of
operators above all, the values that their code mentions are guarded.
"""

from __future__ import annotations

import builtins
import enum
import functools
import gc
import operator
import types
import weakref
from collections import deque
from collections.abc import ItemsView, Iterable, ValuesView
from typing import Any

import numpy as np

from wend.backends.fastcall import MISSING
from wend.capture.guards.free_names import CodeKey, Path, free_paths, free_paths_excluding
from wend.capture.guards.kinds import (
    BOUND_METHODS,
    CONSTRUCTORS,
    DESCRIPTORS_IN_C,
    READERS_BY_NAME,
    UNOBSERVED,
    WINDOWS,
    has_contents,
    has_items_in_c,
    is_drawn,
    is_field_of_member,
    is_library_module,
    is_looked_up_in_c,
    is_of_library,
    is_of_wend,
    is_users_class,
    slots,
    special_methods,
)
from wend.capture.guards.namespaces import Namespace
from wend.capture.guards.operand_reads import OperandReads
from wend.capture.guards.read_log import ReadLog
from wend.capture.guards.reads import (
    AttributeRead,
    CallRead,
    CellRead,
    ContentsRead,
    GlobalRead,
    GuardSet,
    ItemRead,
    KeysRead,
    PartRead,
    Read,
    held_names,
    static_attribute,
)
from wend.capture.guards.unseen_calls import UnseenCalls
from wend.capture.heap.places import instance_dict, is_of_module
from wend.capture.heap.snapshots import (
    CONTAINERS,
    IdentitySnapshot,
    container_kind,
    is_atom,
    items_of,
    snapshot,
)
from wend.capture.heap.unseen_code import CALLED_BY_CONTAINERS, is_pure
from wend.capture.libraries import is_library
from wend.capture.uncaptured import is_part_of_captured
from wend.eager.dispatch import Staged
from wend.ir.dtypes import is_supported
from wend.trace.recording.recording import current

# Attributes of arrays that tell nothing of the elements
_ATTRIBUTES_OF_TYPES = frozenset({"shape", "dtype", "ndim", "size", "nbytes", "itemsize"})


class GuardRecorder(ReadLog):
    """Collects guards while a trace is recorded.

    Args:
        unseen: finds the functions that run as plain Python.
        operands: the floats that are operands, not guards.
    """

    def __init__(self, unseen: UnseenCalls, operands: OperandReads) -> None:
        super().__init__()
        self.unseen = unseen
        self.operands = operands
        self._arrays: dict[int, np.ndarray] = {}  # arrays of outside
        self._cells: dict[int, list[tuple[types.FunctionType, str]]] = {}
        self._captured: set[int] = set()  # functions whose parts are guarded
        self._uncaptured: dict[tuple[int, int], Any] = {}
        self._names: set[str] = set()  # attributes that plain Python uses, of whatever it gets
        self._impure: set[str] = set()  # those of them that it may write
        self._reads_by_name = False  # it uses attributes by names that only it knows
        self._to_follow: list[tuple[Any, str]] = []
        self._is_following = False
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
        operand = self.operands.of_global(namespace, name, value)
        return self.enter(value, name) if operand is MISSING else operand

    def read_names(self, namespace: dict[str, Any]) -> None:
        """Note that captured code reads which names a module has."""
        self._note(KeysRead, namespace, None, snapshot((*namespace,)), "the names of globals()")

    def read_attribute(self, owner: Any, name: str, value: Any, is_base: bool = False) -> Any:
        """Note that captured code reads an attribute; return the value for it to use."""
        holder, label = self._holder(owner, name)
        if holder is MISSING:
            if type(owner) is types.ModuleType and has_contents(value):
                return self.enter(value, f"{owner.__name__}.{name}")
            return self.entered_item(value)
        label = f"{label}.{name}"
        held = static_attribute(holder, name)
        if holder is owner and is_field_of_member(held, name):
            name, held = f"_{name}_", value
        if value is not MISSING and holder is owner and is_looked_up_in_c(owner, held):
            self.operands.values.add((id(value), None))
            self._note(PartRead, owner, name, snapshot(value), label)
            return self.enter(value, label)
        if held is value:
            self._note_keyed(AttributeRead, holder, name, value, label, is_base)
            return self.enter(value, label)
        # What it gives is made of what the class holds, in code that is observed itself.
        if issubclass(type(owner), tuple) and owner is holder:
            return self.enter(value, label)  # a field
        if not isinstance(held, DESCRIPTORS_IN_C):
            self._note(AttributeRead, holder, name, IdentitySnapshot(held), label)
            self.enter(held, label)
        return value

    def read_item(self, owner: Any, key: Any, value: Any, is_base: bool = False) -> Any:
        """Note that captured code reads an item of a container; return the value for it to use."""
        label = self._outside.get(id(owner))
        if label is not None and isinstance(key, Staged):  # any, or the one that the trace is for
            self.read_contents(owner)
        if label is None or isinstance(key, Staged):
            return self.entered_item(value)
        is_object_array = type(owner) is np.ndarray and not isinstance(value, np.ndarray)
        if not is_object_array and not has_items_in_c(type(owner)):
            return self.entered_item(value)
        if isinstance(key, slice):
            self.read_contents(owner)
            return value
        label = f"{label}[{key!r}]"
        self._note_keyed(ItemRead, owner, key, value, label, is_base)
        return self.enter(value, label)

    def read_call(self, owner: Any, key: tuple[Any, ...], value: Any) -> Any:
        """Note what a method of an object with a memory returns; return the value to use.

        `key`: the name of the method, its arguments, its keywords with their values.
        """
        label = self._outside.get(id(owner))
        if label is None:
            return value
        label += "()" if key[0] == "__call__" else f".{key[0]}()"
        self._note(CallRead, owner, key, snapshot(value), label)
        return self.enter(value, label)

    def read_construction(self, cls: type) -> None:
        """Note that captured code makes an object; its constructor runs as plain Python."""
        if type(cls) is not type:
            self._read_plain_method(type(cls), "__call__", cls)
        if self._is_observed_class(cls):
            for name in (*CONSTRUCTORS, *special_methods(cls)):
                self._read_plain_method(cls, name, cls)

    def _read_plain_method(self, cls: type, name: str, owner: Any) -> None:
        """Note that a method of a class runs as plain Python; `owner`: what it is a method of."""
        held = static_attribute(cls, name)
        fun = getattr(held, "__func__", held)
        if isinstance(fun, types.FunctionType) and not is_library(fun.__code__.co_filename):
            self._note(AttributeRead, cls, name, IdentitySnapshot(held), f"{cls.__name__}.{name}")
            self.add_uncaptured(fun, owner, is_seen=name not in CALLED_BY_CONTAINERS)

    def read_container(self, value: Any) -> None:
        """Note that captured code reads a whole container, if it is one."""
        if container_kind(type(value)) is not None:
            self.read_contents(value)

    def read_contents(self, owner: Any) -> bool:
        """Note that code reads the whole of an object or container; return if it is of outside."""
        if self._is_observed_class(owner):
            self._read_class(owner)
            return True
        label = self._outside.get(id(owner))
        if label is None:
            return False
        if container_kind(type(owner)) is not None:
            self._note(ContentsRead, owner, None, snapshot(owner), label)
        own = instance_dict(owner)
        names = tuple(own or ())
        if own is not None:
            self._note(KeysRead, owner, None, snapshot(names), f"the attributes of {label}")
        for name in (*names, *slots(type(owner))):
            if (value := static_attribute(owner, name)) is not MISSING:
                self._note_keyed(AttributeRead, owner, name, value, f"{label}.{name}", False)
                self.enter(value, f"{label}.{name}")
            if own and own.get(name, value) is not value:  # a property has the name
                self.observe(own, f"vars({label})")
                self.read_item(own, name, own[name])
        return True

    def read_all(self, value: Any) -> None:
        """Note that code reads whatever it reaches from a value, the elements of arrays too."""
        stack, seen = [value], set[int]()
        while stack:
            part = stack.pop()
            if id(part) in seen or is_atom(type(part)) or is_drawn(part):
                continue
            seen.add(id(part))
            if id(part) in self._arrays:
                self.read_elements(part)
            elif issubclass(type(part), weakref.ref):
                target = part()
                self.enter(target, self._outside.get(id(part), "a weak reference"))
                stack.append(target)
            elif type(part) is types.FunctionType and not is_part_of_captured(part.__code__):
                self._add_plain_callee(part)
            elif self.read_contents(part) and not issubclass(type(part), type):
                base = container_kind(type(part))
                stack += part if base is dict else ()
                stack += items_of(part) if base is not None else ()
                stack += (instance_dict(part) or {}).values()

    def enter(self, value: Any, label: str) -> Any:
        """Take a value of outside into the trace; return the value for captured code to use.

        Arrays become captures of the function that is recorded. Objects are observed from now on.
        """
        kind = type(value)
        if is_atom(kind):
            return value
        if kind is np.ndarray:
            return self._enter_array(value, label)
        if issubclass(kind, np.ndarray) and not issubclass(kind, Staged):
            self.observe(value, label)
            self.read_elements(value)
            return value
        if kind is dict and is_of_module(value):
            return Namespace(value)
        is_known = id(value) in self._outside
        if container_kind(kind) is not None:
            self._enter_container(value, label)
        if kind in WINDOWS and not is_known:
            self._enter_window(value, label)
        is_module = kind is types.ModuleType and not is_library_module(value)
        if is_module or (kind is types.FunctionType and not is_library(value.__code__.co_filename)):
            self.observe(value, label)
        if kind in BOUND_METHODS and not isinstance(value.__self__, types.ModuleType):
            self.enter(value.__self__, f"{label}.__self__")
        is_object = kind not in CONTAINERS and not issubclass(kind, UNOBSERVED)
        if ((is_object and not is_of_wend(kind)) or is_users_class(value)) and not is_known:
            self._enter_object(value, label)
        return value

    def _enter_array(self, array: np.ndarray, label: str) -> Any:
        self.observe(array, label)
        self._arrays[id(array)] = array
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
        if not self.observe(container, label):
            return
        keys = container if container_kind(type(container)) is dict else ()
        for value in (*keys, *items_of(container)):
            if type(value) is np.ndarray:
                self._arrays[id(value)] = value
                self.observe(value, f"an array in {label}")
            elif is_users_class(value) or not (
                is_atom(type(value)) or issubclass(type(value), UNOBSERVED)
            ):
                self.enter(value, f"an item of {label}")

    def _enter_window(self, value: Any, label: str) -> None:
        """Note that code may read all that a view shows: of a dict, or an array's elements."""
        self.observe(value, label)
        for part in [value.base] if type(value) is np.flatiter else gc.get_referents(value):
            self.enter(part, label)
            self.read_all(part)

    def _enter_object(self, value: Any, label: str) -> None:
        self.observe(value, label)
        if is_users_class(value):
            self._read_plain_method(value, "__class_getitem__", value)
            if issubclass(value, enum.Enum):  # its methods of the library give the members
                for name, member in value.__members__.items():
                    self.enter(member, f"{label}.{name}")
        elif is_users_class(type(value)):
            self.observe(type(value), type(value).__name__)
        cls = value if issubclass(type(value), type) else type(value)
        self.unseen.watch(cls)
        if isinstance(getattr(cls, "__hash__", None), types.FunctionType):
            for name in "__hash__", "__eq__":  # dicts and sets ask its objects
                held = static_attribute(cls, name)
                label = f"{cls.__name__}.{name}"
                self._note(AttributeRead, cls, name, IdentitySnapshot(held), label)
        operators = special_methods(type(value))
        if is_of_library(type(value)):
            self.read_all(value)  # its methods run without being observed
        elif operators:
            self.read_container(value)
        for name in operators:
            self._read_plain_method(type(value), name, value)
        self._follow(value, self._names)

    # Arrays of outside leave the containers that hold them as captures
    def items(self, value: Any) -> Any:
        """Return a container with the arrays of outside in it as captures, to take items from."""
        kind = type(value)
        if not self._arrays or is_atom(kind):
            return value
        if kind is np.ndarray:
            return self.entered_item(value)
        base = container_kind(kind)
        if base is dict:
            is_entered = kind is dict and any(map(self._holds_array, value.values()))
            return {k: self.entered_item(x) for k, x in value.items()} if is_entered else value
        is_iterable = base in (list, tuple, deque) and kind.__iter__ is base.__iter__
        if not is_iterable and not issubclass(kind, (ValuesView, ItemsView)):
            return value
        if not any(map(self._holds_array, value)):
            return value
        entered = [self.entered_item(item) for item in value]
        return tuple(entered) if kind is tuple else entered

    def nested_items(self, value: Any) -> Any:
        """Return lists and tuples, at any depth, with the arrays of outside in them as captures."""
        if type(value) not in (list, tuple) or not self._arrays:
            return self.items(value)
        entered = [self.nested_items(item) for item in value]
        return value if all(map(operator.is_, entered, value)) else type(value)(entered)

    def entered_result(self, owner: Any, result: Any) -> Any:
        """Return what a method of a container of outside gives, for captured code to use."""
        if isinstance(result, (ValuesView, ItemsView)):
            return self.items(result)
        if any(result is item for item in items_of(owner)):
            return self.enter(result, f"an item of {self._outside[id(owner)]}")
        return self.entered_item(result)

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

    # What functions that run are made of
    def add_captured(self, fun: types.FunctionType) -> None:
        """Guard the parts of a function that runs in captured form, and its closure."""
        if id(fun) in self._captured:
            return
        self._captured.add(id(fun))
        self.observe(fun, fun.__name__)
        code = fun.__code__
        self._note(PartRead, fun, "__code__", IdentitySnapshot(code), f"{fun.__name__}()")
        self._add_defaults(fun)
        for name, cell in zip(code.co_freevars, fun.__closure__ or (), strict=True):
            if name != "__class__":
                self._add_cell(fun, name, cell)

    def _add_defaults(self, fun: types.FunctionType) -> None:
        for name in ("__defaults__", "__kwdefaults__"):
            value = getattr(fun, name)
            label = f"{fun.__name__}.{name}"
            if value:
                self._note(PartRead, fun, name, snapshot(value), label)
                self._enter_container(value, label)

    def add_partial(self, partial: functools.partial[Any]) -> None:
        """Guard the arguments that a `functools.partial` of outside holds; enter what it calls."""
        if id(partial) not in self._outside:
            return
        self.enter(getattr(partial.func, "__self__", partial.func), "partial.func")
        for name, value in (("args", partial.args), ("keywords", partial.keywords)):
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

    def add_uncaptured(
        self, fun: types.FunctionType, owner: Any = MISSING, *, is_seen: bool = False
    ) -> None:
        """Guard what the code of a function, a method of `owner`, mentions; it runs plain."""
        if owner is not MISSING and id(owner) not in self._outside:
            # One that the trace has made is not to be held: its class stands for it.
            kind = owner if issubclass(type(owner), type) else type(owner)
            owner = kind if self._is_observed_class(kind) else MISSING
        key = (id(fun), id(owner))
        if key in self._uncaptured:
            return
        self._uncaptured[key] = fun, owner
        before = self._is_plain, self._is_free, self._is_pure
        self._is_free = getattr(fun, "__wend_do_not_capture__", False)
        self._is_plain, self._is_pure = not self._is_free, is_seen or is_pure(fun.__code__)
        try:
            self._add_mentioned(fun, owner)
        finally:
            self._is_plain, self._is_free, self._is_pure = before

    def _add_mentioned(self, fun: types.FunctionType, owner: Any) -> None:
        code, looked_up = fun.__code__, self._reads_by_name
        names, impure = {*self._names}, {*self._impure}
        self.add_captured(fun)
        for values in (fun.__defaults__, fun.__kwdefaults__):
            self.operands.values.add((id(values), None))
            self._read_parts(values)
        self_name = code.co_varnames[0] if code.co_argcount and owner is not MISSING else None
        cells = dict(zip(code.co_freevars, fun.__closure__ or (), strict=True))
        for path in free_paths(code):
            self._reads_by_name |= path.root in READERS_BY_NAME or "__dict__" in path.attributes
            if path.kind == "local" or (path.kind == "parameter" and path.root != self_name):
                self._use(path.attributes)
                continue
            if path.kind == "parameter":
                value = owner
                if issubclass(type(owner), type):  # the object itself is made in the trace
                    self._use(path.attributes[1:])
            elif path.kind == "global":
                value = self._add_global(fun.__globals__, path.root)
                self.operands.values.add((id(fun.__globals__), path.root))
            else:
                value = self._add_cell(fun, path.root, cells[path.root])
                self.operands.values.add((id(cells[path.root]), None))
                self.read_container(value)
            self._add_attributes(value, path)
            self._add_plain_callee(value)
        new = (self._names - names) | (self._impure - impure)
        if new or self._reads_by_name > looked_up:
            for value in [*self._alive.values()]:
                self._follow(value, new)

    def _use(self, names: Iterable[str]) -> None:
        self._names.update(names)
        self._impure.update(() if self._is_pure else names)

    def _follow(self, owner: Any, names: Iterable[str]) -> None:
        """Note that plain Python may use attributes of an object, which may have reached it."""
        if issubclass(type(owner), UNOBSERVED) and not self._is_observed_class(owner):
            return
        own = (instance_dict(owner) or ()) if self._reads_by_name else ()
        self._to_follow += [(owner, name) for name in held_names(owner, {*names, *own})]
        if self._is_following:
            return
        before = self._is_plain, self._is_pure
        self._is_plain = self._is_following = True
        try:
            while self._to_follow:
                owner, name = self._to_follow.pop()
                self._is_pure = name in self._names and name not in self._impure
                label = self._outside.get(id(owner), type(owner).__name__)
                self._add_attributes(owner, Path("local", label, (name,)))
        finally:
            (self._is_plain, self._is_pure), self._is_following = before, False

    def _add_plain_callee(self, fun: Any, owner: Any = MISSING) -> None:
        """Guard what a function or class reads that code running as plain Python mentions."""
        if issubclass(type(fun), type):
            self.read_construction(fun)
        elif type(fun) is types.FunctionType and not is_library(fun.__code__.co_filename):
            self.add_uncaptured(fun, owner)

    def _add_global(self, namespace: dict[str, Any], name: str) -> Any:
        value = namespace.get(name, getattr(builtins, name, MISSING))
        self.read_global(namespace, name, value)
        return value

    def _add_attributes(self, value: Any, path: Path) -> None:
        """Guard the attributes that can be read without running code."""
        label = path.root
        for name in path.attributes:
            if type(value) is np.ndarray and name not in _ATTRIBUTES_OF_TYPES:
                self.read_elements(value)  # by a method
            owner, value = value, static_attribute(value, name)
            if owner is MISSING or value is MISSING or is_library_module(owner):
                return
            if isinstance(value, DESCRIPTORS_IN_C):
                return
            label = f"{label}.{name}"
            self._note(AttributeRead, owner, name, snapshot(value), label)
            self.enter(value, label)
            if hasattr(type(value), "__get__"):
                is_property = isinstance(value, property)
                self._add_plain_callee(
                    value.fget if is_property else getattr(value, "__func__", value), owner
                )
                return
        self._read_parts(value)

    def read_elements(self, array: Any) -> None:
        """Note that Python reads the elements of an array of outside, or an operand."""
        self.operands.note_read(array)
        super().read_elements(array)

    def _read_parts(self, value: Any, around: tuple[int, ...] = ()) -> None:
        """Note that plain Python reads an array or a container, and calls the functions there."""
        kind = type(value)
        if kind is np.ndarray:
            self.read_elements(value)
        elif id(value) in around:
            return
        elif container_kind(kind) is not None:
            for item in items_of(value):
                self._read_parts(item, (*around, id(value)))
        elif kind is functools.partial:
            self.enter(value, "a partial")
            self.add_partial(value)
            for part in (value.func, value.args, value.keywords):
                self._read_parts(part, (*around, id(value)))
        elif kind is types.MethodType:
            self._add_plain_callee(value.__func__, self.enter(value.__self__, "self"))
        elif kind is types.FunctionType:
            self._add_plain_callee(value)

    def restart(self) -> None:
        """Drop all guards: the function is traced again."""
        super().restart()
        self._names.clear()
        self._impure.clear()
        self._reads_by_name = False
        self._arrays.clear()
        self._cells.clear()
        self._captured.clear()
        self._uncaptured.clear()
        self._inner.clear()
        self.hosts.clear()

    def include(self, reads: GuardSet) -> None:
        """Add the guards of a trace that this one calls."""
        self._inner.update({id(read): read for read in reads.reads})

    def finished(self) -> GuardSet:
        """Return the guards, without those on values that the trace itself changed.

        A trace changes what only code that is not logged writes; what another thread has changed
        meanwhile fails its guard at the next call.
        """
        of_hosts = {
            cell for cell, users in self._cells.items() if all(map(self._is_of_host, users))
        }
        reads = [
            read
            for identity, read in self._reads.items()
            if not (identity[0] is CellRead and identity[1] in of_hosts)
            and (identity not in self._unlogged or read.change() is None)
        ]
        return GuardSet([*reads, *self._inner.values()])

    def _is_of_host(self, user: tuple[types.FunctionType, str]) -> bool:
        """Return whether only functions that are called at run time mention a closure variable."""
        fun, name = user
        if not self.hosts:
            return False
        paths = free_paths_excluding(fun.__code__, self.hosts)
        return not any(path.root == name and path.kind == "closure" for path in paths)
