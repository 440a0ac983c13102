"""`functools.cached_property` without the lock that it has in Python 3.11."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801 - in place of Python's
    """An attribute computed at first use.

    Python 3.11 locks each such attribute for all objects at once: two graphs could not be compiled
    at the same time, and a fork meanwhile would leave the lock taken in its child.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, owner: None, kind: type) -> cached_property[T]: ...
    @overload
    def __get__(self, owner: object, kind: type | None = None) -> T: ...
    def __get__(self, owner: object, kind: type | None = None) -> cached_property[T] | T:
        if owner is None:
            return self
        return owner.__dict__.setdefault(self._name, self._compute(owner))  # type: ignore[no-any-return]
