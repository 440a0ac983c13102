"""`progress`: a line that tells how far a loop is, also where the loop runs compiled."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sized
from time import perf_counter
from typing import Any

import numpy as np

from wend.capture.iterables import Together, TracedRange
from wend.eager.dispatch import Staged
from wend.eager.promotion import tensor_type
from wend.function.py_function import py_function
from wend.numpy import elementwise as ew
from wend.trace.branches import cond
from wend.trace.recording import current

_PARTS = 100  # how often a loop calls Python to tell of its progress, at most about
_PAUSE = 0.1  # seconds between two lines
_BAR = 24  # how wide the bar is


def progress(iterable: Iterable[Any], label: str = "") -> Any:
    """Go through something in a `for`, and show on a terminal how far the loop is.

    In a function that wend records, the loop stays one loop of compiled code. A hundred times in
    all, or in every trip if it has fewer, it calls Python, which draws a line to stderr where a
    tenth of a second has passed since the last one; at the end the line is removed. Where stderr
    is no terminal when the function is recorded, nothing is drawn, and the loop is as it would be
    without. A gradient shows the forward loop.

    Args:
        iterable: ranges, arrays and sequences tell how long they are; of others trips are counted.
        label: what stands before the bar.

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
    """
    if not _is_watched():
        return iterable
    line = Line(label)
    count = _count(iterable)
    every = 1 if count is None else ew.maximum(count // _PARTS, 1)

    def told(numbered: tuple[Any, Any]) -> Any:
        _tell(line, numbered[0], count, every)
        return numbered[1]

    return Together(Together(iterable, numbered_from=0), function=told)


def _is_watched() -> bool:
    return sys.stderr.isatty()


def _count(iterable: Iterable[Any]) -> Any:
    """How many items there are: an int, a traced one, or None where nobody knows."""
    if isinstance(iterable, TracedRange):
        return iterable.count()
    if isinstance(iterable, (Staged, np.ndarray)) and tensor_type(iterable).dims:
        size: Any = iterable.shape[0]
        return size
    return len(iterable) if isinstance(iterable, Sized) else None


def _tell(line: Line, k: Any, count: Any, every: Any) -> None:
    """Draw, if item `k` is one that is told of: now, or when the function runs."""
    if current() is None:
        line(k, count)
        return
    is_told = k % every == 0
    if count is not None:
        is_told = is_told | (k + 1 == count)
    if isinstance(is_told, Staged):
        cond(is_told, lambda: py_function(line, None, k, count), lambda: None)
    elif is_told:
        py_function(line, None, k, count)


class Line:
    """A line on stderr that is drawn over and over; called with an item's number, and how many."""

    def __init__(self, label: str) -> None:
        self.label = label
        self._began = self._last = 0.0

    def __call__(self, k: Any, count: Any) -> None:
        now, done = perf_counter(), int(k) + 1
        if done == 1:
            self._began = self._last = now
        if count is not None and done >= int(count):
            _write("")
        elif now - self._last >= _PAUSE:
            self._last = now
            _write(self._text(done, None if count is None else int(count), now - self._began))

    def _text(self, done: int, count: int | None, seconds: float) -> str:
        head = f"{self.label} " if self.label else ""
        if count is None:
            return f"{head}{done:,} after {seconds:.0f} s"
        full = _BAR * done // count
        left = seconds / done * (count - done)
        bar = "━" * full + "─" * (_BAR - full)
        return f"{head}{bar} {done:,} of {count:,}, {left:.0f} s left"


def _write(text: str) -> None:
    """Put a text in place of the line, cut to its width."""
    width = shutil.get_terminal_size().columns - 1
    sys.stderr.write(f"\r{text[:width]}\x1b[K")
    sys.stderr.flush()
