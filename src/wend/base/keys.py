"""The keys of Python values: equal for values that the same trace accepts."""

from __future__ import annotations

import struct
import sys
import weakref
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from enum import Enum
from pickle import PicklingError
from types import (
    BuiltinFunctionType,
    FunctionType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

# Not keyed by identity: their contents may change, and a trace would go stale unnoticed.
_MUTABLE_TYPES: tuple[type, ...] = (
    *(list, dict, set, bytearray, deque, np.ndarray),
    *(UserList, UserDict, ChainMap, MappingProxyType, type({}.values())),
)


# How compiled code compares a value with the one expected (`CallStatic`)
Match: TypeAlias = Literal["identity", "equality", "bits", "method"]


class ByIdentity:
    """A weak reference to an object, equal only to references to the same object."""

    __slots__ = ("object_id", "reference")

    def __init__(self, value: Any) -> None:
        self.reference = weakref.ref(value)
        self.object_id = id(value)

    def __hash__(self) -> int:
        return self.object_id

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ByIdentity) or self.object_id != other.object_id:
            return False
        value = self.reference()
        return value is not None and value is other.reference()

    def __repr__(self) -> str:
        value = self.reference()
        return "an object that is gone" if value is None else f"{value!r:.60}"

    def on_collection(self, callback: Callable[[Any], None]) -> Any:
        """Return a reference that calls `callback` when the object is collected."""
        value = self.reference()
        return None if value is None else weakref.ref(value, callback)


class NotKeyedError(TypeError):
    """A value has no key, as its contents may change without notice."""

    def __init__(self, value: Any) -> None:
        super().__init__(f"unhashable type: {type(value).__name__!r}")
        self.value = value


class _Held:
    """A strong reference to an object that cannot be referenced weakly; equal by identity."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def reference(self) -> Any:
        """Return the object, as a weak reference does."""
        return self.value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and self.value is other.value


def key_of(value: Any) -> Hashable:
    """Return the key of a value: its class with all that code can see of it, or its identity (D46).

    Values of Python's classes are told by class and bits, so 1, 1.0 and True differ, and so do 0.0
    and -0.0. Containers, dataclasses and other objects with an `__eq__` of their own are told by
    the keys of their parts and attributes: what `__eq__` compares may be less than a function
    reads. Objects that compare by identity are referenced weakly.

    Raises:
        NotKeyedError: its contents may change without notice, as those of a list.
    """
    cls: Any = type(value)
    parts = _PARTS.get(cls)
    if parts is not None:
        return cls, parts(value)
    if isinstance(value, np.generic):
        return cls, value.dtype.str, value.tobytes()
    if isinstance(value, _MUTABLE_TYPES) or shares_memory(value):
        raise NotKeyedError(value)
    by_identity = cls.__eq__ is object.__eq__ or cls.__hash__ in (None, object.__hash__)
    if not by_identity and not isinstance(value, Enum):
        frozen = _frozen_keys.get(id(value))
        if frozen is not None and frozen.object() is value:
            return cls, frozen
        try:
            return cls, _stored(value, _parts_of_object(value))
        except (NotKeyedError, RecursionError):  # a part may change, or is the object itself
            pass
    identity = identity_of(value)
    is_users = isinstance(cls.__eq__, FunctionType)  # what is read of its attributes is guarded
    if cls.__hash__ is None and isinstance(identity, _Held) and not is_users:
        raise NotKeyedError(value)
    return cls, identity


class _FrozenKey:
    """The parts of an object that cannot change, with their hash."""

    __slots__ = ("hash", "object", "parts")

    def __init__(self, value: Any, parts: Hashable) -> None:
        self.parts, self.hash = parts, hash(parts)
        address, forget = id(value), _frozen_keys.pop  # globals go before the last objects do
        self.object = weakref.ref(value, lambda _: forget(address, None))

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, _FrozenKey) and self.parts == other.parts)


# By address: the keys of frozen objects, which are long
_frozen_keys: dict[int, _FrozenKey] = {}


def _stored(value: Any, parts: Hashable) -> Hashable:
    """Return the key of an object, kept if the object is frozen with all that it holds."""
    if not _is_frozen(value) or not type(value).__weakrefoffset__:
        return parts
    key = _frozen_keys[id(value)] = _FrozenKey(value, parts)
    return key


def _is_frozen(value: Any) -> bool:
    """Return whether the key of a value stays the same: a dataclass counts as what it says."""
    cls: Any = type(value)
    if isinstance(value, (tuple, frozenset)):
        return not _attributes(value) and all(map(_is_frozen, value))
    if cls in _PARTS and cls is not slice:
        return True
    parameters = cls.__dict__.get("__dataclass_params__")
    return (
        parameters is not None
        and parameters.frozen
        and all(map(_is_frozen, [*_attributes(value).values()]))
        and not _layout(cls).has_slots
    )


def identity_of(value: Any) -> ByIdentity | _Held:
    """Return a reference to an object that is equal by identity; weak if that is possible."""
    try:
        return ByIdentity(value)
    except TypeError:  # not weakly referenceable
        return _Held(value)


def match_of(value: Any, key: Hashable) -> Match | None:
    """Return how compiled code compares values with this one; None: Python does, by `check_of`."""
    cls: Any = type(value)
    if cls in (str, bytes, int):
        return "equality"
    if cls is float:
        return "bits"
    if cls in _SINGLETONS or (cls is BuiltinFunctionType and type(value.__self__) in _MODULES):
        return "identity"
    if issubclass(cls, np.dtype) and value is np.dtype(value.type):
        return "identity"
    if isinstance(_identity_in(key), (ByIdentity, _Held)):
        return "identity"
    if cls is MethodType and type(value.__func__) is FunctionType:
        return "method"
    return None


def _identity_in(key: Hashable) -> Hashable:
    """Return the reference in the key of an object that is equal by identity."""
    return key[1] if isinstance(key, tuple) and len(key) == 2 else None


def check_of(value: Any, key: Hashable) -> Callable[[Any], bool]:
    """Return a function that tells whether a value has the key of another one, by `key_of`.

    It keeps no object alive that the key does not.
    """
    cls, identity = type(value), _identity_in(key)
    if isinstance(identity, ByIdentity):
        reference = identity.reference
        return lambda x: x is reference()
    if all(type(part) in _TEXTS_AND_NUMBERS for part in (value if cls is tuple else (value,))):
        return lambda x: x is value or _has_key(x, key)
    return lambda x: _has_key(x, key)


def _has_key(value: Any, key: Hashable) -> bool:
    try:
        return key_of(value) == key
    except NotKeyedError:
        return False


def shares_memory(value: Any) -> bool:
    """Return whether a value lends its memory to arrays, or makes one of itself."""
    cls: Any = type(value)
    if cls.__flags__ & _IS_BUILTIN_VALUE:
        return False
    if _layout(cls).has_array_protocol or not _ARRAY_PROTOCOLS.isdisjoint(_attributes(value)):
        return True
    try:
        memoryview(value).release()
    except TypeError:
        return False
    return True


def snapshot_of(value: Any) -> Hashable:
    """Return a key of a value as it is now, also of one whose contents may change.

    Arrays, and what else shares memory, are told by identity.

    Raises:
        NotKeyedError: a container is in it that is of no class of Python's.
    """
    cls: Any = type(value)
    if cls in _PARTS and cls is not tuple:
        return key_of(value)
    if shares_memory(value):
        return cls, _Held(value)
    if cls is dict:
        return cls, tuple([(snapshot_of(key), snapshot_of(x)) for key, x in value.items()])
    if cls in (list, tuple, set, deque):
        return cls, tuple(map(snapshot_of, value))
    if cls.__eq__ is not object.__eq__ and _layout(cls).is_plain and not isinstance(value, Enum):
        return cls, _state(value, snapshot_of)
    return key_of(value)


def is_equal(a: Any, b: Any) -> bool:
    """Return whether no code can tell two values apart, except by `is`."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    try:
        return snapshot_of(a) == snapshot_of(b)
    except (NotKeyedError, RecursionError):
        return False


def _parts_of_object(value: Any) -> Hashable:
    """Return a key of all parts of an object that does not compare by identity."""
    cls: Any = type(value)
    for base, plain in _VALUE_BASES.items():
        if isinstance(value, base):
            return key_of(plain(value)), _state(value)
    if cls is MethodType:
        return key_of(value.__func__), identity_of(value.__self__)
    if cls is BuiltinFunctionType:
        return value.__name__, identity_of(value.__self__)
    if cls.__module__.partition(".")[0] in _VALUE_LIBRARIES:
        try:
            reduced = value.__reduce_ex__(2)
        except (TypeError, PicklingError):
            raise NotKeyedError(value) from None
        return snapshot_of(reduced)
    if not _layout(cls).is_plain:
        raise NotKeyedError(value)
    return _state(value)


def _state(value: Any, part_key: Callable[[Any], Hashable] = key_of) -> Hashable:
    """Return the keys of an object's attributes, in their order."""
    return tuple([(name, part_key(part)) for name, part in attributes_of(value)])


def attributes_of(value: Any) -> list[tuple[str, Any]]:
    """Return the attributes and slots that an object has, in their order, with their names."""
    attributes = [*_attributes(value).items()]
    for name, slot in slots_of(type(value)):
        try:
            attributes.append((name, slot.__get__(value)))
        except AttributeError:  # unbound
            continue
    return attributes


def slots_of(cls: Any) -> Sequence[tuple[str, Any]]:
    """Return the slots of a class and its bases with their names."""
    return _slots(cls) if _layout(cls).has_slots else ()


def is_plain_class(cls: Any) -> bool:
    """Return whether attributes and slots are all that the objects of a class hold."""
    return _layout(cls).is_plain


def has_array_protocol(cls: Any) -> bool:
    """Return whether the objects of a class lend their memory, or make arrays of themselves."""
    return _layout(cls).has_array_protocol


def _attributes(value: Any) -> dict[str, Any]:
    try:
        attributes: dict[str, Any] = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return attributes


def _slots(cls: Any) -> list[tuple[str, Any]]:
    return [
        (name, slot)
        for base in cls.__mro__
        if base.__flags__ & _IS_HEAP_TYPE
        for name, slot in vars(base).items()
        if type(slot) is MemberDescriptorType
    ]


class _ObjectLayout(NamedTuple):
    """The way in which the objects of a class hold what they are.

    Attributes:
        has_slots: whether they have slots.
        is_plain: whether attributes and slots are all that they hold.
        has_array_protocol: whether they lend their memory, or make arrays of themselves.
    """

    has_slots: bool
    is_plain: bool
    has_array_protocol: bool


_layouts: weakref.WeakKeyDictionary[Any, _ObjectLayout] = weakref.WeakKeyDictionary()


def _layout(cls: Any) -> _ObjectLayout:
    layout = _layouts.get(cls)
    if layout is None:
        slots = _slots(cls)
        count = len(slots) + (cls.__dictoffset__ > 0) + (cls.__weakrefoffset__ > 0)
        size = object.__basicsize__ + count * _POINTER_SIZE
        layout = _layouts[cls] = _ObjectLayout(
            bool(slots),
            cls.__basicsize__ <= size and not cls.__itemsize__,
            any(hasattr(cls, name) for name in _ARRAY_PROTOCOLS),
        )
    return layout


_IS_HEAP_TYPE = 1 << 9
_IS_BUILTIN_VALUE = 1 << 24 | 1 << 26 | 1 << 27 | 1 << 28 | 1 << 31  # int, tuple, bytes, str, type
_SINGLETONS = (type(None), bool, type(...), type(NotImplemented))
_TEXTS_AND_NUMBERS = (str, bytes, bool, int, float, complex)
_MODULES = (ModuleType, type(None))  # what functions of Python's belong to that are no methods
_POINTER_SIZE = struct.calcsize("P")
_ARRAY_PROTOCOLS = {"__array_interface__", "__array_struct__", "__dlpack__", "__array__"}
# Their classes pickle all that an object is.
_VALUE_LIBRARIES = sys.stdlib_module_names | {"numpy"}


def _float_bits(value: float) -> bytes:
    return struct.pack("d", value)


def _itself(value: Any) -> Any:
    return value


# By class: the parts that tell a value from others of its class
_PARTS: dict[Any, Callable[[Any], Hashable]] = {
    **dict.fromkeys((type(None), bool, int, str, bytes, type(...), type(NotImplemented)), _itself),
    float: _float_bits,
    complex: lambda value: (_float_bits(value.real), _float_bits(value.imag)),
    tuple: lambda value: tuple(map(key_of, value)),
    frozenset: lambda value: tuple(map(key_of, value)),  # code sees its order
    range: lambda value: (value.start, value.stop, value.step),
    slice: lambda value: tuple(map(key_of, (value.start, value.stop, value.step))),
    **dict.fromkeys((type, FunctionType, ModuleType), ByIdentity),
}
# Subclasses of these are told by the plain value, and by their attributes.
_VALUE_BASES: dict[Any, Callable[[Any], Any]] = {
    bool: _itself,
    int: int.__pos__,
    float: float.__pos__,
    complex: complex.__pos__,
    str: str.__str__,
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    tuple: lambda value: tuple.__getitem__(value, slice(None)),
    frozenset: lambda value: tuple(frozenset.__iter__(value)),
}


_SCALAR_TYPES = frozenset({bool, float, complex, *(np.dtype(c).type for c in "?bBhHiIlLqQefdFD")})


def shape_key(
    arguments: Sequence[Any], boundaries: Mapping[type, Any] = MappingProxyType({})
) -> Hashable:
    """Return a key of arguments that are all arrays and numbers, else None; in a microsecond.

    Args:
        arguments: the arguments.
        boundaries: those of the classes of arrays besides NumPy's.
    """
    parts: list[Any] = []
    for argument in arguments:
        kind = type(argument)
        if kind is np.ndarray:
            parts.append((argument.dtype, argument.shape))
        elif kind in _SCALAR_TYPES or (kind is int and -(2**63) <= argument < 2**63):
            parts.append(kind)
        elif kind in boundaries:
            parts.append((kind, boundaries[kind].type_of(argument)))
        else:
            return None
    return tuple(parts)


def weak_parts(key: Any) -> Iterator[ByIdentity]:
    """Return the objects that a key references weakly."""
    if isinstance(key, ByIdentity):
        yield key
    elif isinstance(key, _FrozenKey):
        yield from weak_parts(key.parts)
    elif isinstance(key, tuple):
        for part in key:
            yield from weak_parts(part)
