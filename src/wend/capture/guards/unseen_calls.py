"""Functions of the user's that run as plain Python where no call in captured code shows it.

`items.index(x)` calls the `__eq__` of `x`, `{x: 1}` its `__hash__`, and a library whatever it likes
of a class that derives from one of its own. A trace that meets such a class is profiled, if one of
these functions may have an effect, or reads what is outside of it.
"""

from __future__ import annotations

import builtins
import contextlib
import dis
import functools
import sys
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from wend.backends.fastcall import MISSING
from wend.capture.guards.active import active_recorder
from wend.capture.guards.kinds import CAPTURED_METHODS, is_of_library, is_users_class
from wend.capture.heap.unseen_code import codes_in, note_uncaptured
from wend.capture.libraries import is_library
from wend.capture.uncaptured import MARKED, NOT_CAPTURED, is_part_of_captured

if TYPE_CHECKING:
    from wend.capture.guards.recorder import GuardRecorder

# Which functions of a module may change or read the world around the program: of one that is not
# listed, all. What methods of unknown objects do is guessed by their names, as a profile makes a
# trace three times slower: of the user's only those are suspected that mostly code in C calls.
_METHODS = "methods of unknown objects"
_EFFECTS: dict[str, frozenset[str]] = {
    "builtins": frozenset(
        {"print", "input", "open", "exec", "eval", "__import__", "compile", "next"}
    ),
    **dict.fromkeys(("math", "cmath", "operator", "_operator", "itertools"), frozenset()),
    **dict.fromkeys(("functools", "_functools", "typing"), frozenset()),
    **dict.fromkeys(("numpy", "numpy.linalg"), frozenset()),
    _METHODS: frozenset({"debug", "info", "warning", "critical", "write", "writelines"}),
}
_PURE_METHODS = frozenset(
    name
    for kind in (str, int, float, complex, list, dict, tuple, set, deque, np.ndarray)
    for name in dir(kind)
)
_CALLED_BY_CAPTURED = CAPTURED_METHODS | {*dir(complex)} - {*dir(object)} | {"__matmul__"}
_CALLED_BY_CAPTURED |= {"__getitem__", "__setitem__", "__delitem__", "__rmatmul__"}


class UnseenCalls:
    """Finds the calls of functions that a trace does not see, and what these call.

    Args:
        check_call: checks what the frame of such a function is about to call.
    """

    def __init__(self, check_call: Callable[[types.FrameType, Any], None]) -> None:
        self._check_call = check_call
        # By the ids of their codes. What the trace has made may not be held.
        self._functions: dict[int, weakref.WeakSet[types.FunctionType]] = {}
        self._harmless: set[int] = set()
        self._codes: list[types.CodeType] = []
        self._classes: weakref.WeakSet[type] = weakref.WeakSet()
        self._is_on = False
        self._outer: Any = None  # the profiler of the user, or of an outer trace
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
            self._functions[id(code)].add(fun)
            return True
        if id(code) in self._harmless or not _is_plain(code):
            return False
        if getattr(fun, "__wend_do_not_capture__", False):
            return False
        self._harmless.add(id(code))  # until something is found; it may call itself
        self._codes.append(code)
        parts = [self._may_have_effects(value) for value in _mentioned(fun, cls)]
        if not any(parts):
            return False
        self._harmless.discard(id(code))
        self._functions[id(code)] = weakref.WeakSet([fun])
        self._start()
        return True

    def _may_have_effects(self, value: Any) -> bool:
        if isinstance(value, types.FunctionType) and not is_library(value.__code__.co_filename):
            return self._watch(value, None)
        if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
            effects = _EFFECTS.get(value.__module__)
            return effects is None or value.__name__ in effects
        if isinstance(value, types.ModuleType):
            return _EFFECTS.get(value.__name__) != frozenset()
        return not isinstance(value, type)

    def _start(self) -> None:
        outer: Any = sys.getprofile()
        if not self._is_on and (outer is None or callable(outer)):
            self._is_on, self._outer = True, outer
            sys.setprofile(self._profile)

    def check(self) -> None:
        """Raise the refusal of a call, if there was one that something else was tried after."""
        if self._refusal is not None:
            raise self._refusal from None

    def stop(self) -> None:
        """Find no more calls."""
        if self._is_on and (self._refusal is not None or sys.getprofile() == self._profile):
            sys.setprofile(self._outer)
        self._is_on, self._outer = False, None

    def _profile(self, frame: types.FrameType, event: str, arg: Any) -> None:
        if self._outer is not None:
            self._outer(frame, event, arg)
        # Of all calls in a trace few are of watched code: the others return at once
        if event == "call":
            caller = frame.f_back
            if id(frame.f_code) not in self._functions and (
                caller is None or id(caller.f_code) not in self._functions
            ):
                return
        elif event != "c_call" or id(frame.f_code) not in self._functions:
            return
        try:
            if event == "call":
                self._called(frame)
            else:
                self._calls(frame, arg)
        except Exception as error:  # which ends the profile, and loops are tried in two ways
            self._refusal = self._refusal or error
            raise

    def _called(self, frame: types.FrameType) -> None:
        """Note a call of a function that is watched, or by one."""
        caller = frame.f_back
        if caller is not None and id(caller.f_code) in self._functions:
            called = _function_of(frame)
            self._calls(caller, called)
            fun = getattr(called, "__func__", called)
            if isinstance(fun, types.FunctionType) and _is_plain(frame.f_code):
                self._functions.setdefault(id(frame.f_code), weakref.WeakSet()).add(fun)
                self._codes.append(frame.f_code)
        functions = self._functions.get(id(frame.f_code))
        if functions is not None and (recorder := self._recorder(frame)) is not None:
            owner = _first_argument(frame)
            for fun in [*functions]:
                recorder.add_uncaptured(fun, owner)
                note_uncaptured(fun, owner)

    def _calls(self, caller: types.FrameType, called: Any) -> None:
        if self._recorder(caller) is not None:
            self._check_call(caller, called)

    def _recorder(self, frame: types.FrameType) -> GuardRecorder | None:
        """Return the recorder of the trace if it records now, and no code there is marked."""
        recorder = active_recorder()
        is_own = recorder is not None and recorder.unseen is self
        return recorder if is_own and not _is_free(frame) else None


def _is_plain(code: types.CodeType) -> bool:
    """Return whether code is the user's as it was written."""
    return not is_library(code.co_filename) and not is_part_of_captured(code)


def _first_argument(frame: types.FrameType) -> Any:
    code = frame.f_code
    if not code.co_argcount:
        return MISSING
    return frame.f_locals.get(code.co_varnames[0], MISSING)  # a generator may have deleted it


def _function_of(frame: types.FrameType) -> Any:
    """Return the method or global function that a frame runs; None of another."""
    code, owner = frame.f_code, _first_argument(frame)
    for base in type(owner).__mro__:
        method: Any = vars(base).get(code.co_name)
        if getattr(method, "__code__", None) is code:
            return types.MethodType(method, owner)
    fun = frame.f_globals.get(code.co_name)
    return fun if getattr(fun, "__code__", None) is code else None


def _methods_of(cls: type) -> Iterator[types.FunctionType]:
    """Yield the methods of a class that code in C may call, and all where a base is a library's."""
    may_all_be_called = is_of_library(cls)
    for base in cls.__mro__:
        for name, held in [*vars(base).items()]:
            if name == "__del__":  # whose calls are those of the trace (docs/python.md)
                continue
            if isinstance(held, property):
                yield from filter(_is_function, (held.fget, held.fset, held.fdel))
            elif isinstance(held, (staticmethod, classmethod)):
                yield from filter(_is_function, [held.__func__])
            elif isinstance(held, functools.cached_property):
                yield from filter(_is_function, [held.func])
            elif _is_function(held) and (may_all_be_called or name.startswith("__")):
                yield held


def _is_function(value: Any) -> bool:
    return isinstance(value, types.FunctionType)


def _mentioned(fun: types.FunctionType, cls: type | None) -> Iterator[Any]:
    """Yield what code mentions: globals, variables around it, and what classes hold.

    A method of an unknown object stands for itself, by its name.
    """
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
    bases = {base for kind in (cls, *classes) if kind is not None for base in kind.__mro__}
    for base in bases:
        for name in names & vars(base).keys():
            if not isinstance(vars(base)[name], (property, types.MemberDescriptorType)):
                yield vars(base)[name]
    known = {name for base in bases for name in vars(base)}
    unknown = _called_methods(fun.__code__) - known - _PURE_METHODS
    is_suspect = fun.__name__.startswith("__") and fun.__name__ not in _CALLED_BY_CAPTURED
    yield from unknown if is_suspect else unknown & _EFFECTS[_METHODS]


@functools.lru_cache(256)
def _called_methods(code: types.CodeType) -> frozenset[str]:
    """Return the names of the methods that code calls."""
    return frozenset(
        step.argval
        for part in codes_in(code)
        for step in dis.get_instructions(part)
        if step.opname == "LOAD_METHOD" or (step.opname == "LOAD_ATTR" and "NULL" in step.argrepr)
    )


def _is_free(frame: types.FrameType) -> bool:
    """Return whether code that is marked with `@do_not_capture` runs a frame, or led to it."""
    around: types.FrameType | None = frame
    while around is not None and not is_part_of_captured(around.f_code):
        if NOT_CAPTURED.get(around.f_code) is MARKED:
            return True
        around = around.f_back
    return False
