"""The secret that signs the files of the disk cache: what others have put there is not read."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

from wend.runtime.private_folder import PrivateFolder

_BYTES = 32
_NAME = "cache-secret"


def cache_secret(cache_folder: Path) -> bytes:
    """Return the user's secret, which is made at its first use.

    Raises:
        OSError: it cannot be made or read, others may read it, or it would lie in the cache.
    """
    return _read(_config_folder(), cache_folder)


@cache
def _read(folder: Path, cache_folder: Path) -> bytes:
    if folder.resolve().is_relative_to(cache_folder.resolve()):
        raise OSError(f"the secret that signs the cache would lie in it, in {folder}")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with PrivateFolder(folder) as private:
        try:
            secret = private.read(_NAME, _BYTES, is_secret=True)
        except FileNotFoundError:
            private.write(_NAME, os.urandom(_BYTES), replaces=False)
            secret = private.read(_NAME, _BYTES, is_secret=True)
    if len(secret) < _BYTES:
        raise OSError(f"{folder / _NAME} is damaged")
    return secret


def _config_folder() -> Path:
    """Return the user's folder for settings on this system."""
    try:
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Application Support" / "wend"
        if sys.platform == "win32":
            return Path(os.environ.get("APPDATA") or Path.home()) / "wend"
        return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "wend"
    except RuntimeError as error:
        raise OSError("the user has no home folder") from error
