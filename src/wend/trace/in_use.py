"""The variables of the compiled functions that are running: host calls must not assign to them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from wend.base.scoped import scoped
from wend.trace.variable import Variable

_bindings: ContextVar[Sequence[Any]] = ContextVar("wend_bindings", default=())


def in_use(bindings: Sequence[Any]) -> AbstractContextManager[Any]:
    """Run a function that has effects and captures these."""
    return scoped(_bindings, (*_bindings.get(), *bindings))


def variables_in_use() -> list[Variable]:
    """The variables that running functions read or assign."""
    return [x for x in _bindings.get() if isinstance(x, Variable)]
