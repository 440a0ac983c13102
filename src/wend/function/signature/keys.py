"""The keys of Python values: equal for values that the same trace accepts."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

# Not keyed by identity: their contents may change, and a trace would go stale unnoticed.
_MUTABLE_TYPES = (list, dict, set, bytearray, deque, np.ndarray)


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


def key_of(value: Any) -> Hashable:
    """Return the key of a value: its type and value, or a weak identity.

    Raises:
        TypeError: it is not hashable, and its contents may change.
    """
    cls: Any = type(value)
    if isinstance(value, (float, complex, np.inexact)):
        return cls, repr(value)  # NaN is one value, and 0.0 and -0.0 are two
    if cls.__hash__ is tuple.__hash__ and cls.__eq__ is tuple.__eq__:
        return cls, tuple(map(key_of, value))
    if cls is frozenset:
        return cls, frozenset(map(key_of, value))
    if cls.__hash__ is object.__hash__:
        try:
            return cls, ByIdentity(value)
        except TypeError:  # not weakly referenceable
            return cls, value
    if isinstance(value, Hashable):
        hash(value)  # may still fail for a container
        return cls, value
    if isinstance(value, _MUTABLE_TYPES):
        raise TypeError(f"unhashable type: {cls.__name__!r}")
    return cls, ByIdentity(value)


_SCALAR_TYPES = frozenset({bool, float, complex, *(np.dtype(c).type for c in "?bBhHiIlLqQefdFD")})


def shape_key(arguments: Sequence[Any]) -> Hashable:
    """Return a key of arguments that are all arrays and numbers, else None; in a microsecond."""
    parts: list[Any] = []
    for argument in arguments:
        kind = type(argument)
        if kind is np.ndarray:
            parts.append((argument.dtype, argument.shape))
        elif kind in _SCALAR_TYPES or (kind is int and -(2**63) <= argument < 2**63):
            parts.append(kind)
        else:
            return None
    return tuple(parts)


def weak_parts(key: Any) -> Iterator[ByIdentity]:
    """Return the objects that a key references weakly."""
    if isinstance(key, ByIdentity):
        yield key
    elif isinstance(key, (tuple, frozenset)):
        for part in key:
            yield from weak_parts(part)
