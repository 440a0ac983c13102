"""Where a graph stores while it runs: what a `Variable` holds, reached weakly."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

import numpy as np

from wend.base.context_values import scoped


class Storage:
    """The place of one variable, as graphs name it; it does not keep the variable.

    Arrays are put there by reference while a graph runs. When it has run, or failed, `settle`
    copies what the caller could change through an array of his own.

    Args:
        owner: the variable; it has a method `hold(array)` and an attribute `concrete`.
        gone: makes the error for a variable that is gone.
    """

    __slots__ = ("__weakref__", "_gone", "_owner")

    def __init__(self, owner: Any, gone: Callable[[], Exception]) -> None:
        self._owner = weakref.ref(owner)
        self._gone = gone

    @property
    def owner(self) -> Any:
        """The variable.

        Raises:
            GoneError: nobody has held it any more.
        """
        found = self._owner()
        if found is None:
            raise self._gone()
        return found

    @property
    def is_gone(self) -> bool:
        """Whether nobody holds the variable."""
        return self._owner() is None

    def put(self, array: Any) -> None:
        """Let the variable hold an array, or a NumPy scalar."""
        owner = self._owner()  # as `self.owner`, but each trip of a loop may come by here
        if owner is None:
            raise self._gone()
        owner.hold(array)

    def copy_shared(self, given: Sequence[Any]) -> None:
        """Copy what it holds where it may share memory with arrays that others may change."""
        owner = self.owner
        array = owner.concrete
        if not isinstance(array, np.ndarray):
            return
        if any(_may_change(other) and np.may_share_memory(array, other) for other in given):
            array = array.copy()
        array.flags.writeable = False
        owner.hold(array)

    def __repr__(self) -> str:
        owner = self._owner()
        return "the place of a variable that is gone" if owner is None else f"the place of {owner}"


class PassedStorage(Storage):
    """The place of a variable that is an argument: in each run another one."""

    __slots__ = ()

    @property
    def owner(self) -> Any:
        found = _passed.get().get(self)
        return super().owner if found is None else found

    def put(self, array: Any) -> None:
        self.owner.hold(array)


_passed: ContextVar[Mapping[Storage, Any]] = ContextVar("wend_passed", default=MappingProxyType({}))


def passing(variables: Mapping[Storage, Any]) -> AbstractContextManager[Any]:
    """Let places be those of variables that are passed, while this block runs."""
    return scoped(_passed, {**_passed.get(), **variables})


def _may_change(array: Any) -> bool:
    if not isinstance(array, np.ndarray):
        return False
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return True
        array = array.base
    return False
