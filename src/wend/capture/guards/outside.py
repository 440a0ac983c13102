"""Loads of captured code that may reach objects of outside: what they give, and their guards.

Rewritten code calls these functions for each name that it does not bind, and for each attribute
and item that it loads. `is_base`: only an attribute or item of the value is read, not the value.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from wend.backends.fastcall import MISSING
from wend.base.instances import stored_attribute
from wend.capture.guards.active import active_recorder, operand_reads
from wend.capture.guards.reads import static_attribute
from wend.capture.heap.snapshots import container_kind
from wend.capture.heap.trace_log import is_written_global
from wend.capture.libraries import is_library


def load_global(value: Any, name: str, is_base: bool = False, /) -> Any:
    """Return the value of a global that captured code loads."""
    recorder = active_recorder()
    if recorder is None:
        return value
    namespace = sys._getframe(1).f_globals
    if is_written_global(namespace, name):  # what it holds is no matter of the call
        return value
    return recorder.read_global(namespace, name, value, is_base=is_base)


def entered_arguments(fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the arguments of a function that neither changes nor keeps the containers it gets."""
    recorder = active_recorder()
    if recorder is None or fun is id:
        return args, kwargs
    module = str(getattr(fun, "__module__", None)).partition(".")[0]
    enter: Callable[[Any], Any]
    if module == "numpy" or isinstance(fun, np.ufunc):
        enter = recorder.nested_items
    elif module in _PURE_MODULES:
        enter = recorder.items
    else:
        enter = recorder.entered_item
    return map(enter, args), {name: enter(x) for name, x in kwargs.items()}


_PURE_MODULES = frozenset({"builtins", "copy", "functools", "itertools", "math", "_functools"})


def entered_parts(holder: Any) -> Any:
    """Return the defaults of a function, or arguments of a partial, with their operands."""
    operands = operand_reads()
    return entered_items(holder if operands is None else operands.items(holder))


def imported(module: str, name: str) -> Any:
    """Return what captured code has imported from a module."""
    owner = sys.modules[module]
    return loaded_attribute(owner, name, getattr(owner, name))


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
    if recorder is None or (
        type(owner) is types.ModuleType and is_written_global(vars(owner), name)
    ):
        return value
    return recorder.read_attribute(owner, name, value, is_base)


def loaded_item(owner: Any, key: Any, value: Any, *, is_base: bool = False) -> Any:
    """Return the value of an item that captured code loads."""
    recorder = active_recorder()
    return value if recorder is None else recorder.read_item(owner, key, value, is_base)


def entered_items(value: Any) -> Any:
    """Return what captured code iterates over, with the arrays of outside as captures."""
    recorder = active_recorder()
    return value if recorder is None else recorder.items(value)


def read_dispatch(dispatch: Callable[[type], Any], cls: type) -> Any:
    """Return the implementation that a generic function has for a class."""
    recorder = active_recorder()
    if recorder is not None:
        recorder.observe(dispatch, "dispatch")
    return look(dispatch, cls)


def look(fun: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function or method that looks at a state which only it sees (`hidden_state.py`)."""
    result, recorder = fun(*args, **kwargs), active_recorder()
    if recorder is None:
        return result
    is_method = isinstance(fun, types.BuiltinMethodType | types.MethodType)
    owner, name = (fun.__self__, fun.__name__) if is_method else (fun, "__call__")
    return recorder.read_call(owner, (name, args, (*kwargs.items(),)), result)


def note_answer(owner: Any, name: str, args: tuple[Any, ...], answer: Any, label: str) -> None:
    """Note what a method of an object that is always of outside answers."""
    recorder = active_recorder()
    if recorder is not None:
        recorder.observe(owner, label)
        recorder.read_call(owner, (name, args, ()), answer)


def is_returned_whole(value: Any) -> bool:
    """Return whether a result is an object of outside itself; the trace depends on which it is."""
    recorder = active_recorder()
    if recorder is None or not recorder.is_of_outside(value):
        return False
    recorder.read_identity(value)
    return True


def read_finalizer(owner: Any) -> None:
    """Note that captured code looks at a `weakref.finalize`, whose state is in a dict."""
    recorder = active_recorder()
    if recorder is not None:
        registry: Any = type(owner)._registry
        recorder.observe(registry, "the finalizers")
        state = registry.get(owner, MISSING)
        recorder.read_item(registry, owner, state)
        if state is not MISSING:
            recorder.read_attribute(state, "atexit", state.atexit)


def read_held(owner: Callable[[], Any], name: str) -> None:
    """Note that captured code reads the attribute of an object that it changes: `x.a += 1`."""
    recorder = active_recorder()
    if recorder is not None:
        target = owner()
        recorder.read_attribute(target, name, static_attribute(target, name))


def read_missing_global(name: str, namespace: dict[str, Any]) -> None:
    """Note that captured code finds that there is no global of a name."""
    recorder = active_recorder()
    if recorder is not None and name not in namespace:
        recorder.read_global(namespace, name, MISSING)


def read_missing_item(owner: Any, key: Any) -> None:
    """Note that captured code finds that a container lacks an item."""
    recorder = active_recorder()
    if recorder is None:
        return
    if type(owner) is dict:
        recorder.read_item(owner, key, MISSING)
    else:
        recorder.read_contents(owner)


def read_identity(*values: Any) -> None:
    """Note that captured code asks whether these values are one object."""
    recorder = active_recorder()
    if recorder is not None:
        for value in values:
            recorder.read_identity(value)


def read_class_of(value: Any) -> None:
    """Note that captured code asks for the class of a value."""
    recorder = active_recorder()
    if recorder is not None:
        recorder.read_class_of(value)


def read_descriptor(owner: Any, name: str) -> None:
    """Note that captured code finds a getter or method under a name, or nothing."""
    loaded_attribute(owner, name, MISSING)


def read_method(owner: Any, name: str) -> None:
    """Note that captured code finds a special method in the class of an object."""
    loaded_attribute(type(owner), name, MISSING)


def watch_class(cls: type) -> None:
    """Find the methods of a class that code which is not captured calls from now on."""
    recorder = active_recorder()
    if recorder is not None:
        recorder.unseen.watch(cls)


def watch_called(*values: Any) -> None:
    """Find the functions that code which is not captured gets, and calls."""
    recorder = active_recorder()
    if recorder is not None:
        for value in values:
            if callable(value):
                recorder.unseen.watch_called(value)


def read_call(fun: Any) -> Callable[[Any], Any] | None:
    """Note what a call reads besides its arguments; return what to apply to its result."""
    recorder = active_recorder()
    if recorder is None:
        return None
    if isinstance(fun, types.MethodType):
        code = getattr(fun.__func__, "__code__", None)
        if code is not None and is_library(code.co_filename):
            recorder.read_all(fun.__self__)
        return None
    if isinstance(fun, type):
        recorder.read_construction(fun)
        return None
    owner = stored_attribute(fun, "__self__")
    is_builtin = isinstance(fun, (types.BuiltinMethodType, types.MethodWrapperType))
    if not is_builtin or container_kind(type(owner)) is None or recorder.only_grows(fun):
        return None
    if not recorder.read_contents(owner):
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
            recorder.read_all(argument)
