"""The host processor that code is compiled for.

Each query to LLVM takes a quarter of a millisecond, so its answer is cached.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from llvmlite import binding


@cache
def name() -> str:
    """Return LLVM's name for the host processor."""
    cpu_name: str = binding.get_host_cpu_name()
    return cpu_name


@cache
def features() -> Any:
    """Return LLVM's feature map of the host processor: feature names to bools."""
    return binding.get_host_cpu_features()


def processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
