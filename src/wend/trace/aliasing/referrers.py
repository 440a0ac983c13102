"""Referrers of an array: the variables of the active calls, and what they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CellType, FunctionType
from typing import Any

import numpy as np

from wend.base.source import users_frames
from wend.eager.dispatch import Staged

_MAX_DEPTH = 3
_LEAF_TYPES = (str, bytes, int, float, complex, bool, type(None), np.ndarray, Staged)
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
    """Return whether a value matches, or holds a match at some depth, except in `excluding`."""
    return _holds(value, predicate, _MAX_DEPTH, {id(excluding)})


def bound_cells(function: FunctionType) -> list[Any]:
    """Return the values of a function's closure variables."""
    return [cell.cell_contents for cell in function.__closure__ or () if _is_bound(cell)]


def _is_bound(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018  # raises if the cell is empty
    except ValueError:
        return False
    return True


def _holds(value: Any, predicate: Predicate, depth: int, seen: set[int]) -> bool:
    if predicate(value):
        return True
    if depth == 0 or isinstance(value, _LEAF_TYPES) or id(value) in seen:
        return False
    seen.add(id(value))
    parts: Any
    if type(value) in (list, tuple, set):
        parts = value
    elif isinstance(value, FunctionType):
        parts = bound_cells(value)
    elif type(value) is dict:
        parts = value.values()
    elif isinstance(value, type) or not hasattr(value, "__dict__"):
        return False
    else:
        parts = [part for name, part in vars(value).items() if not name.startswith("__")]
    return any(_holds(part, predicate, depth - 1, seen) for part in list(parts))
