"""Pausing of Python's garbage collector while a graph is built."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()


class _PauseState:
    """The number of active pauses, and whether the collector was enabled before."""

    count = 0
    was_enabled = False


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the collector in this block.

    Values and nodes refer to each other, and all of a graph lives until it is finished, so the
    collector would scan it again and again and find nothing: a sixth of the time to build a large
    gradient.
    """
    with _lock:
        if _PauseState.count == 0:
            _PauseState.was_enabled = gc.isenabled()
            gc.disable()
        _PauseState.count += 1
    try:
        yield
    finally:
        with _lock:
            _PauseState.count -= 1
            if _PauseState.count == 0 and _PauseState.was_enabled:
                gc.enable()
