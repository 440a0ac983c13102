"""Scoped values of context variables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")


@contextmanager
def scoped(variable: ContextVar[Any], value: T) -> Iterator[T]:
    """Set a context variable inside a block and yield the value; restore the old one afterwards."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)
