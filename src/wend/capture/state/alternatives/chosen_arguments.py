"""Calls of functions that ask for a text which only the run chooses."""

from __future__ import annotations

import types
from typing import Any

from wend.capture.heap.containers import mutated_by
from wend.capture.state.alternatives.choice import Choice

_KINDS_OF_CONSTANTS = (str, int, float, bool, repr, ord)


def takes_constants(fun: Any) -> bool:
    """Return whether a function asks for a text itself, and does not keep it."""
    is_builtin = isinstance(fun, types.BuiltinFunctionType) and mutated_by(fun) is None
    asks_for_it = is_builtin and not any(fun is x for x in (isinstance, id, callable, hasattr))
    return asks_for_it or any(fun is kind for kind in _KINDS_OF_CONSTANTS)


def call_by_case(fun: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function for each constant that an argument may be."""
    for k, argument in enumerate(args):
        if isinstance(argument, Choice):
            before, after = args[:k], args[k + 1 :]
            return argument.by_case(
                lambda x: call_by_case(fun, *before, x, *after, **kwargs)  # noqa: B023
            )
    return fun(*args, **kwargs)
