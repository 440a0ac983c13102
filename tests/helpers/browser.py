"""Headless Chromium, where there is one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def chromium() -> str:
    """Its name; a test that asks is skipped where there is none."""
    found = next((name for name in NAMES if shutil.which(name)), None)
    if found is None:
        pytest.skip(f"needs a browser: none of {', '.join(NAMES)} is installed")
    return found


def document_after(page: Path, *options: str) -> str:
    """The document that a page has become when its scripts have run."""
    command = [chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    profile = f"--user-data-dir={page.parent / 'profile'}"
    wait = "--virtual-time-budget=5000"
    run = subprocess.run(
        [*command, profile, wait, *options, "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return run.stdout
