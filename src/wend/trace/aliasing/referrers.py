"""Who holds an array: the variables of the calls under way, and what they hold."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FrameType, FunctionType
from typing import Any

import numpy as np

from wend.base.source import is_wend_file
from wend.eager.dispatch import Staged

_DEEPEST = 3
_PLAIN = (str, bytes, int, float, complex, bool, type(None), np.ndarray, Staged)
_INTERNAL = "_wend_"  # names that capture puts into functions
# The code that calls the function that is recorded: what is around it is not looked at.
OUTERMOST: set[CodeType] = set()

Test = Callable[[Any], bool]


def find_referrers(is_meant: Test, besides: Any = None) -> Iterator[tuple[str, str, Any]]:
    """The user's variables that hold something that is meant, at some depth.

    Args:
        is_meant: tells what is meant.
        besides: what may hold it as well.

    Yields:
        the variable, "of" its function, and what it holds.
    """
    for frame in users_frames():
        for name, value in frame.f_locals.items():
            if not name.startswith(_INTERNAL) and is_held(value, is_meant, besides):
                function = frame.f_code.co_name
                yield name, "" if function == "<module>" else f" of {function}", value


def is_held(value: Any, is_meant: Test, besides: Any = None) -> bool:
    """Whether a value is meant, or holds at some depth one that is, `besides` left out."""
    return _holds(value, is_meant, _DEEPEST, {id(besides)})


def users_frames() -> Iterator[FrameType]:
    """The frames of the user's code that the trace under way has called."""
    return (frame for frame in frames() if not is_wend_file(frame.f_code.co_filename))


def frames() -> Iterator[FrameType]:
    """The frames of all code that the trace under way has called."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code not in OUTERMOST:
        yield frame
        frame = frame.f_back


def bound_cells(function: FunctionType) -> list[Any]:
    """What the variables hold that a function has from those around it."""
    return [cell.cell_contents for cell in function.__closure__ or () if _is_bound(cell)]


def _is_bound(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018  # the question is whether there are any
    except ValueError:
        return False
    return True


def _holds(value: Any, is_meant: Test, depth: int, seen: set[int]) -> bool:
    if is_meant(value):
        return True
    if depth == 0 or isinstance(value, _PLAIN) or id(value) in seen:
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
    return any(_holds(part, is_meant, depth - 1, seen) for part in list(parts))
