"""Heap locations that captured code may write, and the log of these writes.

A location is an attribute of an object, the contents of a container, a variable of an enclosing
function, or a global. Captured code logs each write before it happens, so that loops and
branches know what their bodies change, also through the functions they call.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import CellType, FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any

import numpy as np

from wend.base.context_values import scoped
from wend.base.instances import stored_attribute
from wend.capture.heap import container_phis
from wend.capture.heap.containers import (
    CONTAINER_TYPES,
    NestedContainers,
    assign_contents,
    contents,
    direct_containers,
    holds_containers,
    is_container,
    is_mutating_method,
    leaves_in,
    mutated_by,
    nested_containers,
    outermost_containers,
)
from wend.capture.heap.hidden_state import changes
from wend.capture.heap.partial_attributes import AttributeNames, partial_names, set_partial_names
from wend.capture.heap.places import (
    AttributePlace,
    CellPlace,
    ElementsPlace,
    GlobalPlace,
    ItemsPlace,
    Place,
    StatePlace,
    VariablesPlace,
    instance_variables,
    named,
)
from wend.capture.heap.trace_log import (
    HOLDERS,
    count_trace_log_references,
    is_trace_logged,
    note_write,
)
from wend.capture.heap.unseen_code import note_object, note_uncaptured
from wend.capture.libraries import is_library
from wend.capture.uncaptured import as_written
from wend.eager.dispatch import Staged
from wend.trace.arrays.concrete_array import (
    MUTATE_FIRST_ARGUMENT,
    MUTATING_METHODS,
    ConcreteTracedArray,
    before_write,
)

_IN_PLACE_OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")


class Unbound:
    """The value of an unbound variable."""

    def __repr__(self) -> str:
        return "<unbound>"


UNBOUND = Unbound()


class Location(ABC):
    """Storage that can be read and written; locations with equal keys are the same."""

    is_carried_first = False  # whether loops carry it before their variables

    def __init__(self, label: str, key: Hashable) -> None:
        self.label, self.key = label, key

    @abstractmethod
    def read(self) -> Any:
        """Return the value, or `UNBOUND`."""

    @abstractmethod
    def write(self, value: Any) -> None:
        """Store a value; `UNBOUND` deletes it."""

    def undo(self, value: Any) -> None:
        """Store the value from before a write."""
        self.write(value)

    def is_trace_local(self) -> bool:
        """Return whether it was created in the trace, or handles writes there itself."""
        return False

    def is_reached(self, objects: Mapping[int, Any]) -> bool:
        """Return whether it belongs to one of these objects, by id, or to a module."""
        return False

    def places(self) -> Iterator[Place]:
        """Yield the places in objects that a write changes."""
        return iter(())


class Attribute(Location):
    """An attribute of an object."""

    def __init__(self, label: str, owner: Any, name: str) -> None:
        super().__init__(label, ("attribute", id(owner), name))
        self.owner, self.name = owner, name

    def read(self) -> Any:
        # What `__getattr__` finds is not stored: it may find another value later.
        kind: Any = type(self.owner)
        descriptor = inspect.getattr_static(kind, self.name, None)
        if isinstance(descriptor, functools.cached_property):
            return vars(self.owner).get(self.name, UNBOUND)  # without computing it
        if not _has_hook(kind, "__getattr__"):
            return getattr(self.owner, self.name, UNBOUND)
        return evaluate(lambda: kind.__getattribute__(self.owner, self.name))

    def write(self, value: Any) -> None:
        if self.read() is value:
            return
        kind: Any = type(self.owner)
        if _has_hook(kind, "__setattr__"):  # the user's, or of an `Enum`: it has run already
            kind = type if issubclass(kind, type) else object
        if value is UNBOUND:
            kind.__delattr__(self.owner, self.name)
        else:
            kind.__setattr__(self.owner, self.name, value)

    def is_reached(self, objects: Mapping[int, Any]) -> bool:
        return id(self.owner) in objects

    def places(self) -> Iterator[Place]:
        yield AttributePlace(self.label, self.owner, self.name)


def is_given_by_class(owner: Any, name: str) -> bool:
    """Return whether the class of an object has an attribute of this name, too."""
    return inspect.getattr_static(type(owner), name, UNBOUND) is not UNBOUND


def _has_hook(kind: type, name: str) -> bool:
    return isinstance(getattr(kind, name, None), FunctionType)


class AttributeOrder(Location):
    """The order of an object's attributes, which `vars` shows."""

    def __init__(self, label: str, owner: Any) -> None:
        super().__init__(f"{label}.__dict__", ("order", id(owner)))
        self.owner = owner

    def read(self) -> Any:
        return AttributeNames([*(instance_variables(self.owner) or ())], partial_names(self.owner))

    def write(self, value: AttributeNames) -> None:
        set_partial_names(self.owner, value.partial)
        attributes = instance_variables(self.owner)
        if attributes and [*attributes] != [*value.names]:
            names = dict.fromkeys((*value.names, *attributes))
            ordered = {name: attributes[name] for name in names if name in attributes}
            attributes.clear()
            attributes.update(ordered)

    def undo(self, value: AttributeNames) -> None:
        attributes = instance_variables(self.owner) or {}
        for name in {*attributes}.difference(value.names):
            if is_given_by_class(self.owner, name):
                del attributes[name]  # what stands in it is the class's
        self.write(value)


class Contents(Location):
    """The contents of a list, dict or set, at any depth."""

    def __init__(self, label: str, container: Any, binding: Location | None = None) -> None:
        super().__init__(label, ("contents", id(container)))
        self.container = container
        self.binding = binding  # the variable through which it was reached
        # id -> a value read, its containers
        self._nested: dict[int, tuple[Any, NestedContainers]] = {}

    def read(self) -> Any:
        snapshot, nested = contents(self.container), nested_containers(self.container)
        if nested:
            self._nested[id(snapshot)] = snapshot, nested
        return snapshot

    def write(self, value: Any) -> None:
        _, nested = self._nested.get(id(value), (None, {}))
        assign_contents(self.container, value, nested)

    def is_reached(self, objects: Mapping[int, Any]) -> bool:
        return id(self.container) in objects

    def places(self) -> Iterator[Place]:
        return _items_places(self.label, self.container)


def _items_places(label: str, container: Any) -> Iterator[Place]:
    """Yield the places in a container, or in those that a tuple holds, and in nested ones."""
    pending = [*outermost_containers(container)]
    visited = {*map(id, pending)}
    while pending:
        container = pending.pop()
        if not isinstance(container, CONTAINER_TYPES):
            continue
        yield ItemsPlace(label, container)
        nested = [item for _, item in direct_containers(container) if id(item) not in visited]
        visited.update(map(id, nested))
        pending += reversed(nested)


class ArrayElements(Location):
    """The elements of a concrete array."""

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

    def is_trace_local(self) -> bool:
        # An array from outside a region is not written in it: it becomes traced.
        return isinstance(self.array, ConcreteTracedArray)

    def places(self) -> Iterator[Place]:
        if not self.is_trace_local():
            yield ElementsPlace(self.label, self.array)


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

    def places(self) -> Iterator[Place]:
        yield CellPlace(self.label, self.cell)


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

    def is_reached(self, objects: Mapping[int, Any]) -> bool:
        return True

    def places(self) -> Iterator[Place]:
        yield GlobalPlace(self.label, self.variables)


# Reads an attribute, as far as code of the user does so, without its effects
peek: Callable[[Any, str], Any] = getattr


def evaluate(thunk: Callable[[], Any]) -> Any:
    """Return the value of a thunk, or `UNBOUND` if it reads something unbound."""
    try:
        return thunk()
    except (NameError, AttributeError):
        return UNBOUND


# The log
WriteLog = dict[Hashable, tuple[Location, Any]]  # key -> location, value before

_write_logs: ContextVar[tuple[WriteLog, ...]] = ContextVar("wend_changes", default=())


@contextmanager
def write_log(log: WriteLog | None = None) -> Iterator[WriteLog]:
    """Log the heap writes of captured code in this block."""
    log = {} if log is None else log
    with scoped(_write_logs, (*_write_logs.get(), log)), scoped(before_write, _log_write_concrete):
        yield log


def _logged_locations() -> list[Any]:
    """Return the logs with their locations, which hold objects of the user."""
    logs = _write_logs.get()
    pairs = [pair for log in logs for pair in log.values()]
    locations = [location for location, _ in pairs]
    bindings = [x.binding for x in locations if isinstance(x, Contents) and x.binding is not None]
    return [*logs, *pairs, *locations, *bindings]


HOLDERS.append(_logged_locations)


def _log_write_concrete(array: ConcreteTracedArray) -> None:
    log_write(ArrayElements("an array", array))


def is_write_logged() -> bool:
    """Return whether a write log is active: that of a loop or branch, or of the trace."""
    return bool(_write_logs.get()) or is_trace_logged()


def log_write(location: Location, *, is_certain: bool = False) -> None:
    """Log that a location is about to be written; `is_certain`: not only perhaps."""
    if isinstance(location, Attribute) and instance_variables(location.owner) is not None:
        log_write(AttributeOrder(location.label.rpartition(".")[0], location.owner))
        partial = partial_names(location.owner)
        if is_certain and location.name in partial:
            others = {name: where for name, where in partial.items() if name != location.name}
            set_partial_names(location.owner, others)
    if is_trace_logged():
        for place in location.places():
            note_write(place, is_certain=is_certain)
    _log_in_regions(location)


def _log_in_regions(location: Location) -> None:
    for log in _write_logs.get():
        if location.key not in log:
            log[location.key] = location, location.read()


def log_write_object(value: Any) -> None:
    """Log in loops and branches that code which is not seen may change an object's attributes."""
    label, is_wends = named(type(value)), type(value).__module__.startswith("wend.")
    own = instance_variables(value) if _write_logs.get() and not is_wends else None
    if own:
        _log_in_regions(AttributeOrder(label, value))
    for name, part in [*(own or {}).items()]:
        _log_in_regions(Attribute(f"{label}.{name}", value, name))
        if is_container(part):
            _log_in_regions(Contents(f"{label}.{name}", part))


def log_write_attribute(owner: Callable[[], Any], name: str, label: str) -> None:
    """Log that an attribute of an object is about to be written."""
    if not is_write_logged() and not container_phis.any_phis():
        return
    target = evaluate(owner)
    if target is UNBOUND:
        return
    if container_phis.any_phis():
        container_phis.check_mutation(target, label.rpartition(".")[0])
    if not is_write_logged():
        return
    hook = getattr(type(target), "__setattr__", None)
    if isinstance(hook, FunctionType) and not is_library(hook.__code__.co_filename):
        note_uncaptured(hook)
    if not has_custom_setter(target, name):
        log_write(Attribute(label, target, name), is_certain=True)
        return
    # A setter may write any attribute.
    prefix = label.rpartition(".")[0]
    own = instance_variables(target) or {}
    descriptor = inspect.getattr_static(type(target), name)
    is_seen = isinstance(descriptor, property) and isinstance(descriptor.fset, FunctionType)
    if is_trace_logged() and not is_seen:
        _note_setter(descriptor, label)
        if instance_variables(target) is not None:
            note_write(VariablesPlace(label, target))
        else:
            note_write(AttributePlace(label, target, name))
    for attribute in list(own):
        log_write(Attribute(f"{prefix}.{attribute}", target, attribute))
        log_write_contents(functools.partial(own.get, attribute), f"{prefix}.{attribute}")


def _note_setter(descriptor: Any, label: str) -> None:
    """Log that what a property in C or another descriptor writes may change."""
    setter = type(descriptor).__set__
    if isinstance(setter, FunctionType):
        note_uncaptured(setter)
    note_object(label, descriptor)


def has_custom_setter(owner: Any, name: str) -> bool:
    """Return whether an attribute is a property or another descriptor that runs code."""
    if isinstance(owner, (type, ModuleType)):
        return False
    descriptor = inspect.getattr_static(type(owner), name, None)
    native_descriptors = (MemberDescriptorType, GetSetDescriptorType)
    return hasattr(type(descriptor), "__set__") and not isinstance(descriptor, native_descriptors)


def log_write_contents(
    container: Callable[[], Any], label: str, is_store: bool = False, is_nested: bool = True
) -> None:
    """Log that the contents of a container are about to change, if the value is one.

    Args:
        container: returns the value.
        label: what it is called in messages.
        is_store: whether it is certain that items are assigned.
        is_nested: whether what is nested in it may be changed.

    Raises:
        AliasError: its identity is known only at run time, and somebody else holds it.
    """
    if not is_write_logged() and not container_phis.any_phis():
        return
    value = evaluate(container)
    if is_trace_logged():
        _note_contents(value, label, is_store=is_store, is_nested=is_nested)
    if _write_logs.get() or container_phis.any_phis():
        for outermost in outermost_containers(value):
            container_phis.check_mutation(
                outermost, "" if label.startswith("a ") else label.removesuffix(".")
            )
            binding = binding_of(container, label) if outermost is value else None
            log_write(Contents(label, outermost, binding))
            for nested in leaves_in(outermost):
                if is_container(nested):
                    log_write(Contents(label, nested))
        log_write_arrays(value, label)
        if is_store:
            log_write_object(value)  # by a method of a library


def _note_contents(value: Any, label: str, *, is_store: bool, is_nested: bool) -> None:
    """Tell the log of the trace that the contents of a value are about to change."""
    if isinstance(value, CONTAINER_TYPES) and not is_nested:
        note_write(ItemsPlace(label, value), is_certain=is_store)
    elif isinstance(value, CONTAINER_TYPES) or holds_containers(value):
        for place in _items_places(label, value):
            note_write(place, is_certain=is_store and place.owner is value)
        for array in leaves_in(value):
            _note_array(array, label, is_certain=False)
    elif isinstance(value, np.flatiter):
        _note_array(value.base, label, is_certain=is_store)
    elif isinstance(value, np.ndarray):
        _note_array(value, label, is_certain=is_store)
    elif is_store:
        note_object(label.removesuffix("."), value, is_here=True)


def _note_array(array: Any, label: str, *, is_certain: bool) -> None:
    if isinstance(array, np.ndarray) and not isinstance(array, (Staged, ConcreteTracedArray)):
        while isinstance(array.base, np.ndarray):
            array = array.base
        if array.flags.writeable:
            note_write(ElementsPlace(label, array), is_certain=is_certain)


def note_argument(value: Any, module: str) -> None:
    """Tell the log of the trace that code of a module, which is not seen, may change a value."""
    if not is_trace_logged() or module == "builtins":
        return
    options = {"is_certain": False, "may_initialize": False, "is_seen": False}
    if isinstance(value, CONTAINER_TYPES):
        for place in _items_places(named(type(value)), value):
            note_write(place, **options)
    elif type(value) is np.ndarray and not _is_numpys(module) and value.flags.writeable:
        while isinstance(value.base, np.ndarray):
            value = value.base
        note_write(ElementsPlace("an array", value), **options)


def _is_numpys(module: str) -> bool:
    """Return whether functions of a module change only arrays that they are known to change."""
    return module.startswith(("numpy", "wend.")) and not module.startswith("numpy.random")


def log_write_arrays(value: Any, label: str) -> None:
    """Log that a concrete array, or those in a container, may be written."""
    holds_many = isinstance(value, tuple) or is_container(value)
    arrays = [*leaves_in(value)] if holds_many else [value]
    if is_trace_logged():
        for array in arrays:
            _note_array(array, label, is_certain=not holds_many)
    if _write_logs.get():
        for array in arrays:
            logs_its_own = isinstance(array, (Staged, ConcreteTracedArray))
            if isinstance(array, np.ndarray) and not logs_its_own and array.flags.writeable:
                while isinstance(array.base, np.ndarray):
                    array = array.base
                log_write(ArrayElements(label, array))


def count_log_references(array: np.ndarray) -> int:
    """Return how many references the active logs hold to an array."""
    key = ("elements", id(array))
    count = len({id(log[key][0]) for log in _write_logs.get() if key in log})
    return count + count_trace_log_references("elements", array)


def log_write_mutated_by(method: Any, arguments: Sequence[Any] = ()) -> None:
    """Log that the container of a method that is about to be called may change."""
    if not is_write_logged() and not container_phis.any_phis():
        return
    if changes(method):
        note_write(StatePlace(named(type(method.__self__)), method.__self__))
        return
    owner = mutated_by(method)
    if owner is None and arguments and is_mutating_method(method):
        owner = arguments[0]
    if is_container(owner):
        if isinstance(owner, CONTAINER_TYPES):
            # No change now is none later: the contents of a container of outside are guarded.
            note_write(ItemsPlace(named(type(owner)), owner), is_certain=False)
        if _write_logs.get() or container_phis.any_phis():
            container_phis.check_mutation(owner)
            log_write(Contents(f"a {type(owner).__name__}", owner))


def log_write_arrays_mutated_by(fun: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Log that the arrays which a NumPy function writes are about to change."""
    if not is_write_logged():
        return
    owner, name = stored_attribute(fun, "__self__"), stored_attribute(fun, "__name__", "")
    mutated: list[Any] = [kwargs.get("out")]
    if isinstance(owner, np.ndarray):
        mutated.append(owner if name in _MUTATING_ARRAY_METHODS else None)
    elif isinstance(fun, np.ufunc):
        mutated += args[fun.nin :]
    elif (isinstance(owner, np.ufunc) and name == "at") or _mutates_first_argument(fun):
        mutated += args[:1]
    for operand in mutated:
        for array in operand if isinstance(operand, tuple) else (operand,):
            log_write_arrays(array, "an array")


_MUTATING_ARRAY_METHODS = frozenset(
    {*MUTATING_METHODS, "__setitem__", *(f"__i{op}__" for op in _IN_PLACE_OPERATORS)}
)


def _mutates_first_argument(fun: Any) -> bool:
    return any(fun is known for known in MUTATE_FIRST_ARGUMENT)


def log_write_reachable(fun: FunctionType) -> None:
    """Log that anything reachable from a function may change, as it runs uncaptured."""
    note_uncaptured(fun)
    if not _write_logs.get():
        return
    for name, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True):
        log_write(Cell(name, cell))
        log_write_contents(Cell(name, cell).read, f"{name}.")
    for name in as_written(fun.__code__).co_names:
        if name in fun.__globals__:
            log_write_contents(functools.partial(fun.__globals__.get, name), f"{name}.")


def log_write_variable(thunk: FunctionType, label: str) -> None:
    """Log that a variable shared by several functions is about to be written."""
    if is_write_logged():
        log_write(variable_location(thunk, label), is_certain=True)


def binding_of(thunk: Any, label: str) -> Location | None:
    """Return the variable that a thunk reads, or None if it reads something else."""
    return variable_location(thunk, label) if "." not in label else None


def variable_location(thunk: FunctionType, label: str) -> Location:
    """Return the location of the variable that a thunk reads."""
    cells = dict(zip(thunk.__code__.co_freevars, thunk.__closure__ or (), strict=True))
    return Cell(label, cells[label]) if label in cells else Global(label, thunk.__globals__)
