"""The interface of fast calls: callables that enter compiled code without any Python frame.

A backend may build a callable from a `CallSignature`. The callable checks its arguments itself;
where they do not match the signature it returns `FALLBACK` and has no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

FALLBACK: Final = object()


@dataclass(frozen=True, slots=True)
class CallArgument:
    """A param of the graph that is an argument of the call.

    Attributes:
        index: the position of the argument.
        is_weak: whether it is a Python number; otherwise it is an array or a NumPy scalar.
        accepts_zero_one: whether a symbolic size may also be 0 or 1.
    """

    index: int
    is_weak: bool = False
    accepts_zero_one: bool = True


@dataclass(frozen=True, slots=True)
class CallConstant:
    """A param of the graph that is the same array at each call."""

    array: Any


CallOperand: TypeAlias = CallArgument | CallConstant | None  # None for a token


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition on a context variable.

    Attributes:
        variable: the context variable.
        default_cell: a list whose first item counts as the value where the variable is not set.
        expected: the object that the variable must hold, by identity.
    """

    variable: ContextVar[Any]
    default_cell: list[Any] | None
    expected: Any


@dataclass(frozen=True, slots=True)
class CallSignature:
    """How a graph is called.

    Attributes:
        operands: the source of each param of the graph.
        argument_count: the number of positional arguments of the call.
        result_count: the number of results to return, the first ones of the graph.
        is_single: whether a single result is returned bare, not in a tuple.
        guards: the conditions under which the call may run.
    """

    operands: tuple[CallOperand, ...]
    argument_count: int
    result_count: int
    is_single: bool = False
    guards: tuple[Guard, ...] = ()


class FastCall(Protocol):
    """A callable into compiled code; unlimited until `allow_calls` sets a limit.

    Attributes:
        call: takes the arguments; returns the results or `FALLBACK`.
    """

    @property
    def call(self) -> Callable[..., Any]: ...

    @property
    def remaining_calls(self) -> int:
        """Return how many calls it may still serve."""
        ...

    def call_or(self, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        """Return a callable that accepts keywords, and calls `otherwise` where `call` falls back.

        Only the callable that was returned last may be used.
        """
        ...

    def allow_calls(self, count: int) -> int:
        """Limit it to `count` further calls; return how many remained before."""
        ...

    def set_guard(self, number: int, value: Any) -> None:
        """Set the object that a guard expects."""
        ...
