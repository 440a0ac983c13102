"""Python's garbage collector, held off while a graph is made."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()


class _Held:
    """How many blocks hold it off now, and whether it ran before."""

    count = 0
    ran = False


@contextmanager
def gc_paused() -> Iterator[None]:
    """Hold the collector off in this block.

    Values and nodes refer to each other, and all of a graph lives until it is finished; so the
    collector would find nothing, and look through it again and again: a sixth of the time to make a
    large gradient.
    """
    with _lock:
        if _Held.count == 0:
            _Held.ran = gc.isenabled()
            gc.disable()
        _Held.count += 1
    try:
        yield
    finally:
        with _lock:
            _Held.count -= 1
            if _Held.count == 0 and _Held.ran:
                gc.enable()
