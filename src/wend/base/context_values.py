"""Scoped values of context variables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")


@contextmanager
def scoped(variable: ContextVar[Any], value: T) -> Iterator[T]:
    """Set a context variable, which has a default, in a block; restore the old value afterwards.

    Not by the token of `set`: an interrupt that arrives during `set` comes before it is known.
    """
    previous, is_current = variable.get(), True
    try:
        variable.set(value)
        yield value
    except GeneratorExit:
        # An interrupt in `__exit__` leaves this to the collector, after the blocks around it.
        is_current = variable.get() is value
        raise
    finally:
        if is_current:
            variable.set(previous)
