"""What a Python value is in the key of a trace: equal for values that one trace serves."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

# Their contents change while they stay the same object: a trace would go stale unnoticed.
_CHANGING = (list, dict, set, bytearray, deque, np.ndarray)


class ByIdentity:
    """One object, held weakly; equal to itself only."""

    __slots__ = ("number", "reference")

    def __init__(self, value: Any) -> None:
        self.reference = weakref.ref(value)
        self.number = id(value)

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ByIdentity) or self.number != other.number:
            return False
        mine = self.reference()
        return mine is not None and mine is other.reference()

    def __repr__(self) -> str:
        value = self.reference()
        return "an object that is gone" if value is None else f"{value!r:.60}"

    def when_gone(self, forget: Callable[[Any], None]) -> Any:
        """A reference to hold, as long as one wants to be told when the object goes."""
        value = self.reference()
        return None if value is None else weakref.ref(value, forget)


def key_of(value: Any) -> Hashable:
    """The key of a value: by its type and what it equals, or weakly by identity.

    Raises:
        TypeError: it has no hash, and cannot be told by identity either.
    """
    kind: Any = type(value)
    if isinstance(value, (float, complex, np.inexact)):
        return kind, repr(value)  # NaN is one value, and 0.0 and -0.0 are two
    if kind.__hash__ is tuple.__hash__ and kind.__eq__ is tuple.__eq__:
        return kind, tuple(map(key_of, value))
    if kind is frozenset:
        return kind, frozenset(map(key_of, value))
    if kind.__hash__ is object.__hash__:
        try:
            return kind, ByIdentity(value)
        except TypeError:  # it cannot be held weakly
            return kind, value
    if isinstance(value, Hashable):
        hash(value)  # of a container it may still fail
        return kind, value
    if isinstance(value, _CHANGING):
        raise TypeError(f"unhashable type: {kind.__name__!r}")
    return kind, ByIdentity(value)


_NUMBERS = frozenset({bool, float, complex, *(np.dtype(c).type for c in "?bBhHiIlLqQefdFD")})


def plain_key(arguments: Sequence[Any]) -> Hashable:
    """A key for arguments that are all arrays and numbers, in a microsecond; None for others."""
    found: list[Any] = []
    for argument in arguments:
        kind = type(argument)
        if kind is np.ndarray:
            found.append((argument.dtype, argument.shape))
        elif kind in _NUMBERS or (kind is int and -(2**63) <= argument < 2**63):
            found.append(kind)
        else:
            return None
    return tuple(found)


def held_weakly(key: Any) -> Iterator[ByIdentity]:
    """The objects in a key that it does not keep alive."""
    if isinstance(key, ByIdentity):
        yield key
    elif isinstance(key, (tuple, frozenset)):
        for part in key:
            yield from held_weakly(part)
