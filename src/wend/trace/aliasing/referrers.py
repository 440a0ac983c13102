"""Referrers of an array or container: the variables of the active calls, and what they hold."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np

from wend.base.source import users_frames

MAX_NODES = 50_000  # that are looked at, from outside in; there may be millions
_LEAF_TYPES = (
    *(str, bytes, int, float, complex, type(None), type(Ellipsis), range, slice),
    *(np.generic, np.dtype, np.ufunc, CodeType, FrameType, ModuleType),
)
_INTERNAL_PREFIX = "_wend_"  # names that capture puts into functions

Predicate = Callable[[Any], bool]


def find_referrers(predicate: Predicate, excluding: Any = None) -> Iterator[tuple[str, str, Any]]:
    """Yield the user's variables that hold a matching value, directly or nested.

    Args:
        predicate: tests whether a value matches.
        excluding: an object that may hold one.

    Yields:
        the variable, "of" its function, and its value.
    """
    for frame in users_frames():
        for name, value in frame.f_locals.items():
            if not name.startswith(_INTERNAL_PREFIX) and is_held(value, predicate, excluding):
                function = frame.f_code.co_name
                yield name, "" if function == "<module>" else f" of {function}", value


def is_held(value: Any, predicate: Predicate, excluding: Any = None) -> bool:
    """Return whether a value matches, or holds a match at any depth, except in `excluding`."""
    seen, level = {id(excluding)}, [value]
    while level and len(seen) < MAX_NODES:
        if any(map(predicate, level)):
            return True
        nodes = {id(x): x for x in level if id(x) not in seen and (is_node(x) or _is_state(x))}
        seen |= nodes.keys()
        level = [part for x in nodes.values() for part in parts_of(x)]
    return False


def bound_cells(function: FunctionType) -> list[Any]:
    """Return the values of a function's closure variables."""
    return [cell.cell_contents for cell in function.__closure__ or () if _is_bound(cell)]


def _is_bound(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018  # raises if the cell is empty
    except ValueError:
        return False
    return True


# From Python 3.13 on an object whose attributes are stored in itself tells the collector of them,
# and not of a dict that shows them.
_HAS_INLINE_VALUES = sys.version_info >= (3, 13)
_INLINE_VALUES = 1 << 2  # Py_TPFLAGS_INLINE_VALUES


def is_node(x: Any) -> bool:
    """Return whether an object may have been made in a trace, and may hold others."""
    if isinstance(x, _LEAF_TYPES):
        return False
    if isinstance(x, type):
        return "<locals>" in x.__qualname__
    module = x.__module__ if isinstance(x, FunctionType) else type(x).__module__
    return issubclass(type(x), np.ndarray) or not str(module).startswith("wend.")


def _is_state(x: Any) -> bool:
    """Return whether an object stands for a value of the user in captured code."""
    return str(type(x).__module__).startswith("wend.capture.state.")


def parts_of(x: Any) -> list[Any]:
    """Return all objects that an object refers to, without the globals of functions."""
    if issubclass(type(x), np.ndarray):
        base = np.ndarray.base.__get__(x)
        if base is not None:
            return [*gc.get_referents(x), base]
        return x.ravel().tolist() if x.dtype == object else []  # the collector is not told of them
    if isinstance(x, FunctionType):
        function: Any = x  # typeshed has no `__builtins__`
        excluded = function.__globals__, function.__builtins__
        return [
            part for part in gc.get_referents(x) if not any(part is table for table in excluded)
        ]
    parts = gc.get_referents(x)
    if _HAS_INLINE_VALUES and type(x).__flags__ & _INLINE_VALUES:
        own = object.__getattribute__(x, "__dict__")
        parts += [] if any(part is own for part in parts) else [own]
    return parts
