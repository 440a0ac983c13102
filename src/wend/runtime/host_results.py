"""Results of the calls of Python that a run makes, for a second run that is to make none.

A run that fails in a map is repeated in the order of the elements. What Python gave to the first
run is noted, if it is not too much, and given to the second one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from wend.base.context_values import scoped

_MAX_BYTES = 1 << 26
_BYTES_OF_CALL = 128  # about what a note takes besides elements
_ATTRIBUTE = "_wend_host_results"


class UnknownResultError(Exception):
    """A second run asks for a result that the first one has not noted."""


class HostResults:
    """The results of the calls of a run."""

    def __init__(self) -> None:
        self._noted: list[tuple[Any, Any]] = []  # with what names the call
        self._room = _MAX_BYTES
        self._remaining: dict[Any, deque[Any]] | None = None

    def of(self, call: Callable[..., Any], *args: Any) -> Any:
        """Make a call and note its result; or return the next one that is noted.

        Args:
            call: a method of what the graph calls.
            args: its arguments, of which the last holds arrays.
        """
        name = call.__self__, call.__name__, args[:-1]  # type: ignore[attr-defined]
        if self._remaining is not None:
            results = self._remaining.get(_key(*name))
            if not results:
                raise UnknownResultError
            return results.popleft()
        noted_results.set(None)  # what Python runs has notes of its own
        try:
            result = call(*args)
        finally:
            noted_results.set(self)
        if self._room > 0:
            self._noted.append((name, self._copy(result)))
        return result

    def _copy(self, result: Any) -> Any:
        """Return a result whose arrays nobody changes; forget all where there is no room."""
        self._room -= _BYTES_OF_CALL
        if isinstance(result, np.ndarray):
            self._room -= result.nbytes
            if self._room <= 0:
                self._noted.clear()
                return None
            return result.copy()
        if isinstance(result, (list, tuple)):
            return type(result)([self._copy(x) for x in result])
        return result

    def replay(self) -> None:
        """From now on return what is noted, each result once, in the order of each callee."""
        self._remaining = {}
        if self._room > 0:
            for name, result in self._noted:
                self._remaining.setdefault(_key(*name), deque()).append(result)


def _key(callee: Any, method: str, args: tuple[Any, ...]) -> Any:
    return id(callee), method, args


# Those of the run that goes on, if it has notes; what calls Python asks for it
noted_results: ContextVar[HostResults | None] = ContextVar("host_results", default=None)


def noting(call: Callable[..., Any], errors: tuple[type[BaseException], ...]) -> Callable[..., Any]:
    """Return a callable whose errors of some classes carry the results of its calls of Python."""

    def call_noted(*args: Any) -> Any:
        results, previous = HostResults(), noted_results.get()
        noted_results.set(results)
        try:
            return call(*args)
        except errors as error:
            setattr(error, _ATTRIBUTE, results)
            raise
        finally:
            noted_results.set(previous)

    return call_noted


@contextmanager
def replayed(error: BaseException) -> Iterator[None]:
    """Give the results that an error carries to the calls of Python in a block; detach them."""
    results: HostResults = vars(error).pop(_ATTRIBUTE, None) or HostResults()
    results.replay()
    with scoped(noted_results, results):
        yield
