"""The interface of fast calls: callables that enter compiled code without any Python frame.

A backend may build a callable from a `CallSignature`. The callable checks its arguments itself;
where they do not match the signature it returns `FALLBACK` and has no effect.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from wend.base.keys import Match
from wend.base.lazy.dataclass import dataclass

FALLBACK: Final = object()
MISSING: Final = object()  # in place of a value that is not there

CheckKind: TypeAlias = Literal[
    "dict",
    "attribute",
    "method",
    "cell",
    "type",
    "part",
    "item",
    "length",
    "items",
    "entries",
    "bytes",
    "layout",
    "call",
]


@dataclass(frozen=True, slots=True)
class CallArgument:
    """A param of the graph that is an argument of the call.

    Attributes:
        index: the position of the argument.
        is_weak: whether it is a Python number; otherwise it is an array or a NumPy scalar.
        accepts_zero_one: whether a symbolic size may also be 0 or 1.
        is_zero_dim: whether a scalar of the graph is a 0-d array, which NumPy's scalars are not.
    """

    index: int
    is_weak: bool = False
    accepts_zero_one: bool = True
    is_zero_dim: bool = False


@dataclass(frozen=True, slots=True)
class CallConstant:
    """A param of the graph that is the same array at each call."""

    array: Any

    @property
    def is_zero_dim(self) -> bool:
        """Whether it is a 0-d array, which is read at each call: NumPy's scalars are not."""
        return isinstance(self.array, np.ndarray) and self.array.ndim == 0


@dataclass(frozen=True, slots=True)
class CallStatic:
    """An argument of the call that is no param: the call may run if it is the one expected.

    | match | holds if the argument |
    |---|---|
    | `"identity"` | is `expected` |
    | `"equality"` | is a str, bytes or int, not of a subclass, equal to `expected` |
    | `"bits"` | is a float with the bits of `expected` |
    | `"method"` | is a method of the function and object of `expected` |

    An object that can be referred to weakly is not kept; once it is gone, no call may run.
    """

    index: int
    expected: Any
    match: Match


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


class GuardCheck(NamedTuple):
    """A condition on a Python object; objects are compared by identity.

    | kind | holds if |
    |---|---|
    | `"dict"` | the item `key` of a dict is `expected`; `MISSING`: there is none |
    | `"attribute"` | the attribute `key` is `expected`; only where no user code finds it |
    | `"method"` | the attribute `key` is a method of the function `expected` |
    | `"cell"` | a cell holds `expected`; `MISSING`: it is empty |
    | `"type"` | the class of the owner is `expected` |
    | `"part"` | the part `key` of a function, its `__code__` or defaults, is `expected` |
    | `"item"` | a list or tuple has the item `expected` at the index `key` |
    | `"length"` | a list, tuple, dict or set has `expected` items |
    | `"items"` | the items of a list are those of the tuple `expected` |
    | `"entries"` | the keys and values of a dict, in order and in turn, are those of `expected` |
    | `"bytes"` | a contiguous array has the bytes `expected`, or this checksum, or those it has \
                  when the check is set, if None |
    | `"layout"` | an array has the dtype, shape and strides of `expected` |
    | `"call"` | a callable without parameters returns `expected` |

    Checks run in order, so each owner may be what an earlier check has established.
    """

    kind: CheckKind
    owner: Any
    key: Any
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
        statics: the arguments that are no operands.
        counter: counts the calls that compiled code serves.
        copies_arrays: whether arrays that are not in C order are copied for the call; otherwise
            they do not match.
    """

    operands: tuple[CallOperand, ...]
    argument_count: int
    result_count: int
    is_single: bool = False
    guards: tuple[Guard, ...] = ()
    statics: tuple[CallStatic, ...] = ()
    counter: ctypes.c_int64 | None = None
    copies_arrays: bool = False


class FastCall(Protocol):
    """A callable into compiled code.

    Attributes:
        call: takes the arguments; returns the results or `FALLBACK`.
    """

    @property
    def call(self) -> Callable[..., Any]: ...

    @property
    def has_stale_checks(self) -> bool:
        """Return whether a check has failed since they were set."""
        ...

    def call_or(self, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        """Return a callable that accepts keywords, and calls `otherwise` where `call` falls back.

        Only the callable that was returned last may be used.
        """
        ...

    def stop(self) -> None:
        """Fall back at every call from now on."""
        ...

    def set_guard(self, number: int, value: Any) -> None:
        """Set the object that a guard expects."""
        ...

    def set_checks(self, checks: Sequence[GuardCheck]) -> None:
        """Set the checks on Python objects, which hold now; where one fails, calls fall back."""
        ...


class FastCallWrapper(ABC):
    """A fast call that acts around another one, from one Python frame.

    Attributes:
        call: takes the arguments; returns the results or `FALLBACK`.
    """

    def __init__(self, fast_call: FastCall) -> None:
        self._fast_call = fast_call
        self.call = self.call_or(lambda *args: FALLBACK)

    @abstractmethod
    def call_or(self, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        """Return a callable that also accepts keywords, and calls `otherwise` to fall back."""

    @property
    def has_stale_checks(self) -> bool:
        """Return whether a check has failed since they were set."""
        return self._fast_call.has_stale_checks

    def stop(self) -> None:
        """Fall back at every call from now on."""
        self._fast_call.stop()

    def set_guard(self, number: int, value: Any) -> None:
        """Set the object that a guard expects."""
        self._fast_call.set_guard(number, value)

    def set_checks(self, checks: Sequence[GuardCheck]) -> None:
        """Set the checks on Python objects, which hold now; where one fails, calls fall back."""
        self._fast_call.set_checks(checks)
