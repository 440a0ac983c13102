"""A log of the Python calls of a run: a run that is repeated does not make them again."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


class HostLog:
    """The Python calls of one run, numbered in program order.

    A run whose lists had too little room is repeated with more (D34). Until then it has made all
    its calls, with the values that they have in any run; the repeated run reads what they gave.

    Attributes:
        error: what a call has raised.
        handles: recorded runs of Python, by the number that stands for them in the program.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._context = contextvars.copy_context()
        self._entries: list[Any] = []
        self._next = 0
        self.error: BaseException | None = None
        self.handles: list[Any] = []

    @contextmanager
    def run(self) -> Iterator[None]:
        """Keep the log of one run, with all its repetitions; other threads wait."""
        with self._lock:
            self._context = contextvars.copy_context()
            self._entries, self.handles, self.error = [], [], None
            try:
                yield
            finally:
                self._entries, self.handles, self.error = [], [], None

    def restart(self) -> None:
        """Begin, or begin again: calls that have been made are not made any more."""
        self._next = 0

    def call(self, function: Callable[[], Sequence[Any]]) -> Sequence[Any] | None:
        """Make the next call, or return what it gave before; None if it raised an error."""
        if self._next == len(self._entries):
            self._entries.append(self.compute(function))
        self._next += 1
        entry: Sequence[Any] | None = self._entries[self._next - 1]
        return entry

    def compute(self, function: Callable[[], Sequence[Any]]) -> Sequence[Any] | None:
        """Make a call that has no effects, and may be made again; None if it raised an error."""
        try:
            # A copy: JAX makes the calls in threads of its own, without the caller's settings
            return self._context.copy().run(function)
        except BaseException as error:  # noqa: BLE001 - raised when the run has ended
            self.error = error
            return None
