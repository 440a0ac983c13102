"""The threads that help with large loops: made when the first program with such is, never before.

They are Python's, so that Python knows of them, but all they do is one call of machine code, in
which they neither have nor want the interpreter's lock. A fork has none until it compiles a program
that wants them; when the interpreter ends they are told to stop, and waited for.
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

_MANY = 8  # processors that are used if the settings do not say how many
# What says that the program itself is wrong goes to where it is
_OWN = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT}


def wanted() -> int:
    """How many threads a loop may have, the caller's among them."""
    return settings().threads or min(processors(), _MANY)


class Helpers:
    """The threads of this process.

    Attributes:
        threads: those that serve, by their numbers from 1 on.
    """

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._is_over = False
        _call("wend.forget")
        atexit.register(self._stop)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def start(self, count: int) -> None:
        """Have so many, at least, if the system has."""
        with self._lock:
            while len(self.threads) < count and not self._is_over:
                number = len(self.threads) + 1
                thread = threading.Thread(
                    target=_serve, args=(number,), name=f"wend-{number}", daemon=True
                )
                _call("wend.join", number)
                self.threads.append(thread)  # first: an interrupt may come while it starts
                try:
                    thread.start()
                except RuntimeError:  # there are too many, or the interpreter is about to end
                    self.threads.pop()
                    _call("wend.join", number - 1)
                    return

    def _forget(self) -> None:
        """In a fork, whose only thread is the one that made it."""
        self._lock = threading.Lock()
        self.threads.clear()
        _call("wend.forget")

    def _stop(self) -> None:
        """Before machine code goes."""
        with self._lock:
            self._is_over = True
            _call("wend.join", 0)
            for thread in self.threads:
                if thread.ident is not None:
                    thread.join()
            self.threads.clear()


_helpers: list[Helpers] = []
_LOCK = threading.Lock()


def start(count: int) -> None:
    """Have so many threads, the caller's among them."""
    with _LOCK:
        if not _helpers:
            _helpers.append(Helpers())
    _helpers[0].start(count - 1)


def helping() -> Sequence[threading.Thread]:
    """The threads that help in this process."""
    return _helpers[0].threads if _helpers else ()


def _serve(number: int) -> None:
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - _OWN)
    _call("wend.serve", number)


def _call(name: str, *numbers: int) -> None:
    type = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(numbers))
    type(engine().shared(name))(*numbers)
