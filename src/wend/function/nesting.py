"""Room for functions that call each other while they are recorded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextvars import ContextVar
from types import TracebackType

from wend.capture.guard import too_many

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
        # The functions under way when there was no room: one list for all that are in each other.
        self._deepest: list[object] = [] if self._outer is None else self._outer._deepest
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
        if not isinstance(error, RecursionError):
            return
        # Here, since what is raised on the way out may hit the limit again, and so lose lines.
        if self._level >= len(self._deepest):
            self._deepest[:] = self._under_way()
        count, different = len(self._deepest), len({*map(id, self._deepest)})
        if self._outer is None and count > _LEVELS and 2 * different > count:
            raise too_many(count) from None

    def _under_way(self) -> Iterator[object]:
        found: Nested | None = self
        while found is not None:
            yield found._function
            found = found._outer
