"""Room for functions that call each other while they are recorded."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from types import TracebackType

from wend.base.errors import NestingError

# Recording a function inside another takes some twenty of Python's frames, more in branches.
_FRAMES = 40
_LEVELS = 100  # so many functions in each other have room; without end none has

_innermost: ContextVar[Nested | None] = ContextVar("wend_nesting", default=None)


class Nested:
    """While in it one more function is being recorded, and Python allows the frames it takes.

    Args:
        function: what is recorded, by identity.

    Raises:
        RecursionError: at the end of the outermost, with advice, if many functions took all frames.
    """

    __slots__ = ("_deepest", "_function", "_level", "_limit", "_outer", "_token")

    def __init__(self, function: object) -> None:
        self._function = function

    def __enter__(self) -> None:
        self._outer = _innermost.get()
        self._token = _innermost.set(self)
        self._level: int = 0 if self._outer is None else self._outer._level + 1
        # What was met at each level, by the first that came there: one list for all in each other
        self._deepest: list[object] = [] if self._outer is None else self._outer._deepest
        if self._level == len(self._deepest):
            self._deepest.append(self._function)
        self._limit = sys.getrecursionlimit()
        if 0 < self._level <= _LEVELS:
            sys.setrecursionlimit(self._limit + _FRAMES)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _innermost.reset(self._token)
        sys.setrecursionlimit(self._limit)
        # Here, since what is raised on the way out may hit the limit again, and so lose lines; and
        # what is done later with a graph of so many in each other may hit it, too.
        if self._outer is None and isinstance(error, RecursionError):
            count, different = len(self._deepest), len({*map(id, self._deepest)})
            if count > _LEVELS and 2 * different > count:
                raise NestingError.of(count) from None
