"""How much memory a call takes at most, beyond what the process has before it."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def growth(run: Callable[[], Any]) -> int:
    """Return the bytes by which the largest resident size during `run` exceeds that before."""
    before = _now()
    run()
    return max(0, _peak() - before)


def limit(size: int) -> None:
    """Let this process fail rather than take more bytes than this."""
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def _now() -> int:
    if not RESET.exists():
        return _peak()  # what is free again is not seen, so growth may be told too small
    RESET.write_text("5")  # the peak starts again from here
    return _status("VmRSS")


def _peak() -> int:
    if RESET.exists():
        return _status("VmHWM")
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else 1024 * used


def _status(key: str) -> int:
    (line,) = [line for line in STATUS.read_text().splitlines() if line.startswith(key + ":")]
    return 1024 * int(line.split()[1])
