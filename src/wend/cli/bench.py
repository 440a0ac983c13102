"""`wend bench`: runs the workloads of the repository, if there is one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import wend

HOW = """wend bench runs the workloads of wend's repository, and this is not in one.
  To fix it: get a copy of the repository and call `wend bench` in its folder, or `make bench`."""


def run(arguments: Sequence[str]) -> int:
    """Run `python -m bench` in the repository; return its exit status, 2 without a repository."""
    root = repository(Path.cwd(), Path(wend.__file__).parents[2])
    if root is None:
        print(HOW, file=sys.stderr)
        return 2
    return subprocess.call([sys.executable, "-m", "bench", *arguments], cwd=root)


def repository(*folders: Path) -> Path | None:
    """Return the first of the folders that contains wend's workloads."""
    return next((f for f in folders if (f / "bench" / "workloads" / "dopri.py").is_file()), None)
