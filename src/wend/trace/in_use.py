"""The variables of the compiled functions that are running: host calls must not assign to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from wend.trace.variable import Variable

_bindings: ContextVar[Sequence[Any]] = ContextVar("wend_bindings", default=())


@contextmanager
def in_use(bindings: Sequence[Any]) -> Iterator[None]:
    """Run a function that has effects and captures these."""
    token = _bindings.set((*_bindings.get(), *bindings))
    try:
        yield
    finally:
        _bindings.reset(token)


def variables_in_use() -> list[Variable]:
    """The variables that running functions read or assign."""
    return [x for x in _bindings.get() if isinstance(x, Variable)]
