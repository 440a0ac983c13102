"""A key-value store in files of one folder, shared between processes."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from wend.base.config import settings
from wend.base.reporting.log import tell
from wend.runtime.cache_secret import cache_secret
from wend.runtime.private_folder import PART, PrivateFolder


def digest(*parts: Any, size: int = 32, secret: bytes = b"") -> bytes:
    """Return the hash of bytes, and of objects with a buffer, one after another."""
    hasher = blake2b(digest_size=size, key=secret)
    for part in parts:
        hasher.update(part)
    result: bytes = hasher.digest()
    return result


MAX_CACHE_BYTES = 1 << 28  # bytes in all
MAGIC = b"wend 2\n"
_DIGEST = 32  # bytes
_SUFFIX = ".code"
# The names of the cache's files, and of those being written
_FILE = re.compile(rf"[0-9a-f]{{40}}{re.escape(_SUFFIX)}(\.\d+-\d+{re.escape(PART)})?")


class CacheEntry(NamedTuple):
    """A file of the cache."""

    path: Path
    bytes: int
    used: float  # when it was last read or written, in seconds of the system's clock


class DiskCache:
    """Data by key, in files of one folder, with least-recently-used eviction.

    It never fails: a folder that cannot be created, read or written, or that others may write to,
    behaves as an empty cache that keeps nothing. A file is written under another name and then
    renamed, so any number of processes may share a folder. Its name and content are signed with the
    user's secret (`cache_secret.py`): what is damaged, forged or of another key is ignored and
    replaced, as is what is no regular file.

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
        try:
            secret = cache_secret(self.folder)
            name = _name(secret, key)
            with PrivateFolder(self.folder) as folder:
                content = folder.read(name, self.cap)
                head = len(MAGIC) + _DIGEST
                data = content[head:]
                if content[:head] != MAGIC + _signature(secret, key, data):
                    raise OSError(f"{self.folder / name} is damaged, or others have written it")
                folder.touch(name)
        except FileNotFoundError:
            return None
        except OSError as error:
            tell("cache", f"left out: {error}")
            return None
        return data

    def keep(self, key: bytes, data: bytes) -> None:
        """Store data under a key."""
        try:
            secret = cache_secret(self.folder)
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with PrivateFolder(self.folder) as folder:
                folder.write(_name(secret, key), MAGIC + _signature(secret, key, data) + data)
                self._shrink(folder, len(data))
        except OSError as error:
            tell("cache", f"nothing is kept in {self.folder}: {error}")

    def entries(self) -> list[CacheEntry]:
        """Return the files, most recently used first."""
        try:
            with PrivateFolder(self.folder) as folder:
                return self._entries(folder)
        except OSError:
            return []

    def clear(self) -> int:
        """Remove every file that can be removed; return their number."""
        count = 0
        with suppress(OSError), PrivateFolder(self.folder) as folder:
            for entry in self._entries(folder):
                with suppress(OSError):
                    folder.remove(entry.path.name)
                    count += 1
        return count

    def trouble(self) -> str | None:
        """Return why the cache cannot be used, or None."""
        existing = next(path for path in (self.folder, *self.folder.parents) if path.exists())
        if not existing.is_dir():
            return f"{existing} is no folder"
        if not os.access(existing, os.W_OK | os.X_OK):
            return "it cannot be written"
        try:
            if existing == self.folder:
                PrivateFolder(self.folder).close()
        except OSError:
            return "others may write there"
        try:
            cache_secret(self.folder)
        except OSError as error:
            return f"no secret signs it: {error}"
        return None

    def _entries(self, folder: PrivateFolder) -> list[CacheEntry]:
        """Return the files that have names as the cache gives them, most recently used first."""
        entries = [
            CacheEntry(self.folder / name, status.st_size, status.st_mtime)
            for name, status in folder.files()
            if _FILE.fullmatch(name)
        ]
        return sorted(entries, key=lambda entry: entry.used, reverse=True)

    def _shrink(self, folder: PrivateFolder, written: int) -> None:
        """Remove the files that were not used for longest if all might be larger than the cap.

        The folder is listed at the first write, and when a share of it may have been filled since.
        """
        room = _rooms.get(self.folder, 0) - written
        if room < 0:
            room = self.cap
            for entry in self._entries(folder):
                if entry.bytes <= room:
                    room -= entry.bytes
                    continue
                with suppress(OSError):
                    folder.remove(entry.path.name)
            room = min(room, self.cap // _SHARE)
        _rooms[self.folder] = room


_SHARE = 64  # of the cap: other processes write there, too
# How many bytes may be written to each folder before it is listed again
_rooms: dict[Path, int] = {}


def _name(secret: bytes, key: bytes) -> str:
    return digest(key, size=20, secret=secret).hex() + _SUFFIX


def _signature(secret: bytes, key: bytes, data: bytes) -> bytes:
    return digest(len(key).to_bytes(8, "big"), key, data, size=_DIGEST, secret=secret)


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
