"""Objects whose operators are methods of the user, so that no call shows what they change.

Captured code calls operators captured, and so do builtins such as `len`. Other library code runs
such methods as plain Python, and `d[k]` may fill a `defaultdict`. Their state is therefore compared
before and after the trace of a loop or branch.
"""

from __future__ import annotations

import inspect
import itertools
import types
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from wend.base.keys import slots_of
from wend.base.source import users_frames
from wend.capture.heap.containers import is_container
from wend.capture.heap.locations import Attribute, Cell, Contents, log_write
from wend.capture.heap.places import ItemsPlace, instance_dict
from wend.capture.heap.trace_log import is_first_use, note_write
from wend.capture.heap.unseen_code import CALLED_BY_CONTAINERS, is_pure, note_object
from wend.capture.libraries import is_library
from wend.capture.syntax.names import RUNTIME
from wend.eager.dispatch import Staged

_NOT_OPERATORS = frozenset(
    {"__init__", "__new__", "__call__", "__enter__", "__exit__", "__post_init__"}
)


# The methods that Python and NumPy call without a call in the code: those of classes that have many
_SPECIAL_METHODS = frozenset(
    name
    for kind in (
        *(object, type, int, complex, str, list, dict, set, slice, property, np.ndarray),
        *(defaultdict, types.GeneratorType, types.AsyncGeneratorType, types.CoroutineType),
    )
    for name in dir(kind)
    if name.startswith("__")
) | {
    *("__getattr__", "__del__", "__fspath__", "__set_name__", "__length_hint__", "__buffer__"),
    *("__aenter__", "__aexit__", "__prepare__", "__mro_entries__", "__round__", "__bytes__"),
}

_with_operators: WeakKeyDictionary[type, bool] = WeakKeyDictionary()
_EXCLUDED_TYPES = (type, types.ModuleType, types.FunctionType)
# Most of what variables hold, and captured code has many: a look at the type is enough.
_PLAIN_TYPES = {*_EXCLUDED_TYPES, types.BuiltinFunctionType, types.NoneType, str, int, float, bool}


def has_operators(kind: type) -> bool:
    """Return whether a class or a base of it defines operators in the user's Python code."""
    defines = _with_operators.get(kind)
    if defines is None:
        defines = _with_operators[kind] = any(True for _ in _find_operators(kind))
    return defines


def _writes_nothing(kind: type) -> bool:
    """Return whether the methods of a class that containers call write nothing."""
    names = CALLED_BY_CONTAINERS.intersection(_find_operators(kind))
    methods = (inspect.getattr_static(kind, name) for name in names)
    return all(is_pure(method.__code__) for method in methods)


def _find_operators(kind: type) -> Iterator[str]:
    for base in kind.__mro__:
        if base.__module__.startswith("wend."):
            continue  # the code that dataclasses generate is in no file
        for name, method in vars(base).items():
            if (
                isinstance(method, types.FunctionType)
                and name in _SPECIAL_METHODS
                and name not in _NOT_OPERATORS
                and not is_library(method.__code__.co_filename)
            ):
                yield name


def log_write_operands() -> dict[int, Any]:
    """Log writes to the objects with such operators that the active variables hold.

    Return the objects that variables and their attributes hold, by id.
    """
    seen: set[int] = set()
    visited: set[int] = set()
    reached: dict[int, Any] = {}
    scopes: set[tuple[int, int]] = set()
    for frame in users_frames():
        variables: Iterable[tuple[str, Any]] = frame.f_locals.items()
        scope = id(frame.f_code), id(frame.f_globals)  # the hash of a code reads all its constants
        if scope not in scopes:
            scopes.add(scope)
            globals_read = ((name, frame.f_globals.get(name)) for name in frame.f_code.co_names)
            variables = itertools.chain(variables, globals_read)
        for name, value in variables:
            if type(value) in _PLAIN_TYPES or id(value) in visited or name == RUNTIME:
                continue
            visited.add(id(value))
            reached[id(value)] = value
            if isinstance(value, Staged):  # it holds no object of the user
                continue
            if _has_missing_hook(value):
                log_write(Contents(name, value))
            _log_write(value, name, seen)
            for attribute, attribute_value in _attributes(value):
                if type(attribute_value) in _PLAIN_TYPES:
                    continue
                reached[id(attribute_value)] = attribute_value
                _log_write(attribute_value, f"{name}.{attribute}", seen)
                if _has_missing_hook(attribute_value):
                    log_write(Contents(f"{name}.{attribute}", attribute_value))
    return reached


def note_operands(fun: types.FunctionType, objects: Mapping[str, Any] | None = None) -> None:
    """Tell the log of the trace of such objects that a function refers to, or gets by name."""
    if not is_first_use(fun) and not objects:
        return
    cells = zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True)
    values: dict[str, Any] = {name: Cell(name, cell).read() for name, cell in cells}
    values.update((name, fun.__globals__.get(name)) for name in fun.__code__.co_names)
    values.update(objects or {})
    for name, value in values.items():
        if isinstance(value, _EXCLUDED_TYPES):
            continue
        if _has_missing_hook(value):
            note_write(ItemsPlace(name, value), is_certain=False, is_here=False)
        attributes = ((f"{name}.{k}", part) for k, part in _attributes(value))
        for label, part in ((name, value), *attributes):
            if not isinstance(part, _EXCLUDED_TYPES) and has_operators(type(part)):
                note_object(label, part, is_seen=_writes_nothing(type(part)))
            elif part is not value and _has_missing_hook(part):
                note_write(ItemsPlace(label, part), is_certain=False, is_here=False)


def _attributes(value: Any) -> list[tuple[str, Any]]:
    """Return an object's attributes and slots by name, without running code of its class."""
    if isinstance(value, _EXCLUDED_TYPES):
        return []
    attributes = [*(instance_dict(value) or {}).items()]
    for name, slot in slots_of(type(value)):
        try:
            attributes.append((name, slot.__get__(value)))
        except AttributeError:
            attributes.append((name, None))  # unbound, and may be bound
    return attributes


def _has_missing_hook(value: Any) -> bool:
    """Return whether reading a missing key may insert it, as in a `defaultdict`."""
    return isinstance(value, dict) and hasattr(type(value), "__missing__")


def _log_write(value: Any, label: str, seen: set[int]) -> None:
    """Log that the attributes of such an object, and containers in these, may change."""
    kind = type(value)
    if isinstance(value, _EXCLUDED_TYPES) or id(value) in seen or not has_operators(kind):
        return
    seen.add(id(value))
    for name, part in _attributes(value):
        log_write(Attribute(f"{label}.{name}", value, name))
        if is_container(part):
            log_write(Contents(f"{label}.{name}", part))
