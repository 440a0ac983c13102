"""When a function is traced so often that it is worth a warning."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from wend.base.errors import explain
from wend.base.source import Source
from wend.trace.recording.recording import current

_OFTEN, _RECENT = 5, 10  # so many traces in so many calls are worth a warning
_CODES = 1024  # of so many functions one knows how often they were made


class Calls:
    """How often a function was called; outlives the function."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class _Made:
    """The last functions that were made of one piece of code, and traced."""

    def __init__(self) -> None:
        self.last: deque[tuple[weakref.ref[Retraces], Calls]] = deque(maxlen=_OFTEN)
        self.has_warned = False


# By file, line and name of the code: the code itself is not kept.
_made: dict[tuple[str, int, str], _Made] = {}


class Retraces:
    """Counts the calls and traces of one function.

    Args:
        name: the function's, for messages.
        fun: the Python function; None where making it anew is nothing to tell of.

    Attributes:
        calls: how often it was called.
    """

    def __init__(self, name: str, fun: Callable[..., Any] | None = None) -> None:
        self.name = name
        self.calls = Calls()
        self._code = getattr(fun, "__code__", None)
        # At which calls the last traces were made, and why.
        self._recent: deque[tuple[int, str]] = deque(maxlen=_OFTEN)
        self._has_warned = False

    def traced(self, reason: str) -> str | None:
        """Note a trace; returns what to warn of, once."""
        is_first = not self._recent
        self._recent.append((self.calls.count, reason))
        return self._made_anew() if is_first else self._traced_often()

    def _traced_often(self) -> str | None:
        if self._has_warned or len(self._recent) < _OFTEN:
            return None
        calls = self.calls.count - self._recent[0][0] + 1
        if calls > _RECENT:
            return None
        self._has_warned = True
        return explain(
            f"{self.name} was traced {_OFTEN} times in its last {calls} calls: each costs what "
            "many calls do.",
            *[reason for _, reason in self._recent],
            cure="pass arrays in place of values that change, and the same functions and objects "
            "each time; leave out static_argnums; declare unknown sizes by input_signature. "
            "f.explain() tells of every trace.",
        )

    def _made_anew(self) -> str | None:
        """What to warn of where functions of the same code are made, traced and thrown away."""
        if self._code is None or current() is not None:
            return None
        key = (self._code.co_filename, self._code.co_firstlineno, self._code.co_qualname)
        if key not in _made:
            if len(_made) >= _CODES:
                del _made[next(iter(_made))]
            _made[key] = _Made()
        made = _made[key]
        earlier = [*made.last][1 - _OFTEN :]
        made.last.append((weakref.ref(self), self.calls))
        calls = self.calls.count + sum(counted.count for _, counted in earlier)
        if made.has_warned or len(earlier) < _OFTEN - 1 or calls > _RECENT:
            return None
        if any(other() is not None for other, _ in earlier):
            return None  # several functions that live side by side are just that
        made.has_warned = True
        where = Source(self._code.co_filename, self._code.co_firstlineno, "").short
        return explain(
            f"{self.name} at {where} was made {_OFTEN} times, and traced each time, for {calls} "
            "calls: the traces go when the function goes.",
            cure="make the wend.function once, outside of the loop or function that calls it, and "
            "keep it; of a method keep the instance.",
        )


def forget_made() -> None:
    """Let no function count as made before."""
    _made.clear()
