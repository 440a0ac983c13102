"""Runs one thing in several threads at once, and counts those that run."""

from __future__ import annotations

import _thread
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """What a function of the thread's number gives, in order; raises what one of them raises."""
    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(work, number) for number in range(count)]
        return [future.result() for future in futures]


def running(seconds: float = 1.0, *, expected: int) -> int:
    """How many threads of Python run beside the main one, once those that are ending have."""
    end = time.monotonic() + seconds
    while _thread._count() != expected and time.monotonic() < end:
        time.sleep(1e-3)
    return _thread._count()
