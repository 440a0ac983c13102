"""Calls with room for the frames of all that they call."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

# The interpreter doubles a chunk until a frame fits, with 8 kB to spare: of 1 MiB, half is left
_SLOTS = 2**16


def roomy(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Have the frames of a function, and of what it calls, lie in one chunk of memory.

    The interpreter keeps frames in chunks of 16 KiB. It maps a chunk where a call does not fit into
    the last one, and unmaps it when that call returns: a loop whose calls cross the end of a chunk
    does so in each trip. pytest calls tests from deep inside: those that trace programs mapped
    memory thousands of times each, and took a fifth longer.
    """

    def run(*args: Any, **kwargs: Any) -> Any:
        return fun(*args, **kwargs)

    run.__code__ = run.__code__.replace(co_stacksize=_SLOTS)
    return wraps(fun)(run)
