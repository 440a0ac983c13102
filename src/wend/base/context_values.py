"""A context variable that holds something while a block runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")


@contextmanager
def scoped(variable: ContextVar[Any], value: T) -> Iterator[T]:
    """Let a variable hold a value in this block, and give that; after it, what it held before."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)
