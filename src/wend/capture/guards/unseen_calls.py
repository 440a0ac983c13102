"""Functions of the user's that run as plain Python where no call in captured code shows it.

`items.index(x)` calls the `__eq__` of `x`, `{x: 1}` its `__hash__`, and a library whatever it likes
of a class that derives from one of its own. The calls of such functions are profiled, in traces
that meet a class with a method that may have an effect, or reads what is outside of it.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from wend.backends.fastcall import MISSING
from wend.capture.guards.kinds import is_of_library, is_users_class
from wend.capture.heap.unseen_code import codes_in
from wend.capture.libraries import is_library
from wend.capture.uncaptured import MARKED, NOT_CAPTURED, is_part_of_captured

# Builtins that neither change nor read the world around the program
_IMPURE = frozenset({"print", "input", "open", "exec", "eval", "__import__", "compile"})
_PURE_MODULES = frozenset(
    {"math", "cmath", "operator", "itertools", "functools", "typing", "numpy", "numpy.linalg"}
)


class UnseenCalls:
    """Finds the calls of functions that a trace does not see.

    Args:
        note: takes such a function when it is about to run, and the object it is a method of.
    """

    def __init__(self, note: Callable[[types.FunctionType, Any], None]) -> None:
        self._note = note
        # By the ids of their codes. What the trace has made may not be held.
        self._functions: dict[int, weakref.ref[types.FunctionType]] = {}
        self._harmless: set[int] = set()
        self._codes: list[types.CodeType] = []
        self._classes: weakref.WeakSet[type] = weakref.WeakSet()
        self._before: Any = None
        self._refusal: Exception | None = None

    def watch(self, cls: type) -> None:
        """Find the unseen calls of the methods of a class, and of its class, from now on."""
        if cls in self._classes or not is_users_class(cls):
            return
        self._classes.add(cls)
        for fun in _methods_of(cls):
            self._watch(fun, cls)
        if type(cls) is not type:
            self.watch(type(cls))

    def watch_called(self, value: Any) -> None:
        """Find the unseen calls of a function that code which is not captured gets."""
        while isinstance(value, functools.partial):
            value = value.func
        if isinstance(value, types.MethodType):
            value = value.__func__
        if isinstance(value, types.FunctionType):
            self._watch(value, None)

    def _watch(self, fun: types.FunctionType, cls: type | None) -> bool:
        """Watch a function unless neither it nor what it calls has effects; return if it does."""
        code = fun.__code__
        if id(code) in self._functions:
            return True
        if id(code) in self._harmless or is_library(code.co_filename):
            return False
        if is_part_of_captured(code) or getattr(fun, "__wend_do_not_capture__", False):
            return False
        self._harmless.add(id(code))  # until something is found; it may call itself
        self._codes.append(code)
        parts = [self._may_have_effects(value) for value in _mentioned(fun, cls)]
        if not any(parts):
            return False
        self._harmless.discard(id(code))
        self._functions[id(code)] = weakref.ref(fun)
        self._start()
        return True

    def _may_have_effects(self, value: Any) -> bool:
        if isinstance(value, types.FunctionType):
            return self._watch(value, None)
        if isinstance(value, types.BuiltinFunctionType):
            return value.__name__ in _IMPURE
        if isinstance(value, types.ModuleType):
            return value.__name__ not in _PURE_MODULES
        return not isinstance(value, type)

    def _start(self) -> None:
        if self._before is None and (before := _profiler()) is not MISSING:
            self._before = before
            sys.setprofile(self._profile)

    def check(self) -> None:
        """Raise the refusal of a call, if there was one that something else was tried after."""
        if self._refusal is not None:
            raise self._refusal from None

    def stop(self) -> None:
        """Find no more calls, and let go of the trace."""
        self._note = _ignore
        if self._before is not None and _profiler() is not MISSING:
            sys.setprofile(self._before or None)
        self._before = None

    def _profile(self, frame: types.FrameType, event: str, arg: object) -> None:
        if event != "call":
            return
        reference = self._functions.get(id(frame.f_code))
        if reference is None:
            if self._before:
                self._before(frame, event, arg)
        elif (fun := reference()) is not None and not _is_free(frame):
            code = fun.__code__
            owner = MISSING
            if code.co_argcount:  # a generator that goes on may have deleted it
                owner = frame.f_locals.get(code.co_varnames[0], MISSING)
            try:
                self._note(fun, owner)
            except Exception as error:  # which ends the profile, and loops are tried in two ways
                self._refusal = self._refusal or error
                raise


def _ignore(fun: types.FunctionType, owner: Any) -> None:
    """Ignore a call."""


def _profiler() -> Any:
    """Return the profiler of an outer trace, False if there is none; `MISSING`: one of the user's.

    Theirs cannot be called, nor started again, by code in Python.
    """
    profiler: Any = sys.getprofile()
    if profiler is None:
        return False
    return profiler if getattr(profiler, "__func__", None) is UnseenCalls._profile else MISSING


def _methods_of(cls: type) -> Iterator[types.FunctionType]:
    """Yield the methods of a class that code in C may call, and all where a base is a library's."""
    may_all_be_called = is_of_library(cls)
    for base in cls.__mro__:
        for name, held in [*vars(base).items()]:
            if name == "__del__":  # whose calls are those of the trace (docs/python.md)
                continue
            if not may_all_be_called and not name.startswith("__") and _is_function(held):
                continue
            if isinstance(held, property):
                yield from filter(_is_function, (held.fget, held.fset, held.fdel))
            if isinstance(held, (staticmethod, classmethod)):
                held = held.__func__
            elif isinstance(held, functools.cached_property):
                held = held.func
            if _is_function(held):
                yield held


def _is_function(value: Any) -> bool:
    return isinstance(value, types.FunctionType)


def _mentioned(fun: types.FunctionType, cls: type | None) -> Iterator[Any]:
    """Yield what code mentions: globals, variables around it, and what classes hold."""
    names = {name for code in codes_in(fun.__code__) for name in code.co_names}
    values = [vars(builtins)[name] for name in names & vars(builtins).keys()]
    values += [fun.__globals__[name] for name in names & fun.__globals__.keys()]
    for cell in fun.__closure__ or ():
        with contextlib.suppress(ValueError):  # it may not be bound yet
            values.append(cell.cell_contents)
    yield from values
    if "random" in names and any(value is np for value in values):
        yield np.random
    classes = [value for value in values if isinstance(value, type) and is_users_class(value)]
    for base in {base for kind in (cls, *classes) if kind is not None for base in kind.__mro__}:
        for name in names & vars(base).keys():
            if not isinstance(vars(base)[name], (property, types.MemberDescriptorType)):
                yield vars(base)[name]


def _is_free(frame: types.FrameType) -> bool:
    """Return whether code that is marked with `@do_not_capture` has led to a call."""
    caller = frame.f_back
    while caller is not None and not is_part_of_captured(caller.f_code):
        if NOT_CAPTURED.get(caller.f_code) is MARKED:
            return True
        caller = caller.f_back
    return False
