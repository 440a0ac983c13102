"""Pieces of data that the next process finds again: files under a folder, by key."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from wend.base.config import settings
from wend.base.log import tell


def digest(*parts: Any, size: int = 32) -> bytes:
    """The hash of bytes, and of what gives its memory as such, one after another."""
    made = blake2b(digest_size=size)
    for part in parts:
        made.update(part)
    found: bytes = made.digest()
    return found


CAP = 1 << 28  # bytes in all
MAGIC = b"wend 1\n"
_DIGEST = 32  # bytes
_SUFFIX = ".code"
_PART = ".part"  # one that is being written, or whose writer was killed
_numbers = itertools.count()


class Entry(NamedTuple):
    """A file of the cache."""

    path: Path
    bytes: int
    used: float  # when it was last read or written, in seconds of the system's clock


class DiskCache:
    """Data by key, in files of one folder; the least recently used go when they are too many.

    It never fails: a folder that cannot be made, read or written, or that others may write to,
    is one where nothing is found and nothing kept. A file is written elsewhere and then renamed,
    so any number of processes may use one folder; what is not whole, or is of another key, is
    taken for nothing and replaced.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from wend.runtime.disk_cache import DiskCache
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     cache = DiskCache(Path(folder))
        ...     cache.keep(b"key", b"data")
        ...     cache.find(b"key"), cache.find(b"other")
        (b'data', None)
    """

    def __init__(self, folder: Path, cap: int = CAP) -> None:
        self.folder, self.cap = folder, cap

    def find(self, key: bytes) -> bytes | None:
        """What was kept under a key, if it is whole."""
        path = self._path(key)
        try:
            if not self._is_ours():
                return None
            found = path.read_bytes()
        except OSError:
            return None
        head = len(MAGIC) + _DIGEST
        data = found[head:]
        if found[:head] != MAGIC + _check(key, data):
            tell("cache", f"{path} is damaged, or of another program: left out")
            return None
        with suppress(OSError):
            os.utime(path)
        return data

    def keep(self, key: bytes, data: bytes) -> None:
        """Keep data under a key."""
        path = self._path(key)
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not self._is_ours():
                tell("cache", f"others may write to {self.folder}: nothing is kept there")
                return
            part = path.with_suffix(f".{os.getpid()}-{next(_numbers)}{_PART}")
            try:
                part.write_bytes(MAGIC + _check(key, data) + data)
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)
            self._shrink()
        except OSError as error:
            tell("cache", f"nothing is kept in {self.folder}: {error}")

    def entries(self) -> list[Entry]:
        """The files, those that were used last first."""
        return sorted(self._entries(), key=lambda entry: entry.used, reverse=True)

    def clear(self) -> int:
        """Remove every file that can be removed; return how many that were."""
        count = 0
        for entry in self.entries():
            with suppress(OSError):
                entry.path.unlink()
                count += 1
        return count

    def trouble(self) -> str | None:
        """Why nothing is found and kept here, if that is so."""
        there = next(path for path in (self.folder, *self.folder.parents) if path.exists())
        if not there.is_dir():
            return f"{there} is no folder"
        if there == self.folder and not self._is_ours():
            return "others may write there"
        return None if os.access(there, os.W_OK | os.X_OK) else "it cannot be written"

    def _path(self, key: bytes) -> Path:
        return self.folder / (digest(key, size=20).hex() + _SUFFIX)

    def _entries(self) -> Iterator[Entry]:
        with suppress(OSError), os.scandir(self.folder) as found:
            for file in found:
                with suppress(OSError):
                    is_named = file.name.endswith((_SUFFIX, _PART))
                    if is_named and not file.is_dir(follow_symlinks=False):
                        status = file.stat(follow_symlinks=False)
                        yield Entry(Path(file.path), status.st_size, status.st_mtime)

    def _shrink(self) -> None:
        room = self.cap
        for entry in self.entries():
            room -= entry.bytes
            if room < 0:
                with suppress(OSError):
                    entry.path.unlink()

    def _is_ours(self) -> bool:
        """Whether only this user can have put files there: what is found may be run."""
        status = self.folder.stat()
        if not hasattr(os, "getuid"):
            return True
        return status.st_uid == os.getuid() and not status.st_mode & 0o022


def _check(key: bytes, data: bytes) -> bytes:
    return digest(key, data, size=_DIGEST)


def disk_cache() -> DiskCache | None:
    """The cache that `config(cache_dir=…)` asks for; None where it asks for none."""
    chosen = settings().cache_dir
    if not chosen:
        return None
    try:
        return DiskCache(_users_folder() if chosen == "auto" else Path(chosen))
    except RuntimeError:  # the user has no home
        return None


def _users_folder() -> Path:
    """Where programs of this system keep what they can make again."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "wend"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home()) / "wend" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wend"
