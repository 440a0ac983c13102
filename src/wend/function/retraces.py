"""Warnings about functions that are traced too often."""

from __future__ import annotations

import ctypes
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from wend.base.errors import explain
from wend.base.source import Source
from wend.trace.recording.recording import current

# Five traces within ten calls are worth a warning: tracing costs what many calls do.
_MIN_TRACES_TO_WARN, _MAX_CALLS_TO_WARN = 5, 10
_MAX_TRACKED_CODES = 1024  # pieces of code whose redefinitions are counted; bounds the memory


class CallCounter:
    """The number of calls of a function; outlives the function.

    Attributes:
        in_python: the calls that Python has served.
        compiled: the counter of those that compiled code serves.
    """

    __slots__ = ("compiled", "in_python")

    def __init__(self) -> None:
        self.in_python = 0
        self.compiled = ctypes.c_int64()

    @property
    def count(self) -> int:
        """The number of all calls."""
        return self.in_python + self.compiled.value


class _Redefinitions:
    """The last functions that were defined by one piece of code, and traced."""

    def __init__(self) -> None:
        self.recent: deque[tuple[weakref.ref[Retraces], CallCounter]] = deque(
            maxlen=_MIN_TRACES_TO_WARN
        )
        self.has_warned = False


# Keyed by file, line and name, so that the code itself is not kept alive
_redefinitions: dict[tuple[str, int, str], _Redefinitions] = {}


class Retraces:
    """Counts the calls and traces of one function.

    Args:
        name: the name of the function, for messages.
        fun: the Python function; None if its redefinition deserves no warning.

    Attributes:
        calls: the number of its calls.
    """

    def __init__(self, name: str, fun: Callable[..., Any] | None = None) -> None:
        self.name = name
        self.calls = CallCounter()
        self._code = getattr(fun, "__code__", None)
        # The last traces: the number of the call, and the reason
        self._recent_traces: deque[tuple[int, str]] = deque(maxlen=_MIN_TRACES_TO_WARN)
        self._has_warned = False

    def traced(self, reason: str) -> str | None:
        """Record a trace; return the text of a warning, at most once each."""
        is_first = not self._recent_traces
        self._recent_traces.append((self.calls.count, reason))
        return self._redefinition_warning() if is_first else self._retrace_warning()

    def _retrace_warning(self) -> str | None:
        if self._has_warned or len(self._recent_traces) < _MIN_TRACES_TO_WARN:
            return None
        calls = self.calls.count - self._recent_traces[0][0] + 1
        if calls > _MAX_CALLS_TO_WARN:
            return None
        self._has_warned = True
        return explain(
            f"{self.name} was traced {_MIN_TRACES_TO_WARN} times in its last {calls} calls: "
            "each trace costs as much as many calls.",
            *[reason for _, reason in self._recent_traces],
            cure="pass arrays in place of values that change, and the same functions and objects "
            "each time; leave out static_argnums; declare unknown sizes by input_signature. "
            "f.explain() lists every trace.",
        )

    def _redefinition_warning(self) -> str | None:
        """Return a warning if functions of the same code are defined, traced and dropped."""
        if self._code is None or current() is not None:
            return None
        key = (self._code.co_filename, self._code.co_firstlineno, self._code.co_qualname)
        if key not in _redefinitions:
            if len(_redefinitions) >= _MAX_TRACKED_CODES:
                del _redefinitions[next(iter(_redefinitions))]
            _redefinitions[key] = _Redefinitions()
        redefinitions = _redefinitions[key]
        earlier = [*redefinitions.recent][1 - _MIN_TRACES_TO_WARN :]
        redefinitions.recent.append((weakref.ref(self), self.calls))
        calls = self.calls.count + sum(counter.count for _, counter in earlier)
        if (
            redefinitions.has_warned
            or len(earlier) < _MIN_TRACES_TO_WARN - 1
            or calls > _MAX_CALLS_TO_WARN
        ):
            return None
        if any(other() is not None for other, _ in earlier):
            return None  # several live functions of one code are intended
        redefinitions.has_warned = True
        where = Source(self._code.co_filename, self._code.co_firstlineno, "").short
        return explain(
            f"{self.name} at {where} was made {_MIN_TRACES_TO_WARN} times, and traced each time, "
            f"for {calls} calls: the traces are lost with the function.",
            cure="make the wend.function once, outside of the loop or function that calls it, and "
            "keep it; for a method, keep the instance.",
        )


def clear_redefinitions() -> None:
    """Forget all counted redefinitions."""
    _redefinitions.clear()
