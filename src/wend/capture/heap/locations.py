"""Places outside the variables of a function that captured code may change.

Each is one attribute of an object, the contents of a container, a variable of an enclosing
function, or a global. Captured code tells of every such change before it makes it, so that loops
and branches know what their bodies change, also through the functions they call.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import (
    CellType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    ModuleType,
)
from typing import Any

import numpy as np

from wend.base import trees
from wend.base.context_values import scoped
from wend.capture.heap import container_phis
from wend.capture.heap.containers import (
    Parts,
    changed_by,
    contents,
    fill,
    is_changing,
    is_container,
    parts,
)
from wend.eager.dispatch import Staged
from wend.trace.arrays.concrete_array import (
    CHANGE_THE_FIRST,
    CHANGING_METHODS,
    ConcreteTracedArray,
    before_write,
)

_OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")


class Unbound:
    """What a variable holds that is not bound."""

    def __repr__(self) -> str:
        return "<unbound>"


UNBOUND = Unbound()


class Location(ABC):
    """Somewhere that a value can be read from and written to; equal keys, equal places."""

    leads = False  # whether a loop carries it before its variables

    def __init__(self, label: str, key: Hashable) -> None:
        self.label, self.key = label, key

    @abstractmethod
    def read(self) -> Any:
        """What it holds; `UNBOUND` if nothing."""

    @abstractmethod
    def write(self, value: Any) -> None:
        """Let it hold a value, or nothing."""

    def belongs_to_the_trace(self) -> bool:
        """Whether it was made in the trace that changes it, or knows how to change there."""
        return False


class Attribute(Location):
    """An attribute of an object."""

    def __init__(self, label: str, owner: Any, name: str) -> None:
        super().__init__(label, ("attribute", id(owner), name))
        self.owner, self.name = owner, name

    def read(self) -> Any:
        return getattr(self.owner, self.name, UNBOUND)

    def write(self, value: Any) -> None:
        own = isinstance(self.owner, (type, ModuleType))
        if value is UNBOUND:
            if self.read() is not UNBOUND:
                (delattr if own else object.__delattr__)(self.owner, self.name)
        else:
            # As it is: what a `__setattr__` of the class does has been done.
            (setattr if own else object.__setattr__)(self.owner, self.name, value)


class Contents(Location):
    """What a list, dict or set holds, at any depth."""

    def __init__(self, label: str, container: Any, binding: Location | None = None) -> None:
        super().__init__(label, ("contents", id(container)))
        self.container = container
        self.binding = binding  # the variable that it was reached by
        self._parts: dict[int, tuple[Any, Parts]] = {}  # what was read, and what was in it

    def read(self) -> Any:
        found, own = contents(self.container), parts(self.container)
        if own:
            self._parts[id(found)] = found, own
        return found

    def write(self, value: Any) -> None:
        _, own = self._parts.get(id(value), (None, {}))
        fill(self.container, value, own)


class Elements(Location):
    """The elements of an array that Python knows."""

    def __init__(self, label: str, array: np.ndarray) -> None:
        super().__init__(label, ("elements", id(array)))
        self.array = array

    def read(self) -> Any:
        return np.array(np.ndarray.view(self.array, np.ndarray))

    def write(self, value: Any) -> None:
        if isinstance(self.array, ConcreteTracedArray):
            self.array.rollback(value)
        else:
            np.ndarray.view(self.array, np.ndarray)[...] = value

    def belongs_to_the_trace(self) -> bool:
        # One of outside a region does not change there: it becomes traced.
        return isinstance(self.array, ConcreteTracedArray)


class Cell(Location):
    """A variable of an enclosing function."""

    def __init__(self, label: str, cell: CellType) -> None:
        super().__init__(label, ("cell", id(cell)))
        self.cell = cell

    def read(self) -> Any:
        try:
            return self.cell.cell_contents
        except ValueError:
            return UNBOUND

    def write(self, value: Any) -> None:
        if value is not UNBOUND:
            self.cell.cell_contents = value
        elif self.read() is not UNBOUND:
            del self.cell.cell_contents


class Global(Location):
    """A variable of a module."""

    def __init__(self, label: str, variables: dict[str, Any]) -> None:
        super().__init__(label, ("global", id(variables), label))
        self.variables = variables

    def read(self) -> Any:
        return self.variables.get(self.label, UNBOUND)

    def write(self, value: Any) -> None:
        if value is not UNBOUND:
            self.variables[self.label] = value
        else:
            self.variables.pop(self.label, None)


def read(thunk: Callable[[], Any]) -> Any:
    """What a thunk gives; `UNBOUND` if it reads something that is not bound."""
    try:
        return thunk()
    except (NameError, AttributeError):
        return UNBOUND


# The log
WriteLog = dict[Hashable, tuple[Location, Any]]  # what was changed, and what it held before

_write_logs: ContextVar[tuple[WriteLog, ...]] = ContextVar("wend_changes", default=())


@contextmanager
def write_log(log: WriteLog | None = None) -> Iterator[WriteLog]:
    """Note what captured code changes in this block."""
    log = {} if log is None else log
    with scoped(_write_logs, (*_write_logs.get(), log)), scoped(before_write, _log_write_known):
        yield log


def _log_write_known(array: ConcreteTracedArray) -> None:
    log_write(Elements("an array", array))


def is_write_logged() -> bool:
    """Whether somebody wants to know what captured code changes."""
    return bool(_write_logs.get())


def log_write(place: Location) -> None:
    """Say that a place is about to change."""
    for log in _write_logs.get():
        if place.key not in log:
            log[place.key] = place, place.read()


def log_write_attribute(owner: Callable[[], Any], name: str, label: str) -> None:
    """Say that the attribute of an object is about to change."""
    if _write_logs.get():
        found = read(owner)
        if found is UNBOUND:
            return
        if not is_set_by_code(found, name):
            log_write(Attribute(label, found, name))
            return
        # A setter may change any attribute.
        base = label.rpartition(".")[0]
        for own in getattr(found, "__dict__", ()):
            log_write(Attribute(f"{base}.{own}", found, own))
            log_write_contents(functools.partial(vars(found).get, own), f"{base}.{own}")


def is_set_by_code(owner: Any, name: str) -> bool:
    """Whether an attribute is a property, or another descriptor with code of its own."""
    if isinstance(owner, (type, ModuleType)):
        return False
    found = inspect.getattr_static(type(owner), name, None)
    native = (MemberDescriptorType, GetSetDescriptorType)
    return hasattr(type(found), "__set__") and not isinstance(found, native)


def log_write_contents(container: Callable[[], Any], label: str) -> None:
    """Say that the contents of a container are about to change, if it is one.

    Raises:
        AliasError: which container it is, only the run tells, and somebody else holds one.
    """
    if _write_logs.get() or container_phis.are_there():
        found = read(container)
        if is_container(found):
            container_phis.check_change(
                found, "" if label.startswith("a ") else label.removesuffix(".")
            )
            log_write(Contents(label, found, bound_by(container, label)))
            for inner in trees.flatten(found)[0]:
                if is_container(inner):
                    log_write(Contents(label, inner))
        log_write_arrays(found, label)


def log_write_arrays(value: Any, label: str) -> None:
    """Say that an array that Python knows, or those that a container holds, may change."""
    if _write_logs.get():
        arrays = trees.flatten(value)[0] if is_container(value) else [value]
        for array in arrays:
            if isinstance(array, (Staged, ConcreteTracedArray)) or not isinstance(
                array, np.ndarray
            ):
                continue  # a known one tells it by itself
            if array.flags.writeable:
                while isinstance(array.base, np.ndarray):
                    array = array.base
                log_write(Elements(label, array))


def references_of_logs(array: np.ndarray) -> int:
    """How often logs refer to an array, to take back what changes in it."""
    key = ("elements", id(array))
    return len({id(log[key][0]) for log in _write_logs.get() if key in log})


def log_write_changed_by(method: Any, arguments: Sequence[Any] = ()) -> None:
    """Say that the container is about to change whose method is called."""
    if not _write_logs.get() and not container_phis.are_there():
        return
    owner = changed_by(method)
    if owner is None and arguments and is_changing(method):
        owner = arguments[0]
    if is_container(owner):
        container_phis.check_change(owner)
        log_write(Contents(f"a {type(owner).__name__}", owner))


def log_write_arrays_changed_by(fun: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Say that the arrays are about to change that a function of NumPy changes."""
    if not _write_logs.get():
        return
    owner, name = getattr(fun, "__self__", None), getattr(fun, "__name__", "")
    changed: list[Any] = [kwargs.get("out")]
    if isinstance(owner, np.ndarray):
        changed.append(owner if name in _CHANGING_ARRAYS else None)
    elif isinstance(fun, np.ufunc):
        changed += args[fun.nin :]
    elif (isinstance(owner, np.ufunc) and name == "at") or _changes_the_first(fun):
        changed += args[:1]
    for found in changed:
        for array in found if isinstance(found, tuple) else (found,):
            log_write_arrays(array, "an array")


_CHANGING_ARRAYS = frozenset(
    {*CHANGING_METHODS, "__setitem__", *(f"__i{op}__" for op in _OPERATORS)}
)


def _changes_the_first(fun: Any) -> bool:
    return any(fun is one for one in CHANGE_THE_FIRST)


def log_write_reached(fun: FunctionType) -> None:
    """Say that what a function reaches may change, which is run as plain Python."""
    if not _write_logs.get():
        return
    for name, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True):
        place = Cell(name, cell)
        log_write(place)
        log_write_contents(place.read, f"{name}.")
    for name in fun.__code__.co_names:
        if name in fun.__globals__:
            log_write_contents(functools.partial(fun.__globals__.get, name), f"{name}.")


def log_write_attributes(owner: Any, label: str) -> None:
    """Say that the attributes of an object may change, and what containers among them hold."""
    for name, value in list(vars(owner).items()):
        log_write(Attribute(f"{label}.{name}", owner, name))
        if is_container(value):
            log_write(Contents(f"{label}.{name}", value))


def log_write_variable(reads: FunctionType, label: str) -> None:
    """Say that a variable of several functions, which `reads` reads, is about to change."""
    if _write_logs.get():
        log_write(variable(reads, label))


def bound_by(reads: Any, label: str) -> Location | None:
    """The variable that `reads` reads, if it is one."""
    return variable(reads, label) if "." not in label else None


def variable(reads: FunctionType, label: str) -> Location:
    """The variable that a function reads."""
    cells = dict(zip(reads.__code__.co_freevars, reads.__closure__ or (), strict=True))
    return Cell(label, cells[label]) if label in cells else Global(label, reads.__globals__)
