"""`progress`: a line that tells how far a loop is, also where the loop runs compiled."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Iterator, Sized
from threading import get_ident
from time import perf_counter
from types import CodeType
from typing import Any

import numpy as np

from wend.base.source import user_source
from wend.base.status_line import Part, is_watched, status
from wend.capture.stage.iterables import TracedRange, ZippedIterable
from wend.eager.dispatch import Staged
from wend.eager.promotion import tensor_type
from wend.function.host.check_pure import is_refused
from wend.function.host.py_function import py_function
from wend.function.signature.spec import TensorSpec
from wend.numpy import elementwise as ew
from wend.trace.control.branches import cond
from wend.trace.control.loop_counters import carried_integers
from wend.trace.recording.recording import Recording, current

_PAUSE = 0.1  # seconds between two lines
_BAR = 24  # how wide the bar is
_MOST_TESTS = 64
_AT_ONCE = 64  # trips that a loop may make at its start without telling, if it was fast before


def progress(going: Any, label: str = "", *, value: Any = None) -> Any:
    """Show on a terminal how far a loop is, by what a `for` goes through or the test of a `while`.

    In a function that wend records, the loop stays one loop of compiled code, which calls Python
    some twenty times a second to draw a line to stderr. It has a bar where it is known how many
    items there are, else it counts trips. When the loop is over, and before anything else is
    written, the line is removed. Where stderr is no terminal when the function is recorded,
    nothing is drawn, and the loop is as it would be without. A gradient shows the forward loop.

    Args:
        going: an iterable, or a bool scalar, traced or not: `while progress(error > tol):`.
        label: what stands before all.
        value: a number to show beside a test, such as an error.

    Returns:
        What is gone through, or the test.

    Raises:
        TypeError: `value` is given beside an iterable, though it would not change.

    Example:
        >>> import wend
        >>> @wend.function
        ... def total(n):
        ...     result = 0.0
        ...     for k in wend.progress(range(n), "adding"):
        ...         result += k
        ...     return result
        >>> total(5)
        np.float64(10.0)
        >>> @wend.function
        ... def halved(x):
        ...     while wend.progress(x > 1.0, "halving", value=x):
        ...         x = x / 2
        ...     return x
        >>> halved(5.0)
        np.float64(0.625)
    """
    is_test = type(going) is bool or _is_test(going)
    if value is not None and not is_test:
        raise TypeError("progress shows a value beside the test of a `while` only")
    if not is_watched() or is_refused.get():
        return going
    here = current()
    recording = None if here is None or here.runs_now() else here
    if not is_test:
        make = _gone_through if recording is None else _recorded
        return make(going, label)
    if recording is None:
        _tell_of_test(bool(going), label, value)
    else:
        _record_trip(recording, label, value)
    return going


def _is_test(going: Any) -> bool:
    if isinstance(going, (Staged, np.ndarray)):
        return tensor_type(going).shape == ()
    return not isinstance(going, Iterable)


def _count(iterable: Iterable[Any]) -> Any:
    """How many items there are: an int, a traced one, or None where nobody knows."""
    if isinstance(iterable, TracedRange):
        return iterable.count()
    if isinstance(iterable, (Staged, np.ndarray)) and tensor_type(iterable).dims:
        size: Any = iterable.shape[0]
        return size
    if isinstance(iterable, ZippedIterable):
        counts = [*map(_count, iterable.parts)]
        if not counts or any(count is None for count in counts):
            return None
        return functools.reduce(ew.minimum, counts)
    return len(iterable) if isinstance(iterable, Sized) else None


# In Python
def _gone_through(iterable: Iterable[Any], label: str) -> Iterator[Any]:
    line, count, due = Line(label), _count(iterable), 0
    try:
        for k, item in enumerate(iterable):
            if k >= due:
                due = line(k, count)
            yield item
    finally:
        line.end()


def _tell_of_test(goes_on: bool, label: str, value: Any) -> None:
    """Tell of a trip of the `while` at whose test the caller's caller is."""
    frame = sys._getframe(2)
    where = get_ident(), frame.f_code, frame.f_lineno
    found = _tests.get(where)
    # Python has a copy of a test behind the body: who is before that enters the loop anew, which
    # it has left by a `break`.
    if found is None or frame.f_lasti < found.at:
        if len(_tests) >= _MOST_TESTS:
            del _tests[next(iter(_tests))]
        found = _tests[where] = _Test(Line(label))
    found.at = frame.f_lasti
    if not goes_on:
        del _tests[where]
        found.line.end()
        return
    if found.trips >= found.due:
        found.due = found.line(found.trips, None, _constant(value))
    found.trips += 1


class _Test:
    """The test of a `while` that runs in Python, where it has been asked last, and how often."""

    __slots__ = ("at", "due", "line", "trips")

    def __init__(self, line: Line) -> None:
        self.line, self.at, self.trips, self.due = line, 0, 0, 0


_tests: dict[tuple[int, CodeType, int], _Test] = {}  # those that were left stay for a while


# In what is recorded
def _recorded(iterable: Iterable[Any], label: str) -> ZippedIterable:
    line, count = Line(label), _count(iterable)

    def told(numbered: tuple[Any, Any]) -> Any:
        k, item = numbered
        here = current()
        assert here is not None
        if isinstance(k, Staged):
            found = carried_integers(here, line, [0], lambda: _record_end(line))
            if found is not None:
                _record_call(here, line, k, found[0], count, None)
        elif k + 1 == count:  # Python goes through it, and each trip is recorded
            _record_end(line)
        else:
            py_function(line, None, k, count)
        return item

    return ZippedIterable(ZippedIterable(iterable, enumerate_from=0), function=told)


def _record_trip(here: Recording, label: str, value: Any) -> None:
    """Count a trip at the test of a loop, and tell of it when that is due."""
    line = Line(label)
    found = carried_integers(here, (user_source(), label), [0, 0], lambda: _record_end(line))
    if found is not None:  # else Python asks for the first time: the loop is not recorded yet
        trips, due = found
        now = here.wrap(here.lift(trips))
        _record_call(here, line, now, due, None, value)
        here.assign(trips, here.lift(now + 1))


def _record_call(here: Recording, line: Line, k: Any, due: Any, count: Any, value: Any) -> None:
    """Call Python where trip `k` is due, which says when that is again."""
    now = here.wrap(here.lift(due))
    shown = _constant(value)

    def told(done: Any, count: Any, value: Any) -> np.int64:
        return np.int64(line(done, count, value))

    following = cond(
        ew.greater_equal(k, now),
        lambda: py_function(told, TensorSpec([], np.int64), k, count, shown),
        lambda: now,
    )
    here.assign(due, here.lift(following))


def _constant(value: Any) -> Any:
    return ew.stop_gradient(value) if isinstance(value, Staged) else value


def _record_end(line: Line) -> None:
    py_function(lambda: line.end(), None)  # the line is kept alive, as an object of a method is not


class Line:
    """How far a loop is; called with the trips that it has made, and how many there are."""

    def __init__(self, label: str) -> None:
        self.label = label
        self._began = self._last = 0.0
        self._speed = 0.0  # trips a second

    def __call__(self, done: Any, count: Any = None, value: Any = None) -> int:
        """Draw if it is time to; before which trip to call again."""
        now, trips = perf_counter(), int(done)
        if trips == 0:
            self._began = self._last = now
            return max(1, min(_AT_ONCE, int(self._speed * _PAUSE / 2)))
        self._speed = trips / max(now - self._began, 1e-9)
        if now - self._last >= _PAUSE:
            self._last = now
            status.show(self, self._parts(trips, count, value, now - self._began), self._began)
        return trips + max(1, min(trips, int(self._speed * _PAUSE / 2)))

    def end(self) -> None:
        """Remove what was drawn."""
        status.drop(self)

    def _parts(self, done: int, count: Any, value: Any, seconds: float) -> list[Part]:
        parts = [(f"{self.label} ", "bold")] if self.label else []
        if count is None:
            parts.append((f"{done:,} trips, {seconds:.0f} s", ""))
        else:
            count = int(count)
            full = _BAR * done // count
            left = seconds / done * (count - done)
            bar = [("━" * full, "green"), ("─" * (_BAR - full), "dim")]
            parts += [*bar, (f" {done:,} of {count:,}, {left:.0f} s left", "")]
        if value is not None:
            parts.append((f", {_text(np.asarray(value))}", ""))
        return parts


def _text(value: np.ndarray) -> str:
    if value.ndim == 0 and value.dtype.kind in "iufc":
        return f"{value[()]:.4g}"
    return " ".join(np.array2string(value, precision=3, threshold=4, edgeitems=2).split())
