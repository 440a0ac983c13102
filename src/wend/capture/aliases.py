"""Other names for a list that has become a traced one: they would go on showing the old list."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from wend.base.errors import StructureError, explain
from wend.base.source import is_own
from wend.trace.traced import call_with, trace_function
from wend.trace.tracer import Tracer

_DEEPEST = 3
_PLAIN = (str, bytes, int, float, complex, bool, type(None), Tracer)


def refuse_others(old: list[Any], label: str, where: str) -> None:
    """Refuse a list that variables of the calls under way hold besides `label`.

    `label` and what else the loop knows of hold the traced list already.

    Raises:
        StructureError: with the name of the variable.
    """
    for frame in _frames():
        if frame.f_code is call_with.__code__ and _is_argument(frame, old):
            raise StructureError(
                explain(
                    f"{where}: `{label}` is an argument, which grows there: the caller would not "
                    "see it.",
                    cure="change a copy of it, and return that.",
                )
            )
        if is_own(frame.f_code.co_filename):
            continue
        for name, value in frame.f_locals.items():
            if _holds(value, old, _DEEPEST, set()):
                same = "is the same list as" if value is old else "holds the list"
                function = frame.f_code.co_name
                of = "" if function == "<module>" else f" of {function}"
                cure = "append in the function that makes the list, and keep one name for it"
                if value is old:
                    cure += f"; or let {name} be a copy, list({label})"
                raise StructureError(
                    explain(
                        f"{where}: `{name}`{of} {same} `{label}`, which grows there.",
                        cure=f"{cure}.",
                    )
                )


def users_frames() -> Iterator[FrameType]:
    """The frames of the user's code that the trace under way has called."""
    return (frame for frame in _frames() if not is_own(frame.f_code.co_filename))


def _frames() -> Iterator[FrameType]:
    """The frames of the calls that the trace under way has made."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not trace_function.__code__:
        yield frame
        frame = frame.f_back


def _is_argument(frame: FrameType, old: list[Any]) -> bool:
    given = (frame.f_locals["args"], frame.f_locals["kwargs"])
    return any(_holds(part, old, _DEEPEST, set()) for part in given)


def _holds(value: Any, old: list[Any], depth: int, seen: set[int]) -> bool:
    if value is old:
        return True
    if depth == 0 or isinstance(value, _PLAIN) or id(value) in seen:
        return False
    seen.add(id(value))
    if type(value) in (list, tuple, set):
        parts = value
    elif type(value) is dict:
        parts = value.values()
    elif isinstance(value, type) or not hasattr(value, "__dict__"):
        return False
    else:
        parts = [part for name, part in vars(value).items() if not name.startswith("__")]
    return any(_holds(part, old, depth - 1, seen) for part in list(parts))
