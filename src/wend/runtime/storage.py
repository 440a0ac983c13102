"""The storage of a `Variable` as graphs refer to it: weakly."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

import numpy as np

from wend.base.context_values import scoped
from wend.runtime.array_boundary import foreign_boundary


class StorageOwner:
    """An object whose value a storage holds: a variable.

    Attributes:
        storage: its storage.
        is_stream: whether it is the state of a generator, which initial values of variables
            advance.
    """

    __slots__ = ()
    storage: Storage
    is_stream = False


class Storage:
    """The storage of one variable; it does not keep the variable alive.

    Arrays are stored by reference while a graph runs. When it has run, or failed, `copy_shared`
    copies those that the caller could change through an alias.

    Args:
        owner: the variable; it has a method `hold(array)` and an attribute `concrete`.
        gone_error: makes the error for a variable that no longer exists.
    """

    __slots__ = ("__weakref__", "_gone_error", "_owner")

    def __init__(self, owner: Any, gone_error: Callable[[], Exception]) -> None:
        self._owner = weakref.ref(owner)
        self._gone_error = gone_error

    @property
    def owner(self) -> Any:
        """The variable.

        Raises:
            GoneError: it has been garbage-collected.
        """
        variable = self._owner()
        if variable is None:
            raise self._gone_error()
        return variable

    @property
    def is_gone(self) -> bool:
        """Whether the variable has been garbage-collected."""
        return self._owner() is None

    def put(self, array: Any) -> None:
        """Store an array, or a NumPy scalar, in the variable."""
        owner = self._owner()  # inlined `self.owner`: each trip of a loop may get here
        if owner is None:
            raise self._gone_error()
        owner.hold(array)

    def copy_shared(self, arrays: Sequence[Any]) -> None:
        """Copy the variable's array if it may share memory with writeable arrays of the caller."""
        owner = self.owner
        array = owner.concrete
        if not isinstance(array, np.ndarray):
            return
        if any(_may_change_through(other, array) for other in arrays):
            array = array.copy()
        array.flags.writeable = False
        owner.hold(array)

    def __repr__(self) -> str:
        owner = self._owner()
        return "the place of a variable that is gone" if owner is None else f"the place of {owner}"


class PassedStorage(Storage):
    """The storage of a variable that is an argument: another variable in each run."""

    __slots__ = ()

    @property
    def owner(self) -> Any:
        variable = _bound_variables.get().get(self)
        return super().owner if variable is None else variable

    def put(self, array: Any) -> None:
        self.owner.hold(array)


_bound_variables: ContextVar[Mapping[Storage, Any]] = ContextVar(
    "wend_passed", default=MappingProxyType({})
)


def bind_variables(variables: Mapping[Storage, Any]) -> AbstractContextManager[Any]:
    """Bind storages to the variables passed as arguments, while a block runs."""
    return scoped(_bound_variables, {**_bound_variables.get(), **variables})


def _may_change_through(other: Any, array: np.ndarray) -> bool:
    """Return whether a caller who holds one array may change the memory of another."""
    boundary = foreign_boundary(other)
    if boundary is not None:
        return boundary.shares_memory(other, array)
    return _may_change(other) and np.may_share_memory(array, other)


def _may_change(array: Any) -> bool:
    if not isinstance(array, np.ndarray):
        return False
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return True
        array = array.base
    return False
