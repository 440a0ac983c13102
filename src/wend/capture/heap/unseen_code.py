"""Code that is not captured: what it may change is logged as possibly written."""

from __future__ import annotations

import dis
import functools
import inspect
import io
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from wend.capture.heap.containers import CONTAINER_TYPES, containers_in
from wend.capture.heap.places import (
    AttributePlace,
    CellPlace,
    DrawsPlace,
    GlobalPlace,
    ItemsPlace,
    PositionPlace,
    VariablesPlace,
    instance_dict,
    named,
)
from wend.capture.heap.trace_log import is_trace_logged, note_write
from wend.capture.libraries import is_library
from wend.capture.uncaptured import as_written
from wend.trace.aliasing.referrers import is_node

# Log a write of code that is not captured, which may happen.
_note = functools.partial(note_write, is_certain=False, is_seen=False)


def note_uncaptured(fun: FunctionType, owner: Any = None) -> None:
    """Log that what a function refers to by name may change, as it runs uncaptured.

    `owner`: the object that it is a method of.
    """
    if not is_trace_logged() or getattr(fun, "__wend_do_not_capture__", False):
        return
    written = as_written(fun.__code__)
    names = {name for code in codes_in(written) for name in code.co_names}
    stored = _stored_names(written) if written.co_flags & inspect.CO_GENERATOR else ()
    for name, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True):
        place = CellPlace(name, cell)
        _note(place, may_set=name in stored)
        _note_parts(name, place.read(), names)
    for name in names & fun.__globals__.keys():
        value = fun.__globals__[name]
        if not isinstance(value, (FunctionType, ModuleType, type)):
            variable = GlobalPlace(name, fun.__globals__)
            _note(variable, may_set=name in stored)
        _note_parts(name, value, names)
    own = instance_dict(owner) or {}
    for name in names & own.keys():
        _note_state(own[name])
    if "random" in names and "numpy.random" in sys.modules:
        _note_state(np.random.seed)


def _note_state(value: Any) -> None:
    """Log that an iterator or a random generator of NumPy may be advanced, or that of a method."""
    value = getattr(value, "__self__", value)
    kinds: tuple[type, ...] = ()
    if (module := sys.modules.get("numpy.random")) is not None:
        kinds = module.Generator, module.RandomState, module.BitGenerator
    if isinstance(value, kinds):
        _note(DrawsPlace(named(type(value)), value))
    elif hasattr(type(value), "__next__") and not isinstance(value, io.IOBase):
        _note(PositionPlace(named(type(value)), value))


def note_construction(cls: type) -> None:
    """Log that what the constructor of a user's class refers to by name may change."""
    names = ("__new__", "__init__", "__post_init__", "__call__")  # the last one of its metaclass
    for fun in [getattr(type(cls) if n == "__call__" else cls, n, None) for n in names]:
        if isinstance(fun, FunctionType) and not is_library(fun.__code__.co_filename):
            note_uncaptured(fun)
            for base in cls.__mro__[:-1]:
                for name in _stored_attributes(fun.__code__):
                    place = AttributePlace(f"{base.__name__}.{name}", base, name)
                    _note(place)
                _note_parts(base.__name__, base, {*fun.__code__.co_names})


@functools.lru_cache(256)
def _stored_attributes(code: CodeType) -> frozenset[str]:
    """Return the names of the attributes that code assigns to."""
    return frozenset(x.argval for x in dis.get_instructions(code) if x.opname == "STORE_ATTR")


@functools.lru_cache(256)
def _stored_names(code: CodeType) -> frozenset[str]:
    """Return the names of the globals, and of the variables of outer functions, that code sets."""
    stores = ("STORE_GLOBAL", "STORE_DEREF")
    return frozenset(x.argval for x in dis.get_instructions(code) if x.opname in stores)


# Methods that code in C calls as often as it likes
CALLED_BY_CONTAINERS = frozenset({"__hash__", "__eq__", "__del__"})


def is_pure(code: CodeType) -> bool:
    """Return whether code writes nothing, and calls no function but builtins that look."""
    call_count = 0
    for instruction in (x for inner in codes_in(code) for x in dis.get_instructions(inner)):
        name = instruction.opname
        if name.startswith(_WRITES):
            return False
        if name == "LOAD_GLOBAL" and instruction.argval in _LOOKING:
            call_count -= 1
        call_count += name.startswith("CALL")
    return call_count <= 0


_WRITES = (
    *("STORE_ATTR", "STORE_SUBSCR", "STORE_SLICE", "STORE_GLOBAL", "STORE_DEREF", "IMPORT_NAME"),
    *("DELETE_ATTR", "DELETE_SUBSCR", "DELETE_GLOBAL", "DELETE_DEREF", "YIELD", "CALL_FUNCTION_EX"),
)
_LOOKING = frozenset(
    {
        *("abs", "bool", "complex", "float", "format", "hash", "id", "int", "isinstance", "len"),
        *("repr", "round", "str", "tuple", "type"),
    }
)


def note_object(label: str, value: Any, *, is_here: bool = False, is_seen: bool = False) -> None:
    """Log that the attributes of an object may change, and the containers in these.

    Args:
        label: what it is called in messages.
        value: the object.
        is_here: whether the user's current line calls unseen code that may change it.
        is_seen: whether no code but captured code does.
    """
    is_wends = type(value).__module__.startswith("wend.")  # an array whose elements are known
    own = instance_dict(value) if is_node(value) and not is_wends else None
    if own is not None:
        options = {"is_here": is_here, "may_initialize": not is_here, "is_seen": is_seen}
        _note(VariablesPlace(label, value), **options)
        for name, part in list(own.items()):
            for container in containers_in(part):
                _note(ItemsPlace(f"{label}.{name}", container), **options)


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """Yield code, and that of the functions and classes in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


def _note_parts(label: str, value: Any, names: set[str]) -> None:
    """Log that a container, an object, or attributes of these names of a class may change."""
    _note_state(value)
    if isinstance(value, CONTAINER_TYPES):
        _note(ItemsPlace(label, value))
    elif isinstance(value, type):
        for name in names & vars(value).keys() if _is_users(value) else ():
            if not isinstance(vars(value)[name], (FunctionType, property)):
                _note(AttributePlace(f"{label}.{name}", value, name))
            _note_parts(f"{label}.{name}", vars(value)[name], set())
    elif not is_node(value) or isinstance(value, FunctionType):
        return
    elif instance_dict(value) is not None:
        _note(VariablesPlace(label, value))


def _is_users(cls: type) -> bool:
    """Return whether a class is written in Python, outside of the installed packages."""
    functions = (getattr(x, "__func__", x) for x in vars(cls).values())
    return any(
        isinstance(fun, FunctionType) and not is_library(fun.__code__.co_filename)
        for fun in functions
    )
