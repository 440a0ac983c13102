"""`progress`: a status line for loops, including loops that run compiled."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Iterator, Sized
from threading import get_ident
from time import perf_counter
from types import CodeType
from typing import Any

import numpy as np

from wend.base.reporting.status_line import Part, is_watched, status
from wend.base.source import user_source
from wend.capture.stage.iterables import TracedRange, ZippedIterable
from wend.eager.dispatch import Staged
from wend.eager.promotion import tensor_type
from wend.function.host.check_pure import effects_are_refused
from wend.function.host.py_function import py_function
from wend.function.signature.spec import TensorSpec
from wend.numpy import elementwise as ew
from wend.trace.control.branches import cond
from wend.trace.control.loop_counters import carried_integers
from wend.trace.recording.recording import Recording, current

_REDRAW_SECONDS = 0.1  # the least time between two redraws
_BAR_WIDTH = 24  # characters
_MAX_TESTS = 64  # `while` loops that were left by a `break` are kept until there are more
_MAX_FIRST_TRIPS = 64  # trips before the first report of a loop that was fast in its last run


def progress(going: Any, label: str = "", *, value: Any = None) -> Any:
    """Show on a terminal how far a loop is, from the iterable of a `for` or the test of a `while`.

    In a traced function the loop stays one loop of compiled code, which calls Python some twenty
    times a second to draw a line to stderr. The line has a bar if the number of items is known,
    otherwise it counts trips. It is removed when the loop ends, and before any other output. If
    stderr is not a terminal when the function is traced, nothing is drawn, and the loop is compiled
    as it would be without it. A gradient shows the forward loop.

    Args:
        going: an iterable, or a bool scalar, traced or not: `while progress(error > tol):`.
        label: the text at the start of the line.
        value: a number to show beside a test, such as an error.

    Returns:
        The iterable, or the test.

    Raises:
        TypeError: `value` is passed with an iterable, where it would never change.

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
    if not is_watched() or effects_are_refused.get():
        return going
    outer = current()
    recording = None if outer is None or outer.runs_now() else outer
    if not is_test:
        make = _iterate if recording is None else _record_iteration
        return make(going, label)
    if recording is None:
        _report_trip(bool(going), label, value)
    else:
        _record_trip(recording, label, value)
    return going


def _is_test(going: Any) -> bool:
    if isinstance(going, (Staged, np.ndarray)):
        return tensor_type(going).shape == ()
    return not isinstance(going, Iterable)


def _count(iterable: Iterable[Any]) -> Any:
    """Return the number of items: an int, a traced one, or None if it is not known."""
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
def _iterate(iterable: Iterable[Any], label: str) -> Iterator[Any]:
    line, count, next_report = ProgressLine(label), _count(iterable), 0
    try:
        for k, item in enumerate(iterable):
            if k >= next_report:
                next_report = line(k, count)
            yield item
    finally:
        line.end()


def _report_trip(is_true: bool, label: str, value: Any) -> None:
    """Report a trip of the `while` whose test the caller's caller evaluates."""
    frame = sys._getframe(2)
    location = get_ident(), frame.f_code, frame.f_lineno
    test = _while_tests.get(location)
    # Python compiles a copy of the test behind the body. An evaluation at an earlier offset enters
    # the loop anew, after it was left by a `break`.
    if test is None or frame.f_lasti < test.last_instruction:
        if len(_while_tests) >= _MAX_TESTS:
            del _while_tests[next(iter(_while_tests))]
        test = _while_tests[location] = _WhileTest(ProgressLine(label))
    test.last_instruction = frame.f_lasti
    if not is_true:
        del _while_tests[location]
        test.line.end()
        return
    if test.trips >= test.next_report:
        test.next_report = test.line(test.trips, None, _constant(value))
    test.trips += 1


class _WhileTest:
    """The test of a `while` that runs in Python.

    Attributes:
        line: its status line.
        last_instruction: the bytecode offset of its last evaluation.
        trips: the trips so far.
        next_report: the trip at which the line is called again.
    """

    __slots__ = ("last_instruction", "line", "next_report", "trips")

    def __init__(self, line: ProgressLine) -> None:
        self.line, self.last_instruction, self.trips, self.next_report = line, 0, 0, 0


_while_tests: dict[tuple[int, CodeType, int], _WhileTest] = {}  # by thread, code and line


# In traced functions
def _record_iteration(iterable: Iterable[Any], label: str) -> ZippedIterable:
    line, count = ProgressLine(label), _count(iterable)

    def report(numbered: tuple[Any, Any]) -> Any:
        k, item = numbered
        recording = current()
        assert recording is not None
        if isinstance(k, Staged):
            counters = carried_integers(recording, line, [0], lambda: _record_end(line))
            if counters is not None:
                _record_call(recording, line, k, counters[0], count, None)
        elif k + 1 == count:  # unrolled: Python iterates, and each trip is recorded
            _record_end(line)
        else:
            py_function(line, None, k, count)
        return item

    numbered = ZippedIterable(iterable, enumerate_from=0, kind=enumerate)
    return ZippedIterable(numbered, function=report, kind=map)


def _record_trip(recording: Recording, label: str, value: Any) -> None:
    """Record the count of a trip at the test of a loop, and the report when it is due."""
    line = ProgressLine(label)
    counters = carried_integers(
        recording, (user_source(), label), [0, 0], lambda: _record_end(line)
    )
    if counters is not None:  # None at the first evaluation, before the loop is recorded
        trips, next_report = counters
        now = recording.wrap(recording.lift(trips))
        _record_call(recording, line, now, next_report, None, value)
        recording.assign(trips, recording.lift(now + 1))


def _record_call(
    recording: Recording, line: ProgressLine, k: Any, next_report: Any, count: Any, value: Any
) -> None:
    """Record a call of Python at the trip that is due; the call returns the next such trip."""
    due_trip = recording.wrap(recording.lift(next_report))
    shown = _constant(value)

    def report(done: Any, count: Any, value: Any) -> np.int64:
        return np.int64(line(done, count, value))

    following = cond(
        ew.greater_equal(k, due_trip),
        lambda: py_function(report, TensorSpec([], np.int64), k, count, shown),
        lambda: due_trip,
    )
    recording.assign(next_report, recording.lift(following))


def _constant(value: Any) -> Any:
    return ew.stop_gradient(value) if isinstance(value, Staged) else value


def _record_end(line: ProgressLine) -> None:
    py_function(lambda: line.end(), None)  # a lambda, since the object of a method is held weakly


class ProgressLine:
    """The status line of a loop.

    A call takes the trips so far and their total, and returns the trip at which to call again.
    """

    def __init__(self, label: str) -> None:
        self.label = label
        self._start_time = self._last_draw = 0.0
        self._trips_per_second = 0.0

    def __call__(self, done: Any, count: Any = None, value: Any = None) -> int:
        """Draw the line if it is due; return the trip before which to call again."""
        now, trips = perf_counter(), int(done)
        if trips == 0:
            self._start_time = self._last_draw = now
            return max(1, min(_MAX_FIRST_TRIPS, int(self._trips_per_second * _REDRAW_SECONDS / 2)))
        self._trips_per_second = trips / max(now - self._start_time, 1e-9)
        if now - self._last_draw >= _REDRAW_SECONDS:
            self._last_draw = now
            status.show(
                self, self._parts(trips, count, value, now - self._start_time), self._start_time
            )
        return trips + max(1, min(trips, int(self._trips_per_second * _REDRAW_SECONDS / 2)))

    def end(self) -> None:
        """Remove the line."""
        status.drop(self)

    def _parts(self, done: int, count: Any, value: Any, seconds: float) -> list[Part]:
        parts = [(f"{self.label} ", "bold")] if self.label else []
        if count is None:
            parts.append((f"{done:,} trips, {seconds:.0f} s", ""))
        else:
            count = int(count)
            filled = _BAR_WIDTH * done // count
            seconds_left = seconds / done * (count - done)
            bar = [("━" * filled, "green"), ("─" * (_BAR_WIDTH - filled), "dim")]
            parts += [*bar, (f" {done:,} of {count:,}, {seconds_left:.0f} s left", "")]
        if value is not None:
            parts.append((f", {_text(np.asarray(value))}", ""))
        return parts


def _text(value: np.ndarray) -> str:
    if value.ndim == 0 and value.dtype.kind in "iufc":
        return f"{value[()]:.4g}"
    return " ".join(np.array2string(value, precision=3, threshold=4, edgeitems=2).split())
