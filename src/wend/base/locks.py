"""The locks of the process, which every fork takes: none is left taken in its child.

A child has the forking thread only. A lock that another thread holds would stay locked there for
ever, and what it guards would stay half changed.
"""

from __future__ import annotations

import os
from enum import IntEnum, auto
from threading import RLock
from typing import Any

# A trace runs the user's Python, which may wait for the thread that forks.
_MAX_WAIT_FOR_TRACE = 10.0  # seconds


class Rank(IntEnum):
    """The locks, in the order in which a thread takes them."""

    FORKING = auto()
    TRACING = auto()
    BRIDGES = auto()
    FAST_CALLS = auto()
    HELPER_THREADS = auto()
    COMPILER = auto()
    LLVMLITE = auto()
    FROZEN_ARRAYS = auto()
    COLLECTOR = auto()
    STATUS_LINE = auto()
    DATACLASSES = auto()


_locks: dict[Rank, Any] = {}
_held: list[Any] = []  # by the fork under way


def lock_of(rank: Rank, lock: Any = None) -> Any:
    """Return the lock of a rank, which is made here unless a library has made it."""
    return _locks.setdefault(rank, RLock() if lock is None else lock)


_forking = lock_of(Rank.FORKING)


def _take_all() -> None:
    for rank in sorted(_locks):
        timeout = _MAX_WAIT_FOR_TRACE if rank is Rank.TRACING else -1
        if _locks[rank].acquire(timeout=timeout):
            _held.append(_locks[rank])


def _release_all() -> None:
    while _held:
        _held.pop().release()


def _release_all_in_child() -> None:
    for lock in _locks.values():
        if lock not in _held:
            lock._at_fork_reinit()
    _release_all()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_take_all, after_in_parent=_release_all, after_in_child=_release_all_in_child
    )
