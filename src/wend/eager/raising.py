"""Errors of Python numbers where the recorded operation raises none: `1 / 0`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from wend.eager.dispatch import Staged, recorder

Errors: TypeAlias = tuple[type[BaseException], ...]


def may_raise(what: str, errors: Errors) -> None:
    """Note that an operation on numbers may raise these in the run, where one is recorded."""
    scope = recorder.get()
    if scope is not None and errors:
        scope.may_raise(f"`{what}`", errors)


def noting(
    symbol: str, function: Callable[[Any, Any], Any], fails: Callable[[Any], bool]
) -> Callable[[Any, Any], Any]:
    """Return an operator of numbers that notes that it may raise ZeroDivisionError.

    `fails`: whether it raises for a known second operand.
    """

    def run(x: Any, y: Any) -> Any:
        if isinstance(y, Staged) or fails(y):
            may_raise(symbol, (ZeroDivisionError,))
        return function(x, y)

    return run
