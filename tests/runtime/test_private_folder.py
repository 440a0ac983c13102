"""Files that only this user can have written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wend.runtime.private_folder import PrivateFolder


def test_what_is_written_is_read(tmp_path: Path) -> None:
    with PrivateFolder(tmp_path) as folder:
        folder.write("name", b"one")
        folder.write("name", b"two", replaces=False)
        assert folder.read("name", 3) == b"one"
        folder.write("name", b"three")
        assert folder.read("name", 10) == b"three"
        with pytest.raises(OSError, match="too large"):
            folder.read("name", 4)
        with pytest.raises(FileNotFoundError):
            folder.read("another", 4)
    assert [file.name for file in tmp_path.iterdir()] == ["name"]


@pytest.mark.skipif(os.open not in os.supports_dir_fd, reason="needs open folders")
def test_a_folder_that_is_moved_is_still_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    path.mkdir()
    with PrivateFolder(path) as folder:
        folder.write("name", b"right")
        path.rename(tmp_path / "moved")
        path.mkdir()
        (path / "name").write_bytes(b"wrong")
        assert folder.read("name", 10) == b"right"
        folder.write("other", b"")
    assert sorted(file.name for file in (tmp_path / "moved").iterdir()) == ["name", "other"]


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="permissions are those of POSIX")
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o703])
def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(PermissionError, match="others may write to"):
        PrivateFolder(tmp_path)


def test_no_handle_is_left_open(tmp_path: Path) -> None:
    with PrivateFolder(tmp_path) as folder:
        folder.write("name", b"data")
    if not Path("/proc/self/fd").exists():
        return
    before = len(os.listdir("/proc/self/fd"))
    tmp_path.chmod(0o777)
    for _ in range(5):
        with pytest.raises(PermissionError):
            PrivateFolder(tmp_path)
    tmp_path.chmod(0o700)
    for _ in range(5):
        with PrivateFolder(tmp_path) as folder, pytest.raises(OSError, match="too large"):
            folder.read("name", 1)
    assert len(os.listdir("/proc/self/fd")) == before
