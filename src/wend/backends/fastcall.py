"""A call that goes straight into compiled code: what stands for each param of a graph.

A backend may make a callable of a `CallSignature`. It checks its arguments itself, and returns
`FALLBACK`, having done nothing, where they do not match the signature.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

FALLBACK: Final = object()


@dataclass(frozen=True, slots=True)
class CallArgument:
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
class CallConstant:
    """An array that is the same at each call."""

    array: Any


CallOperand: TypeAlias = CallArgument | CallConstant | None  # None: a token


@dataclass(frozen=True, slots=True)
class Guard:
    """What a context variable has to hold; where it is not set, the first item of a list."""

    variable: ContextVar[Any]
    otherwise: list[Any] | None
    expected: Any


@dataclass(frozen=True, slots=True)
class CallSignature:
    """How a graph is called.

    Attributes:
        takes: what stands for each of its params.
        count: how many arguments there are, by position.
        gives: how many of its results are wanted, the first ones.
        is_single: whether the one that is wanted comes as it is, not in a tuple.
        guards: what has to hold.
    """

    takes: tuple[CallOperand, ...]
    count: int
    gives: int
    is_single: bool = False
    guards: tuple[Guard, ...] = ()


class FastCall(Protocol):
    """Calls compiled code; as often as wanted, until it is granted so many calls.

    Attributes:
        call: takes arguments, gives results or `FALLBACK`.
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

    def allow_calls(self, count: int) -> int:
        """Let it serve so many calls, then none; returns how many are left of those before."""
        ...

    def set_guard(self, number: int, value: Any) -> None:
        """Let a guard ask for another value."""
        ...
