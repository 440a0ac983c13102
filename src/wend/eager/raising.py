"""Errors of Python numbers where the recorded operation raises none: `1 / 0`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeAlias

from wend.base.context_values import scoped
from wend.eager.dispatch import Staged, recorder

Errors: TypeAlias = tuple[type[BaseException], ...]
Test: TypeAlias = Callable[[], Any]


class Filled(NamedTuple):
    """The text of an error, with a number in place of its `{}`."""

    text: str
    number: Any


ErrorText: TypeAlias = str | Filled | tuple[Any, ...]  # or what an exception is made with

# Leads the runs in which a test holds to the recorded handler of an exception with this text, if
# there is one, and returns whether there is; set where handlers are recorded
divert: Callable[[Test, type[BaseException], Callable[[], ErrorText]], bool]
divert = lambda test, error, text: False  # noqa: E731
# Whether a test has made sure that what is recorded raises nothing
is_checked: ContextVar[bool] = ContextVar("wend_checked_operations", default=False)


def checked() -> AbstractContextManager[object]:
    """Record operations in a `with` block that a test has made sure to raise nothing."""
    return scoped(is_checked, True)


def may_raise(what: str, errors: Errors) -> None:
    """Note that an operation on numbers may raise these in the run, where one is recorded."""
    scope = recorder.get()
    if scope is not None and errors:
        scope.may_raise(f"`{what}`", errors)


def guard(test: Test, what: str, error: type[BaseException], text: str) -> bool:
    """Make sure that an operation raises an error only where a recorded handler catches it.

    Return whether there is one; otherwise note that the operation may raise the error.
    """
    if divert(test, error, lambda: text):
        return True
    may_raise(what, (error,))
    return False


def noting(
    symbol: str, function: Callable[[Any, Any], Any], fails: Callable[[Any], bool]
) -> Callable[[Any, Any], Any]:
    """Return an operator of numbers that notes that it may raise ZeroDivisionError.

    `fails`: whether it raises for a known second operand.
    """

    def run(x: Any, y: Any) -> Any:
        if symbol in _DIVISIONS and (isinstance(y, Staged) or fails(y)):
            if not divert(lambda: y == 0, ZeroDivisionError, lambda: _text(symbol, x, y)):
                may_raise(symbol, (ZeroDivisionError,))
        elif isinstance(y, Staged) or fails(y):
            may_raise(symbol, (ZeroDivisionError,))
        return function(x, y)

    return run


_DIVISIONS: dict[str, Callable[[Any, Any], Any]] = {
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "divmod": divmod,
}


def _text(symbol: str, x: Any, y: Any) -> str:
    """Return the text of Python's error for a division of numbers of these kinds by zero."""
    one, zero = (_kind(number)(value) for number, value in ((x, 1), (y, 0)))
    try:
        _DIVISIONS[symbol](one, zero)
    except ZeroDivisionError as error:
        return str(error)
    raise AssertionError


def _kind(x: Any) -> Any:
    kinds = {"b": int, "i": int, "f": float, "c": complex}
    return kinds[x.type.dtype.kind] if isinstance(x, Staged) else type(x)
