"""The cache on disk: whatever is wrong with its folder, it finds nothing and never fails."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wend
import wend.runtime.disk_cache as disk_cache_module
from wend.runtime.disk_cache import MAGIC, DiskCache, digest, disk_cache
from wend.runtime.private_folder import PrivateFolder


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


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="limits are those of POSIX")
def test_a_full_disk_leaves_no_part(cache: DiskCache, capsys: pytest.CaptureFixture[str]) -> None:
    import resource

    cache.keep(b"other", b"data")
    cache.clear()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        cache.keep(b"key", bytes(1000))
        assert capsys.readouterr().err == ""
        with wend.config(debug=True):
            cache.keep(b"key", bytes(1000))
        assert "File too large" in capsys.readouterr().err
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert cache.find(b"key") is None
    assert [*cache.folder.iterdir()] == []


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="permissions are those of POSIX")
def test_a_folder_that_others_may_write_to_is_not_used(cache: DiskCache) -> None:
    cache.keep(b"key", b"data")
    assert cache.folder.stat().st_mode & 0o077 == 0
    cache.folder.chmod(0o777)
    assert cache.find(b"key") is None
    cache.keep(b"other", b"data")
    assert (cache.entries(), cache.clear()) == ([], 0)
    cache.folder.chmod(0o700)
    assert len(cache.entries()) == 1


FAULTS: dict[str, Callable[[Path], object]] = {
    "anybody may write it": lambda file: file.chmod(0o666),
    "its group may write it": lambda file: file.chmod(0o620),
    "a link to itself": lambda file: (file.rename(file.with_suffix("")), link(file)),
    "a link to nothing": lambda file: (file.unlink(), file.symlink_to("nothing")),
    "a link to a device": lambda file: (file.unlink(), file.symlink_to("/dev/zero")),
    "a pipe": lambda file: (file.unlink(), os.mkfifo(file)),
    "a sparse giant": lambda file: os.truncate(file, 1 << 40),
    "nothing": lambda file: os.truncate(file, 0),
    "forged without the secret": lambda file: file.write_bytes(forged(b"key", b"evil")),
    "of an earlier format": lambda file: file.write_bytes(b"wend 1\n" + file.read_bytes()[7:]),
}


def link(file: Path) -> None:
    file.symlink_to(file.with_suffix(""))


def forged(key: bytes, data: bytes) -> bytes:
    return MAGIC + digest(len(key).to_bytes(8, "big"), key, data) + data


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="permissions are those of POSIX")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_that_is_not_the_user_s_own_is_nothing_and_is_replaced(
    cache: DiskCache, fault: str
) -> None:
    cache.keep(b"key", b"data")
    (entry,) = cache.entries()
    FAULTS[fault](entry.path)
    began = time.perf_counter()
    assert cache.find(b"key") is None
    assert time.perf_counter() - began < 2.0
    cache.keep(b"key", b"new")
    assert cache.find(b"key") == b"new"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="owners are those of POSIX")
def test_a_file_of_another_user_is_nothing(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.keep(b"key", b"data")
    fstat = os.fstat

    def of_another_user(fd: int) -> os.stat_result:
        status = fstat(fd)
        is_file = stat.S_ISREG(status.st_mode)
        return os.stat_result((*status[:4], status.st_uid + is_file, *status[5:]))

    monkeypatch.setattr(os, "fstat", of_another_user)
    assert cache.find(b"key") is None


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="permissions are those of POSIX")
def test_files_are_the_user_s_alone(cache: DiskCache) -> None:
    before = os.umask(0)
    try:
        cache.keep(b"key", b"data")
    finally:
        os.umask(before)
    (entry,) = cache.entries()
    assert stat.S_IMODE(entry.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700


def test_a_file_that_another_secret_signed_is_nothing(
    cache: DiskCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.keep(b"key", b"data")
    monkeypatch.setattr(disk_cache_module, "cache_secret", lambda folder: bytes(32))
    assert cache.find(b"key") is None
    cache.keep(b"key", b"other")
    monkeypatch.undo()
    assert cache.find(b"key") == b"data"


def test_a_giant_costs_no_other_its_place(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.keep(b"key", b"data")
    monkeypatch.setattr(disk_cache_module, "_rooms", {})  # as in another process
    giant = cache.folder / f"{'0' * 40}.code"
    giant.touch()
    os.truncate(giant, 1 << 40)
    cache.keep(b"another", b"data")
    assert not giant.exists()
    assert cache.find(b"key") == b"data"


def test_a_folder_of_many_files_is_not_listed_at_each_write(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = []
    files = PrivateFolder.files
    monkeypatch.setattr(PrivateFolder, "files", lambda self: listed.append(0) or files(self))
    for k in range(200):
        cache.keep(bytes([k]), b"data")
    assert len(listed) == 1
    assert len(cache.entries()) == 200


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
    (cache.folder / f"{'0' * 40}.code.7-0.part").write_bytes(b"of a process that was killed")
    for name in ("notes.txt", "notes.code", "notes.part"):
        (cache.folder / name).write_text("mine")
    assert cache.clear() == 3
    names = sorted(path.name for path in cache.folder.iterdir())
    assert names == ["notes.code", "notes.part", "notes.txt"]


@pytest.mark.skipif(os.name != "posix", reason="renames folders that are open")
@pytest.mark.parametrize("clears", [True, False])
def test_nothing_is_removed_from_a_folder_that_takes_the_place_of_the_cache(
    cache: DiskCache, monkeypatch: pytest.MonkeyPatch, clears: bool
) -> None:
    for k in range(3):
        cache.keep(bytes([k]), bytes(1000))
    name = cache.entries()[0].path.name
    other = cache.folder.with_name("other")
    other.mkdir()
    (other / name).write_text("of the user")
    files = PrivateFolder.files

    def and_then_replaced(folder: PrivateFolder) -> Any:
        yield from files(folder)
        cache.folder.rename(cache.folder.with_name("moved"))
        cache.folder.symlink_to(other)

    monkeypatch.setattr(PrivateFolder, "files", and_then_replaced)
    if clears:
        assert cache.clear() == 3
    else:
        monkeypatch.setattr(disk_cache_module, "_rooms", {})
        DiskCache(cache.folder, cap=1500).keep(b"key", bytes(1000))
    assert (other / name).read_text() == "of the user"
    assert len([*cache.folder.with_name("moved").iterdir()]) == (0 if clears else 1)


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
    folder = tmp_path / f"{'0' * 40}.code"
    folder.mkdir()
    assert len(cache.entries()) == 1
    assert cache.clear() == 1
    assert folder.is_dir()


def test_what_cannot_be_removed_is_not_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = DiskCache(tmp_path)
    cache.keep(b"key", b"data")

    def refused(folder: PrivateFolder, name: str) -> None:
        raise PermissionError(name)

    monkeypatch.setattr(PrivateFolder, "remove", refused)
    assert cache.clear() == 0
    assert cache.find(b"key") == b"data"
