"""Runs one thing in several threads at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """What a function of the thread's number gives, in order; raises what one of them raises."""
    with ThreadPoolExecutor(count) as pool:
        futures = [pool.submit(work, number) for number in range(count)]
        return [future.result() for future in futures]
