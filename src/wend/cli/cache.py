"""`wend cache ls|clear`: the machine code that is cached for other processes."""

from __future__ import annotations

import time

from wend.runtime.disk_cache import MAX_CACHE_BYTES, DiskCache, disk_cache


def run(action: str) -> int:
    """List or clear the cache; return the exit status."""
    cache = disk_cache()
    if cache is None:
        print("WEND_CACHE_DIR is empty: nothing is kept between processes")
        return 0
    if action == "clear":
        count = cache.clear()
        print(f"{files(count)} removed from {cache.folder}")
        return 0
    print(listing(cache))
    return 0


def listing(cache: DiskCache) -> str:
    """Return a listing of the files with their sizes, most recently used first."""
    entries = cache.entries()
    total = sum(entry.bytes for entry in entries)
    lines = [f"{_time(entry.used)}  {_kib(entry.bytes)}  {entry.path.name}" for entry in entries]
    lines.append(
        f"{files(len(entries))}, {total >> 10} of {MAX_CACHE_BYTES >> 10} KiB, in {cache.folder}"
    )
    return "\n".join(lines)


def files(count: int) -> str:
    """Return a number of files, in words."""
    return f"{count} file{'' if count == 1 else 's'}"


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def _kib(bytes: int) -> str:
    return f"{bytes / 1024:8.1f} KiB"
