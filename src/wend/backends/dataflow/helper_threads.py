"""The threads of one run, which end with it."""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from wend.base.config import settings


class HelperThreads:
    """The threads that run long operations of one run; none before the first."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._prefix = f"wend-dataflow-{id(self)}-"

    def submit(self, kernel: Callable[..., Any], inputs: Sequence[Any]) -> Future[Any]:
        """Run a kernel on one of the threads, in the context of the caller."""
        if self._pool is None:
            threads = settings().threads or os.cpu_count() or 1
            self._pool = ThreadPoolExecutor(threads, thread_name_prefix=self._prefix)
        return self._pool.submit(contextvars.copy_context().run, kernel, *inputs)

    def end(self) -> None:
        """Drop what has not begun, and wait until the threads have ended, also if interrupted."""
        if self._pool is None:
            return
        try:
            self._pool.shutdown(wait=True, cancel_futures=True)
            for thread in threading.enumerate():  # one that an interrupt kept the pool from noting
                if thread.name.startswith(self._prefix):
                    thread.join()
        except KeyboardInterrupt:
            self.end()
            raise
