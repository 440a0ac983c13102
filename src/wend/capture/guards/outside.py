"""Loads of captured code that may reach objects of outside: what they give, and their guards.

Rewritten code calls these functions for each name that it does not bind, and for each attribute
and item that it loads. `is_base`: only an attribute or item of the value is read, not the value.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from wend.capture.guards.guards import active_recorder
from wend.capture.heap.snapshots import container_kind
from wend.capture.libraries import is_library


def load_global(value: Any, name: str, is_base: bool = False, /) -> Any:
    """Return the value of a global that captured code loads."""
    recorder = active_recorder()
    if recorder is None:
        return value
    return recorder.read_global(sys._getframe(1).f_globals, name, value, is_base=is_base)


def load_closure(value: Any, name: str, is_base: bool = False, /) -> Any:
    """Return the value of a variable of an enclosing function that is not captured."""
    recorder = active_recorder()
    if recorder is None:
        return value
    if not is_base:
        recorder.read_container(value)
    return recorder.enter(value, name)


def loaded_attribute(owner: Any, name: str, value: Any, *, is_base: bool = False) -> Any:
    """Return the value of an attribute that captured code loads."""
    recorder = active_recorder()
    return value if recorder is None else recorder.read_attribute(owner, name, value, is_base)


def loaded_item(owner: Any, key: Any, value: Any, *, is_base: bool = False) -> Any:
    """Return the value of an item that captured code loads."""
    recorder = active_recorder()
    return value if recorder is None else recorder.read_item(owner, key, value, is_base)


def entered_items(value: Any) -> Any:
    """Return what captured code iterates over, with the arrays of outside as captures."""
    recorder = active_recorder()
    return value if recorder is None else recorder.items(value)


def read_absence(owner: Any, name: str) -> None:
    """Note that captured code finds that an object lacks an attribute."""
    recorder = active_recorder()
    if recorder is not None:
        recorder.read_absence(owner, name)


def read_call(fun: Any) -> Callable[[Any], Any] | None:
    """Note what a call reads besides its arguments; return what to apply to its result."""
    recorder = active_recorder()
    if recorder is None:
        return None
    if isinstance(fun, types.MethodType):
        recorder.read_method(fun)
        return None
    owner = getattr(fun, "__self__", None)
    is_builtin = isinstance(fun, (types.BuiltinMethodType, types.MethodWrapperType))
    if not is_builtin or container_kind(type(owner)) is None or not recorder.read_contents(owner):
        return None
    return lambda result: recorder.entered_result(owner, result)


def reads_arguments(fun: Any) -> bool:
    """Return whether a function may read the objects that it gets without being observed."""
    if active_recorder() is None or not isinstance(fun, types.FunctionType):
        return False
    file = fun.__code__.co_filename
    return is_library(file) and not (fun.__module__ or "").startswith(("wend", "numpy"))


def read_arguments(*arguments: Any) -> None:
    """Note that library code may read whatever these objects hold."""
    recorder = active_recorder()
    if recorder is not None:
        for argument in arguments:
            recorder.read_contents(argument)
