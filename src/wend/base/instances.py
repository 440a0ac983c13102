"""Instances of classes as nodes of pytrees.

Their attributes are the children; no code of their classes runs. The classes are not registered
with optree, which would keep them alive: an `InstanceNode` represents an instance while a pytree is
flattened. Instances of dataclasses and attrs classes are nodes everywhere, those of ordinary
classes in results of functions and where loops and branches replace them.
"""

from __future__ import annotations

import dataclasses
import types
import weakref
from collections.abc import Iterable, Sequence
from enum import Enum
from types import FunctionType
from typing import Any, NamedTuple

from wend.base.keys import attributes_of, has_array_protocol, is_equal, is_plain_class, slots_of


class InstanceStructure(NamedTuple):
    """The structure of an instance: its class, and the names of its attributes."""

    cls: Any
    names: tuple[str, ...]

    def __repr__(self) -> str:
        return str(self.cls.__name__)

    def make(self, values: Sequence[Any] = ()) -> Any:
        """Return an instance with these attributes; no code of its class runs."""
        instance = object.__new__(self.cls)
        set_attributes(instance, dict(zip(self.names, values, strict=True)))
        return instance


class StaticField:
    """A string, function or class in a field, as a node without leaves."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StaticField) and is_equal(self.value, other.value)

    def __hash__(self) -> int:
        return hash(type(self.value))

    def __repr__(self) -> str:
        return repr(self.value)


class InstanceNode:
    """The attributes of an instance, as a node of a pytree.

    Args:
        instance: the instance.
        keeps_static: whether strings, functions and classes belong to the structure.
    """

    __slots__ = ("instance", "keeps_static")

    def __init__(self, instance: Any, *, keeps_static: bool = False) -> None:
        self.instance, self.keeps_static = instance, keeps_static

    def flattened(self) -> tuple[list[Any], InstanceStructure, tuple[str, ...]]:
        """Return the attributes, the structure, and the names of the attributes for paths."""
        attributes = attributes_of(self.instance)
        names = tuple([name for name, _ in attributes])
        values = [value for _, value in attributes]
        if self.keeps_static:
            values = [StaticField(x) if _is_static(x) else x for x in values]
        return values, InstanceStructure(type(self.instance), names), names


def _is_static(value: Any) -> bool:
    return isinstance(value, (str, bytes, Enum)) or callable(value)


def structure_of(instance: Any) -> InstanceStructure:
    """Return the structure of an instance."""
    return InstanceNode(instance).flattened()[1]


def slots_for(cls: Any) -> dict[str, Any]:
    """Return the slots of a class by name; a slot of a subclass hides one of the same name."""
    return dict(reversed(slots_of(cls)))


def set_attributes(instance: Any, values: dict[str, Any]) -> None:
    """Set the attributes of a new instance; no setter, property or hook runs."""
    slots = slots_for(type(instance))
    for name, value in values.items():
        slot = slots.get(name)
        if slot is None:
            object.__getattribute__(instance, "__dict__")[name] = value
        else:
            slot.__set__(instance, value)


def delete_attribute(instance: Any, name: str) -> None:
    """Delete an attribute that `attributes_of` yields; no code of its class runs."""
    slot = slots_for(type(instance)).get(name)
    if slot is None:
        del object.__getattribute__(instance, "__dict__")[name]
    else:
        slot.__delete__(instance)


def is_instance(x: Any) -> bool:
    """Return whether a value is an instance of a dataclass or attrs class that is a pytree."""
    cls: Any = type(x)
    if not (hasattr(cls, "__dataclass_fields__") or hasattr(cls, "__attrs_attrs__")):
        return False
    return _is_rebuildable(cls)


def is_ordinary_object(x: Any) -> bool:
    """Return whether a value is an instance of an ordinary class that can be made again.

    Its class is neither a dataclass nor an attrs class, and is written in Python: attributes are
    all that the instance holds.
    """
    cls: Any = type(x)
    return cls.__flags__ & _IS_HEAP_TYPE != 0 and _is_rebuildable(cls) and not is_instance(x)


def _is_rebuildable(cls: Any) -> bool:
    """Return whether `InstanceStructure.make` can make any instance of a class."""
    is_rebuildable = _are_rebuildable.get(cls)
    if is_rebuildable is None:
        is_rebuildable = _are_rebuildable[cls] = (
            cls.__module__.partition(".")[0] != "wend"
            and not issubclass(cls, (Enum, type, BaseException))
            and is_plain_class(cls)
            and len(slots_for(cls)) == len(slots_of(cls))
            and not has_array_protocol(cls)
        )
    return is_rebuildable


def class_with_generated(cls: type, method: str) -> type | None:
    """Return the class for which dataclasses or attrs wrote a method of `cls`, if they did."""
    owner = next((base for base in cls.__mro__ if method in vars(base)), object)
    function = vars(owner).get(method)
    if not isinstance(function, types.FunctionType):
        return None
    file, names = function.__code__.co_filename, vars(owner)
    is_attrs = file.startswith("<attrs generated") or function.__globals__.get("__name__") == _ATTRS
    is_generated = (file == "<string>" and "__dataclass_fields__" in names) or (
        is_attrs and "__attrs_attrs__" in names
    )
    return owner if is_generated else None


_ATTRS = "attr._make"  # which has the code of `__ne__` and of orders


def compared_fields(owner: Any, *, by_order: bool) -> tuple[str, ...] | None:
    """Return the fields that a generated method of a class compares, or None.

    It is None where attrs compares what keys make of fields.
    """
    if "__dataclass_fields__" in vars(owner):
        return tuple(field.name for field in dataclasses.fields(owner) if field.compare)
    kind = "order" if by_order else "eq"
    fields = [field for field in owner.__attrs_attrs__ if getattr(field, kind)]
    has_keys = any(getattr(field, f"{kind}_key") for field in fields)
    return None if has_keys else tuple(field.name for field in fields)


def has_fields(x: Any) -> bool:
    """Return whether a value is an instance whose attributes are its children in pytrees."""
    return is_instance(x) and _static_fields.get(type(x), frozenset()) is not None


def is_unregistered(x: Any) -> bool:
    """Return whether a value is an instance that is a pytree without being registered."""
    return is_instance(x) and type(x) not in _static_fields


def is_replaceable(x: Any) -> bool:
    """Return whether a value is an instance that loops and branches may replace by another."""
    return is_unregistered(x) or is_ordinary_object(x)


def is_unregistered_class(cls: Any) -> bool:
    """Return whether results may hold the instances of a class without its being registered."""
    return isinstance(cls, type) and is_replaceable(object.__new__(cls))


def static_fields(cls: Any) -> frozenset[str]:
    """Return the fields of a registered dataclass that are metadata."""
    return _static_fields.get(cls) or frozenset()


def note_registered(cls: Any, static: Iterable[str] | None) -> None:
    """Note that a class is registered: by its fields, of which some are static, or otherwise."""
    _static_fields[cls] = None if static is None else frozenset(static)


_IS_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made by a class statement
# The static fields of registered classes; None: functions of the user's give the children.
_static_fields: weakref.WeakKeyDictionary[Any, frozenset[str] | None] = weakref.WeakKeyDictionary()
_are_rebuildable: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()


def stored_attribute(x: Any, name: str, default: Any = None) -> Any:
    """Return an attribute of a function or callable object; a `__getattr__` is not asked."""
    if not isinstance(getattr(type(x), "__getattr__", None), FunctionType):
        return getattr(x, name, default)
    try:
        return (type if isinstance(x, type) else object).__getattribute__(x, name)
    except AttributeError:
        return default
