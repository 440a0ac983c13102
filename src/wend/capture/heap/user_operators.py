"""Objects whose operators are methods of the user's: what these change, no call tells.

`a + b`, `a[k]` and `for x in a` run such methods as plain Python, and `d[k]` may fill a
`defaultdict`. So the objects at hand are looked at before and after the trace of a loop or branch.
"""

from __future__ import annotations

import itertools
import types
from typing import Any
from weakref import WeakKeyDictionary

from wend.capture.heap.locations import Contents, log_write, log_write_attributes
from wend.capture.libraries import is_library
from wend.trace.aliasing.referrers import users_frames

_NO_OPERATORS = frozenset(
    {"__init__", "__new__", "__call__", "__enter__", "__exit__", "__repr__", "__post_init__"}
)


_known: WeakKeyDictionary[type, bool] = WeakKeyDictionary()
_NO_OBJECTS = (type, types.ModuleType, types.FunctionType)


def _has_operators(kind: type) -> bool:
    """Whether a class, or one that it is made of, has operators in Python, no library's."""
    if kind not in _known:
        _known[kind] = _finds_operators(kind)
    return _known[kind]


def _finds_operators(kind: type) -> bool:
    return any(
        isinstance(method, types.FunctionType)
        and name.startswith("__")
        and name not in _NO_OPERATORS
        and not is_library(method.__code__.co_filename)
        for part in kind.__mro__
        for name, method in vars(part).items()
    )


def log_write_operands() -> None:
    """Say that the objects with such operators may change that the variables at hand hold."""
    seen: set[int] = set()
    for frame in users_frames():
        shared = ((name, frame.f_globals.get(name)) for name in frame.f_code.co_names)
        for name, value in itertools.chain(frame.f_locals.items(), shared):
            if _fills_itself(value):
                log_write(Contents(name, value))
            if isinstance(value, _NO_OBJECTS) or not hasattr(value, "__dict__"):
                continue
            _log_write(value, name, seen)
            for inner, part in list(vars(value).items()):
                _log_write(part, f"{name}.{inner}", seen)
                if _fills_itself(part):
                    log_write(Contents(f"{name}.{inner}", part))


def _fills_itself(value: Any) -> bool:
    """Whether reading a key that is missing may put it in, as in a `defaultdict`."""
    return isinstance(value, dict) and hasattr(type(value), "__missing__")


def _log_write(value: Any, label: str, seen: set[int]) -> None:
    is_object = hasattr(value, "__dict__") and not isinstance(value, _NO_OBJECTS)
    if is_object and id(value) not in seen and _has_operators(type(value)):
        seen.add(id(value))
        log_write_attributes(value, label)
