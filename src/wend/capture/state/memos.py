"""Functions with `functools.lru_cache`, whose first call fills the cache."""

from __future__ import annotations

import functools
import types
from typing import Any

from wend.base.errors import StructureError, explain
from wend.base.source import at, user_source
from wend.capture.guards.outside import look
from wend.capture.heap.unseen_code import note_uncaptured
from wend.capture.state.one_shot_iterators import current_region

_CONSTANT_TYPES = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type)


def is_memo(fun: Any) -> bool:
    """Return whether a function is wrapped by `functools.lru_cache`."""
    return isinstance(fun, functools._lru_cache_wrapper)


def call_memo(fun: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function with a cache.

    Raises:
        StructureError: it is computed, not found in the cache, in a loop or branch, and may not
            give the same value later.
    """
    wrapped = fun.__wrapped__
    if isinstance(wrapped, types.FunctionType):
        note_uncaptured(wrapped)
    misses = fun.cache_info().misses
    result = look(fun, *args, **kwargs)
    if current_region() is None or fun.cache_info().misses == misses or _is_closed(wrapped):
        return result
    raise StructureError(
        explain(
            f"`{wrapped.__name__}` fills its cache{at(user_source())}, in a loop or branch that "
            "is recorded once: only the run knows whether it was called before.",
            cure="call it before the loop or branch, or leave out its cache.",
        )
    )


def _is_closed(fun: Any) -> bool:
    """Return whether a function refers to nothing but functions, modules and classes."""
    if not isinstance(fun, types.FunctionType) or fun.__code__.co_freevars:
        return False
    names = fun.__globals__
    return all(
        isinstance(names[name], _CONSTANT_TYPES) for name in fun.__code__.co_names if name in names
    )
