"""Pausing of Python's garbage collector while a graph is built."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import ClassVar

from wend.base.locks import Rank, lock_of

_lock = lock_of(Rank.COLLECTOR)


class _PauseState:
    """The threads of the active pauses, and whether the collector was enabled before."""

    threads: ClassVar[list[int]] = []
    was_enabled = False


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the collector in this block.

    Values and nodes refer to each other, and all of a graph lives until it is finished, so the
    collector would scan it again and again and find nothing: a sixth of the time to build a large
    gradient.
    """
    with _lock:
        if not _PauseState.threads:
            _PauseState.was_enabled = gc.isenabled()
            gc.disable()
        _PauseState.threads.append(get_ident())
    try:
        yield
    finally:
        with _lock:
            _PauseState.threads.remove(get_ident())
            _resume_if_unpaused()


def tenure_objects() -> None:
    """Count all objects as old, so that the next collection does not scan those made of late.

    For objects that live as long as the process, such as modules. What a user has frozen stays so.
    """
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()  # into the oldest generation


def _resume_if_unpaused() -> None:
    if not _PauseState.threads and _PauseState.was_enabled:
        gc.enable()


def _end_pauses_of_other_threads() -> None:
    others = {*_PauseState.threads} - {get_ident()}
    _PauseState.threads = [x for x in _PauseState.threads if x not in others]
    if others:
        _resume_if_unpaused()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_end_pauses_of_other_threads)
