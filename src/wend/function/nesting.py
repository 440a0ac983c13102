"""Room for functions that call each other while they are recorded."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from types import TracebackType

# Recording a function inside another takes some twenty of Python's frames, more in branches.
_FRAMES = 40
_LEVELS = 100  # so many functions in each other have room; without end none has

_level: ContextVar[int] = ContextVar("wend_nesting", default=0)


class Nested:
    """While in it one more function is being recorded, and Python allows the frames it takes."""

    __slots__ = ("_limit", "_token")

    def __enter__(self) -> None:
        level = _level.get()
        self._token = _level.set(level + 1)
        self._limit = sys.getrecursionlimit()
        if 0 < level <= _LEVELS:
            sys.setrecursionlimit(self._limit + _FRAMES)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _level.reset(self._token)
        sys.setrecursionlimit(self._limit)
