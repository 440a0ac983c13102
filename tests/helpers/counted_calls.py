"""How much work a function does, counted in calls of Python's functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def count_calls(fun: Callable[..., Any], *args: Any) -> tuple[Any, int]:
    """Call a function; return its result, and how many of Python's functions were called."""
    calls = 0

    def profile(frame: Any, event: str, arg: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        result = fun(*args)
    finally:
        sys.setprofile(before)
    return result, calls
