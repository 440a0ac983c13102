"""The secret of the cache: made once, the user's alone, and beside the cache."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

import wend
from wend.cli import doctor
from wend.runtime import cache_secret as module
from wend.runtime.cache_secret import cache_secret
from wend.runtime.disk_cache import DiskCache

POSIX = pytest.mark.skipif(not hasattr(os, "getuid"), reason="permissions are those of POSIX")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "_config_folder", lambda: tmp_path / "config" / "wend")
    module._read.cache_clear()
    return tmp_path / "config" / "wend"


def secret_of(config: Path, cache: Path) -> bytes:
    return module._read.__wrapped__(config, cache)


def test_it_is_made_once_and_is_the_user_s_alone(config: Path, tmp_path: Path) -> None:
    secret = cache_secret(tmp_path / "cache")
    assert len(secret) == 32
    assert secret_of(config, tmp_path / "another") == secret
    (file,) = config.iterdir()
    assert file.read_bytes() == secret
    if os.name == "posix":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(config.stat().st_mode) == 0o700


def test_processes_that_start_at_once_agree(config: Path, tmp_path: Path) -> None:
    with ProcessPoolExecutor(4) as pool:
        secrets = [pool.submit(secret_of, config, tmp_path / "cache") for _ in range(8)]
        assert len({secret.result() for secret in secrets}) == 1
    assert len([*config.iterdir()]) == 1


def told(cache: Path) -> str:
    """What `doctor` says of a cache that keeps and finds nothing."""
    disk = DiskCache(cache)
    disk.keep(b"key", b"data")
    assert disk.find(b"key") is None
    assert disk.entries() == []
    with wend.config(cache_dir=str(cache)):
        line = dict(doctor.facts())["cache"]
    assert line.startswith("none: no secret signs it: ")
    return line


@POSIX
@pytest.mark.parametrize(
    ("mode", "reason"),
    [(0o640, "others may read"), (0o604, "others may read"), (0o622, "others may write")],
)
def test_one_that_others_may_read_or_write_is_none(
    config: Path, tmp_path: Path, mode: int, reason: str
) -> None:
    config.mkdir(parents=True)
    (config / "cache-secret").write_bytes(bytes(32))
    (config / "cache-secret").chmod(mode)
    assert reason in told(tmp_path / "cache")


@POSIX
def test_one_that_is_no_file_is_none(config: Path, tmp_path: Path) -> None:
    config.mkdir(parents=True)
    os.mkfifo(config / "cache-secret")
    assert "no regular file" in told(tmp_path / "cache")


def test_one_that_is_cut_off_is_none(config: Path, tmp_path: Path) -> None:
    config.mkdir(parents=True, mode=0o700)
    (config / "cache-secret").touch(mode=0o600)
    assert "is damaged" in told(tmp_path / "cache")


@POSIX
def test_a_folder_of_others_has_none(config: Path, tmp_path: Path) -> None:
    config.mkdir(parents=True)
    config.chmod(0o777)
    assert "others may write to" in told(tmp_path / "cache")


def test_where_none_can_be_made_there_is_no_cache(config: Path, tmp_path: Path) -> None:
    config.parent.write_text("no folder")
    assert str(config) in told(tmp_path / "cache")


@pytest.mark.parametrize("inner", [".", "config", "config/wend"])
def test_it_never_lies_in_the_cache(config: Path, tmp_path: Path, inner: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    for cache in (tmp_path / inner, tmp_path / "link" / inner):
        assert "would lie in it" in told(cache)
