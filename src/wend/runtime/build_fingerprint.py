"""A fingerprint of everything that determines which graphs and code wend generates."""

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
    """Return wend's own files and the versions of Python, NumPy and SciPy; empty if unknown.

    Files are identified by size and modification time, as Python does for compiled files. If one
    has changed since wend was imported, it is not what runs here, and the result is empty.
    """
    try:
        files = [*_files(PACKAGE)]
        versions = [sys.version, sys.platform, np.__version__, *_scipy()]
    except OSError:  # wend is not on a file system, for example
        return b""
    if any(file.mtime_ns > _IMPORTED for file in files):
        return b""
    return "\n".join([*versions, *map(str, files)]).encode()


class _File(NamedTuple):
    path: str
    size: int
    mtime_ns: int


def _files(folder: str) -> Iterator[_File]:
    """Yield the Python files of a folder, recursively, in a fixed order."""
    with os.scandir(folder) as entries_iterator:
        entries = sorted(entries_iterator, key=lambda entry: entry.name)
    for entry in entries:
        if entry.name.endswith(".py"):
            status = entry.stat()
            yield _File(entry.path[len(PACKAGE) :], status.st_size, status.st_mtime_ns)
        elif entry.name != "__pycache__" and entry.is_dir():
            yield from _files(entry.path)


def _scipy() -> Iterator[str]:
    """Yield the version of SciPy that generated code calls, where it is installed."""
    spec = find_spec("scipy")  # does not import it
    for folder in (spec and spec.submodule_search_locations) or ():
        yield f"scipy of {os.stat(os.path.join(folder, 'version.py')).st_mtime_ns}"
