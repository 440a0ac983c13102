"""The helper threads of parallel loops, started with the first program that has such a loop.

They are Python threads, so Python knows them, but each makes a single call of machine code, which
runs without the GIL. A fork has no helpers until it compiles a program that needs them. At exit
the interpreter stops and joins them.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import threading
from collections.abc import Sequence

from wend.backends.native.jit.llvm import engine
from wend.backends.native.target.host_cpu import processors
from wend.base.config import settings
from wend.base.locks import Rank, lock_of

_LOCK = lock_of(Rank.HELPER_THREADS)
_MAX_DEFAULT_THREADS = 8  # threads of a loop, if the settings do not say how many
# Signals of a fault in the code itself are delivered to the thread that has it.
_FAULT_SIGNALS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT}


def thread_count() -> int:
    """Return the number of threads that a loop may use, including the caller's."""
    return settings().threads or min(processors(), _MAX_DEFAULT_THREADS)


class Helpers:
    """The helper threads of this process.

    Attributes:
        threads: the running threads; their numbers start at 1.
    """

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self._is_stopped = False
        _call("wend.forget")
        atexit.register(self._stop)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.threads.clear)

    def start(self, count: int) -> None:
        """Start threads until there are `count`, or until the system refuses."""
        with _LOCK:
            while len(self.threads) < count and not self._is_stopped:
                number = len(self.threads) + 1
                thread = threading.Thread(
                    target=_serve, args=(number,), name=f"wend-{number}", daemon=True
                )
                _call("wend.join", number)
                self.threads.append(thread)  # before start(), which an interrupt may leave
                try:
                    thread.start()
                except RuntimeError:  # too many threads, or the interpreter is finalizing
                    self.threads.pop()
                    _call("wend.join", number - 1)
                    return

    def _stop(self) -> None:
        """Stop and join the helpers before machine code is freed."""
        with _LOCK:
            self._is_stopped = True
            _call("wend.join", 0)
            for thread in self.threads:
                if thread.ident is not None:
                    thread.join()
            self.threads.clear()


_helpers: list[Helpers] = []


def start(count: int) -> None:
    """Make `count` threads available, including the caller's."""
    with _LOCK:
        if not _helpers:
            _helpers.append(Helpers())
    _helpers[0].start(count - 1)


def helper_threads() -> Sequence[threading.Thread]:
    """Return the helper threads of this process."""
    return _helpers[0].threads if _helpers else ()


def _serve(number: int) -> None:
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - _FAULT_SIGNALS)
    _call("wend.serve", number)


def _call(name: str, *numbers: int) -> None:
    type = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(numbers))
    type(engine().shared_address(name))(*numbers)
