"""Tests in a process of their own: JAX and PyTorch start threads, after which no fork is safe."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_ALONE = "WEND_TEST_ALONE"


def is_alone() -> bool:
    """Whether this process runs nothing but such tests."""
    return _ALONE in os.environ


def run_alone(*arguments: str) -> None:
    """Run tests in a process of their own, and fail with its output where they do."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    run = subprocess.run(
        [*command, *arguments],
        cwd=ROOT,
        env={**os.environ, _ALONE: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-5_000:]
