"""Times programs that take turns, and prints what came out."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any


def interleaved(programs: Mapping[str, Callable[[], Any]], runs: int) -> dict[str, float]:
    """The median seconds of each program, over rounds in which each runs once."""
    taken: dict[str, list[float]] = {name: [] for name in programs}
    for run in programs.values():
        run()  # compiles, and fills caches
    for _ in range(runs):
        for name, run in programs.items():
            start = time.perf_counter()
            run()
            taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in taken.items()}


def print_table(figures: Mapping[str, float], ratios: Mapping[str, str]) -> None:
    """Print nanoseconds a trip; `ratios` names for some the one they are compared with."""
    for name, figure in figures.items():
        other = ratios.get(name)
        beside = f"   {figure / figures[other]:.2f} x {other}" if other else ""
        print(f"  {name:28s} {figure:7.2f} ns a trip{beside}")
