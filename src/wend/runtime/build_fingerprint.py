"""What makes graphs and code: where any of this is another, so is what it makes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from wend.base.source import PACKAGE

_IMPORTED = time.time_ns()


@cache
def build_fingerprint() -> bytes:
    """Wend's own files, Python, NumPy and SciPy, as bytes; none where they cannot be known.

    Files are known by size and time of change, by which Python also knows its compiled ones. One
    that has changed since wend was imported is not what runs here.
    """
    try:
        files = [*_files(PACKAGE)]
        about = [sys.version, sys.platform, np.__version__, *_scipy()]
    except OSError:  # wend is not in files, for example
        return b""
    if any(file.changed > _IMPORTED for file in files):
        return b""
    return "\n".join([*about, *map(str, files)]).encode()


class _File(NamedTuple):
    path: str
    size: int
    changed: int


def _files(folder: str) -> Iterator[_File]:
    """The Python files of a folder, and of those in it, in no order that changes."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if entry.name.endswith(".py"):
            status = entry.stat()
            yield _File(entry.path[len(PACKAGE) :], status.st_size, status.st_mtime_ns)
        elif entry.name != "__pycache__" and entry.is_dir():
            yield from _files(entry.path)


def _scipy() -> Iterator[str]:
    """What code calls of SciPy, where it is installed."""
    spec = find_spec("scipy")  # which does not import it
    for folder in (spec and spec.submodule_search_locations) or ():
        yield f"scipy of {os.stat(os.path.join(folder, 'version.py')).st_mtime_ns}"
