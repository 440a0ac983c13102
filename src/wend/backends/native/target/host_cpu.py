"""The processor that code is compiled for, asked once: LLVM takes a quarter of a millisecond."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from llvmlite import binding


@cache
def name() -> str:
    """What LLVM calls it."""
    found: str = binding.get_host_cpu_name()
    return found


@cache
def features() -> Any:
    """What it has beyond the least of its kind: llvmlite's mapping from LLVM's names to bools."""
    return binding.get_host_cpu_features()


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
