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

    Not by the token of `set`: an interrupt that arrives during `set` comes before it is known. One
    that arrives before `__exit__` has begun leaves this to the collector, which may come late:
    traces run in a context of their own, where nothing remains.
    """
    previous, is_current = variable.get(), True
    try:
        variable.set(value)
        yield value
    except GeneratorExit:
        is_current = variable.get() is value
        raise
    finally:
        if is_current:
            variable.set(previous)
