"""The cache on disk: whatever is wrong with its folder, it finds nothing and never fails."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

import wend
from wend.runtime.disk_cache import DiskCache, disk_cache


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "cache")


def test_what_is_kept_is_found_by_its_key_alone(cache: DiskCache) -> None:
    assert cache.find(b"one") is None
    cache.keep(b"one", b"1")
    cache.keep(b"two", b"")
    assert (cache.find(b"one"), cache.find(b"two"), cache.find(b"three")) == (b"1", b"", None)
    cache.keep(b"one", b"another")
    assert DiskCache(cache.folder).find(b"one") == b"another"
    assert len(cache.entries()) == 2


@pytest.mark.parametrize("length", [0, 3, 20, 39, 60])
def test_a_damaged_file_is_nothing_and_is_replaced(cache: DiskCache, length: int) -> None:
    cache.keep(b"key", b"data" * 10)
    (entry,) = cache.entries()
    whole = entry.path.read_bytes()
    for damaged in (whole[:length], whole[:length] + b"?" + whole[length + 1 :], whole + b"?"):
        entry.path.write_bytes(damaged)
        assert cache.find(b"key") is None
    cache.keep(b"key", b"new")
    assert cache.find(b"key") == b"new"


def test_a_file_of_another_key_is_nothing(cache: DiskCache) -> None:
    cache.keep(b"one", b"1")
    (one,) = cache.entries()
    cache.keep(b"two", b"2")
    two = next(entry for entry in cache.entries() if entry.path != one.path)
    two.path.write_bytes(one.path.read_bytes())
    assert (cache.find(b"one"), cache.find(b"two")) == (b"1", None)


def test_those_not_used_for_long_go(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, cap=3500)
    for k in range(3):
        cache.keep(bytes([k]), bytes(1000))
        for entry in cache.entries():  # so far, all of them a while ago
            os.utime(entry.path, (entry.used - 10.0, entry.used - 10.0))
    assert cache.find(bytes([0])) is not None  # now the one used last
    cache.keep(bytes([3]), bytes(1000))
    assert [k for k in range(4) if cache.find(bytes([k])) is not None] == [0, 2, 3]
    cache.keep(bytes([4]), bytes(5000))  # larger than all there is room for
    assert cache.find(bytes([4])) is None


def test_a_folder_that_cannot_be_made_or_read_is_empty(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    for folder in (file, file / "below"):
        cache = DiskCache(folder)
        cache.keep(b"key", b"data")
        assert cache.find(b"key") is None
        assert cache.entries() == []
        assert cache.clear() == 0
    assert file.read_text() == "no folder"


def test_a_full_disk_leaves_no_part(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write = Path.write_bytes

    def full(self: Path, data: bytes) -> int:
        write(self, data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    cache.keep(b"key", b"data")
    assert capsys.readouterr().err == ""
    with wend.config(debug=True):
        cache.keep(b"key", b"data")
    assert "No space left on device" in capsys.readouterr().err
    assert cache.find(b"key") is None
    assert [*cache.folder.iterdir()] == []


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="permissions are those of POSIX")
def test_a_folder_that_others_may_write_to_is_not_used(cache: DiskCache) -> None:
    cache.keep(b"key", b"data")
    assert cache.folder.stat().st_mode & 0o077 == 0
    cache.folder.chmod(0o777)
    assert cache.find(b"key") is None
    cache.keep(b"other", b"data")
    assert len(cache.entries()) == 1


def test_writers_and_readers_do_not_meet(cache: DiskCache) -> None:
    data = [bytes([k]) * 100_000 for k in range(8)]
    found: set[bytes | None] = set()

    def work(k: int) -> None:
        for _ in range(20):
            cache.keep(b"key", data[k])
            found.add(cache.find(b"key"))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found <= {*data}
    assert len([*cache.folder.iterdir()]) == 1


def test_clearing_removes_all_but_what_is_not_the_caches(cache: DiskCache) -> None:
    cache.keep(b"one", b"1")
    cache.keep(b"two", b"2")
    (cache.folder / "killed.7-0.part").write_bytes(b"of a process that was killed")
    (cache.folder / "notes.txt").write_text("mine")
    assert cache.clear() == 3
    assert [path.name for path in cache.folder.iterdir()] == ["notes.txt"]


def test_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert disk_cache() is None  # in this suite
    with wend.config(cache_dir=str(tmp_path)):
        found = disk_cache()
        assert found is not None
        assert found.folder == tmp_path
    with wend.config(cache_dir="auto"):
        monkeypatch.setattr("sys.platform", "linux")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        found = disk_cache()
        assert found is not None
        assert found.folder == tmp_path / "wend"


def test_a_user_without_a_home_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nowhere)
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    with wend.config(cache_dir="auto"):
        assert disk_cache() is None


def test_what_is_no_file_is_no_entry_and_is_not_said_to_be_removed(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.keep(b"key", b"data")
    (tmp_path / "folder.code").mkdir()
    assert len(cache.entries()) == 1
    assert cache.clear() == 1
    assert (tmp_path / "folder.code").is_dir()


def test_what_cannot_be_removed_is_not_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = DiskCache(tmp_path)
    cache.keep(b"key", b"data")

    def refused(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(path)

    monkeypatch.setattr(Path, "unlink", refused)
    assert cache.clear() == 0
    assert cache.find(b"key") == b"data"
