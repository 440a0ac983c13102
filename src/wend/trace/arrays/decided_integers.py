"""Integers that Python needs, and whose values are part of the trace (`capture.state.paths`)."""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from wend.base.context_values import scoped

E = TypeVar("E", bound=Exception)


class IntegerDecisions(Protocol):
    """The values of integers that a trace is for."""

    def value_of(self, integer: Any) -> int | None:
        """Return the value of an integer that is part of the trace; None of others."""

    def mark(self, error: Exception, integer: Any) -> None:
        """Note on the refusal of an integer that a trace for its value may help."""


_decisions: ContextVar[IntegerDecisions | None] = ContextVar("wend_decisions", default=None)


def deciding_integers(decisions: IntegerDecisions | None) -> AbstractContextManager[object]:
    """Trace with the values of these integers in a block."""
    return scoped(_decisions, decisions)


def decided_integer(number: Any) -> int | None:
    """Return the value of a traced number, if it is an integer whose value the trace is for."""
    decisions = _decisions.get()
    return None if decisions is None or not _is_integer(number) else decisions.value_of(number)


def marked(error: E, number: Any) -> E:
    """Return the refusal of a number, which tells whether a trace for its value may help."""
    decisions = _decisions.get()
    if decisions is not None and _is_integer(number):
        decisions.mark(error, number)
    return error


def _is_integer(number: Any) -> bool:
    return number.type.shape == () and number.type.dtype.kind in "iu"
