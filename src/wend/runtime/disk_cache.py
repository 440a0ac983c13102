"""A key-value store in files of one folder, shared between processes."""

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
    """Return the hash of bytes, and of objects with a buffer, one after another."""
    hasher = blake2b(digest_size=size)
    for part in parts:
        hasher.update(part)
    result: bytes = hasher.digest()
    return result


MAX_CACHE_BYTES = 1 << 28  # bytes in all
MAGIC = b"wend 1\n"
_DIGEST = 32  # bytes
_SUFFIX = ".code"
_PART = ".part"  # a file being written, or whose writer was killed
_numbers = itertools.count()


class CacheEntry(NamedTuple):
    """A file of the cache."""

    path: Path
    bytes: int
    used: float  # when it was last read or written, in seconds of the system's clock


class DiskCache:
    """Data by key, in files of one folder, with least-recently-used eviction.

    It never fails: a folder that cannot be created, read or written, or that others may write to,
    behaves as an empty cache that keeps nothing. A file is written under another name and then
    renamed, so any number of processes may share a folder; a file that is damaged or of another key
    is ignored and replaced.

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

    def __init__(self, folder: Path, cap: int = MAX_CACHE_BYTES) -> None:
        self.folder, self.cap = folder, cap

    def find(self, key: bytes) -> bytes | None:
        """Return the data stored under a key, if it is intact."""
        path = self._path(key)
        try:
            if not self._is_ours():
                return None
            content = path.read_bytes()
        except OSError:
            return None
        head = len(MAGIC) + _DIGEST
        data = content[head:]
        if content[:head] != MAGIC + _check(key, data):
            tell("cache", f"{path} is damaged, or of another program: left out")
            return None
        with suppress(OSError):
            os.utime(path)
        return data

    def keep(self, key: bytes, data: bytes) -> None:
        """Store data under a key."""
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

    def entries(self) -> list[CacheEntry]:
        """Return the files, most recently used first."""
        return sorted(self._entries(), key=lambda entry: entry.used, reverse=True)

    def clear(self) -> int:
        """Remove every file that can be removed; return their number."""
        count = 0
        for entry in self.entries():
            with suppress(OSError):
                entry.path.unlink()
                count += 1
        return count

    def trouble(self) -> str | None:
        """Return why the cache cannot be used, or None."""
        existing = next(path for path in (self.folder, *self.folder.parents) if path.exists())
        if not existing.is_dir():
            return f"{existing} is no folder"
        if existing == self.folder and not self._is_ours():
            return "others may write there"
        return None if os.access(existing, os.W_OK | os.X_OK) else "it cannot be written"

    def _path(self, key: bytes) -> Path:
        return self.folder / (digest(key, size=20).hex() + _SUFFIX)

    def _entries(self) -> Iterator[CacheEntry]:
        with suppress(OSError), os.scandir(self.folder) as files:
            for file in files:
                with suppress(OSError):
                    is_ours = file.name.endswith((_SUFFIX, _PART))
                    if is_ours and not file.is_dir(follow_symlinks=False):
                        status = file.stat(follow_symlinks=False)
                        yield CacheEntry(Path(file.path), status.st_size, status.st_mtime)

    def _shrink(self) -> None:
        remaining = self.cap
        for entry in self.entries():
            remaining -= entry.bytes
            if remaining < 0:
                with suppress(OSError):
                    entry.path.unlink()

    def _is_ours(self) -> bool:
        """Return whether only this user can have put files there: stored code is executed."""
        status = self.folder.stat()
        if not hasattr(os, "getuid"):
            return True
        return status.st_uid == os.getuid() and not status.st_mode & 0o022


def _check(key: bytes, data: bytes) -> bytes:
    return digest(key, data, size=_DIGEST)


def disk_cache() -> DiskCache | None:
    """Return the cache that `config(cache_dir=…)` selects; None if it selects none."""
    chosen = settings().cache_dir
    if not chosen:
        return None
    try:
        return DiskCache(_users_folder() if chosen == "auto" else Path(chosen))
    except RuntimeError:  # the user has no home
        return None


def _users_folder() -> Path:
    """Return the user's cache folder on this system."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "wend"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home()) / "wend" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wend"
