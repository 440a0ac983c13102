"""The threads of one run, which end with it.

`threading.Thread` does not bear interrupts: one in `start` leaves a thread that is neither running
nor not, one in `join` makes a running thread look ended. So these are plain threads, which say
themselves that they run.
"""

from __future__ import annotations

import _thread
import contextvars
import os
import queue
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from wend.base.config import settings

_POLL_SECONDS = 1e-4


class HelperThreads:
    """The threads that run long operations of one run; none before the first."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None]
        self._jobs = queue.SimpleQueue()
        self._running: set[int] = set()
        self._started, self._is_over = 0, False

    def submit(self, compute: Callable[[], Any]) -> Future[Any]:
        """Call a function on one of the threads, in the context of the caller."""
        future: Future[Any] = Future()
        self._jobs.put((partial(contextvars.copy_context().run, compute), future))
        if self._started < (settings().threads or os.cpu_count() or 1):
            self._started += 1
            _thread.start_new_thread(self._work, ())
        return future

    def end(self) -> None:
        """Drop what has not begun, and wait until the threads have ended, also if interrupted."""
        try:
            self._is_over = True
            for _ in range(self._started):
                self._jobs.put(None)
            while self._running:
                time.sleep(_POLL_SECONDS)
        except KeyboardInterrupt:
            self.end()
            raise

    def _work(self) -> None:
        """Compute tasks until the run is over; a thread that begins later finds that it is."""
        thread = _thread.get_ident()
        self._running.add(thread)
        try:
            while (job := self._jobs.get()) is not None and not self._is_over:
                compute, future = job
                try:
                    result = compute()
                except BaseException as error:  # noqa: BLE001 - raised where the result is taken
                    future.set_exception(error)
                else:
                    future.set_result(result)
        finally:
            self._running.discard(thread)
