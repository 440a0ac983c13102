"""Attributes of traced values in captured code: those of the values that they stand for (D47)."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from wend.base.errors import UnsupportedError, explain
from wend.base.source import at, user_source
from wend.capture.builtins.builtins import type_of
from wend.trace.arrays.attributes import class_of, example_of, missing
from wend.trace.arrays.tracer import Tracer

_OWN = frozenset({"at", "type", "weak"})  # of traced arrays only


def staged_attribute(x: Tracer, name: str) -> Any:
    """Return an attribute of a traced value.

    Raises:
        AttributeError: the value that it stands for has no such attribute.
        UnsupportedError: it tells whose memory the value has.
    """
    if name == "__class__":
        return type_of(x)
    kind = class_of(x)
    if not hasattr(kind, name) and name not in _OWN:
        raise missing(x, name)
    if name == "base" and kind is np.ndarray:
        raise UnsupportedError(
            explain(
                f"`base`{at(user_source())} of {x} asks whose memory an array has, which only the "
                "run knows.",
                cure="ask outside of the function; or np.shares_memory(a, b).",
            )
        )
    return getattr(x, name)


def has_staged_attribute(x: Any, name: str) -> bool:
    """Return whether the value that a traced value or list stands for has an attribute."""
    return hasattr(class_of(x) if isinstance(x, Tracer) else list, name)


def number_method(fun: Any) -> Callable[..., Any] | None:
    """Return the replacement of `float.is_integer`, and of others that Python's numbers have."""
    is_method = isinstance(fun, (types.MethodDescriptorType, types.WrapperDescriptorType))
    if not is_method or fun.__objclass__ not in (int, float, complex):
        return None

    def run(*args: Any) -> Any:
        if not args or not isinstance(args[0], Tracer):
            return fun(*args)
        kind = class_of(args[0])
        if not issubclass(kind, fun.__objclass__):
            fun(example_of(kind), *args[1:])  # Python's error
        return getattr(args[0], fun.__name__)(*args[1:])

    return run
