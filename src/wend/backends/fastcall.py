"""A call that goes straight into compiled code: what stands for each param of a graph.

A backend may make a callable of a `Form`. It looks at what it is given itself, and returns `MISS`,
having done nothing, where that is not what the form says.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

MISS: Final = object()


@dataclass(frozen=True, slots=True)
class Given:
    """An argument of the call.

    Attributes:
        index: which one.
        is_weak: whether it is a number of Python's; else it is an array, or a NumPy scalar.
        is_special: whether a size that is not known may be 0 or 1.
    """

    index: int
    is_weak: bool = False
    is_special: bool = True


@dataclass(frozen=True, slots=True)
class Bound:
    """An array that is the same at each call."""

    array: Any


Taken: TypeAlias = Given | Bound | None  # None: a token


@dataclass(frozen=True, slots=True)
class Guard:
    """What a context variable has to hold; where it is not set, the first item of a list."""

    variable: ContextVar[Any]
    otherwise: list[Any] | None
    expected: Any


@dataclass(frozen=True, slots=True)
class Form:
    """How a graph is called.

    Attributes:
        takes: what stands for each of its params.
        count: how many arguments there are, by position.
        gives: how many of its results are wanted, the first ones.
        is_single: whether the one that is wanted comes as it is, not in a tuple.
        guards: what has to hold.
    """

    takes: tuple[Taken, ...]
    count: int
    gives: int
    is_single: bool = False
    guards: tuple[Guard, ...] = ()


class Direct(Protocol):
    """Calls compiled code; as often as wanted, until it is granted so many calls.

    Attributes:
        call: takes arguments, gives results or `MISS`.
    """

    @property
    def call(self) -> Callable[..., Any]: ...

    @property
    def left(self) -> int:
        """How many calls it may still serve."""
        ...

    def call_or(self, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        """What calls another callable, by keyword too, where `call` misses; of one at a time."""
        ...

    def grant(self, count: int) -> int:
        """Let it serve so many calls, then none; returns how many are left of those before."""
        ...

    def expect(self, number: int, value: Any) -> None:
        """Let a guard ask for another value."""
        ...
