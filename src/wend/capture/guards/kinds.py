"""Kinds of objects of outside: whose reads a trace observes, and whose code runs unseen."""

from __future__ import annotations

import _random
import os
import sys
import threading
import types
from typing import Any

import numpy as np

from wend.backends.fastcall import MISSING
from wend.capture.guards.reads import class_attribute
from wend.capture.heap.snapshots import container_kind
from wend.capture.libraries import is_library
from wend.eager.dispatch import Staged
from wend.trace.state.variable import Variable

# Objects whose attributes are not observed
UNOBSERVED = (
    *(types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, type),
    *(Staged, Variable, np.ndarray, np.generic, np.ufunc, property),
)

# The type flag of classes that are written in C
_IMMUTABLE_TYPE = 1 << 8
# Methods that captured code calls in captured form
CAPTURED_METHODS = frozenset(
    {"__init__", "__new__", "__call__", "__enter__", "__exit__", "__post_init__", "__getattr__"}
)

# Objects written in C that show what another holds
WINDOWS: tuple[type, ...] = (
    *(types.MappingProxyType, np.flatiter),
    *(type({}.keys()), type({}.values()), type({}.items())),
)
CONSTRUCTORS = ("__new__", "__init__", "__post_init__")
BOUND_METHODS = types.MethodType, types.BuiltinMethodType, types.MethodWrapperType
DESCRIPTORS_IN_C = (
    *(types.GetSetDescriptorType, types.WrapperDescriptorType, types.MethodDescriptorType),
    *(types.ClassMethodDescriptorType, types.BuiltinFunctionType),
)


def is_looked_up_in_c(owner: Any, held: Any) -> bool:
    """Return whether code in C finds an attribute of an object; `held`: what classes hold."""
    kind = type(owner)
    if issubclass(kind, threading.local):
        return True
    is_observed = not issubclass(kind, UNOBSERVED) or kind is types.FunctionType
    is_getter = _is_data_descriptor_in_c(held) and (is_observed or is_users_class(owner))
    return held is MISSING or is_getter


def _is_data_descriptor_in_c(held: Any) -> bool:
    """Return whether a class holds a getter and setter written in C, as `ctypes` makes them."""
    if isinstance(held, types.GetSetDescriptorType):
        return True
    getter = getattr(type(held), "__get__", None)
    is_in_c = isinstance(getter, types.WrapperDescriptorType) and hasattr(type(held), "__set__")
    return is_in_c and not isinstance(held, (property, types.MemberDescriptorType))


def is_field_of_member(held: Any, name: str) -> bool:
    """Return whether what a class holds under a name gives a field of a member of an `Enum`."""
    return name in ("name", "value") and isinstance(held, types.DynamicClassAttribute)


def has_items_in_c(kind: type) -> bool:
    """Return whether a class is a container, or its items are found by code in C."""
    getter = class_attribute(kind, "__getitem__")
    is_in_c = isinstance(getter, types.WrapperDescriptorType) and not issubclass(kind, np.ndarray)
    return is_in_c or container_kind(kind) is not None


def special_methods(kind: type) -> list[str]:
    """Return the names of the special methods of the user's that run as plain Python."""
    return [
        name
        for base in kind.__mro__
        for name, method in vars(base).items()
        if name.startswith("__")
        and isinstance(method, types.FunctionType)
        and name not in CAPTURED_METHODS
        and not is_library(method.__code__.co_filename)
    ]


def slots(kind: type) -> list[str]:
    """Return the names of the attributes in the slots of a class and its bases."""
    return [
        name
        for base in kind.__mro__
        for name, value in vars(base).items()
        if isinstance(value, types.MemberDescriptorType)
    ]


def is_users_class(value: Any) -> bool:
    """Return whether a value is a class that is not written in C, and not of wend."""
    return (
        issubclass(type(value), type)
        and not value.__flags__ & _IMMUTABLE_TYPE
        and not is_of_wend(value)
    )


def has_contents(value: Any) -> bool:
    """Return whether a value is a container, or another object that Python's library makes."""
    return container_kind(type(value)) is not None or is_of_library(type(value))


def is_of_library(kind: type) -> bool:
    """Return whether a class has methods in Python of the standard library or NumPy."""
    return any(map(_has_methods_of_library, kind.__mro__))


def is_drawn(x: Any) -> bool:
    """Return whether a value is a generator of `random`, whose state is that of the run."""
    return isinstance(x, _random.Random) and type(x).__module__ == "random"


def _has_methods_of_library(kind: type) -> bool:
    if kind.__flags__ & _IMMUTABLE_TYPE or kind.__module__ == "enum":
        return False
    return kind.__module__.partition(".")[0] in _OBSERVED_LIBRARIES and any(
        isinstance(method, types.FunctionType) for method in vars(kind).values()
    )


def is_settings(kind: type) -> bool:
    """Return whether all that methods of a class read is what a pickle of an object has."""
    return kind.__module__ == "decimal" and kind.__name__ == "Context"


# Builtins that read attributes by name
READERS_BY_NAME = frozenset({"getattr", "hasattr", "vars"})
_OBSERVED_LIBRARIES = sys.stdlib_module_names | {"numpy"}


def is_of_wend(kind: type) -> bool:
    """Return whether a class is one of wend's."""
    return kind.__module__.partition(".")[0] == "wend"


def is_library_module(value: Any) -> bool:
    """Return whether a value is a module that is not the user's."""
    if not issubclass(type(value), types.ModuleType):
        return False
    file = vars(value).get("__file__")
    return (file is None and vars(value).get("__spec__") is not None) or (
        file is not None and is_library(os.path.abspath(file))
    )
