"""Spools: segments in memory, in a file, on their way, and what happens if something fails."""

from __future__ import annotations

import _thread
import errno
import gc
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wend.runtime import spool as spool_module
from wend.runtime.spool import Spool, SpoolSegment, current_spool

COUNT, NUMBERS = 30, 1000
SIZE = 8 * NUMBERS


def filled(spool: Spool, count: int = COUNT) -> list[SpoolSegment]:
    return [spool.put([np.full(NUMBERS, float(k)), np.float64(k)]) for k in range(count)]


def assert_readable(segments: list[SpoolSegment]) -> None:
    for k in reversed(range(len(segments))):
        np.testing.assert_array_equal(segments[k].read(0), np.full(NUMBERS, float(k)))
        assert segments[k].read(1) == k


def wait_until(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + 20.0
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.001)


def has_no_thread() -> bool:
    return not any(spool.is_working() for spool in spool_module._spools.values())


def test_segments_come_back_and_few_are_in_memory(tmp_path: Path) -> None:
    spool = current_spool(str(tmp_path), 0)
    segments = filled(spool)
    assert_readable(segments)
    assert_readable(segments)  # as often as one likes
    assert spool.written >= (COUNT - 3) * SIZE
    assert spool.peak <= 9 * (SIZE + 64)
    assert not [*tmp_path.iterdir()]
    wait_until(has_no_thread)


def test_nothing_is_written_below_the_limit(tmp_path: Path) -> None:
    spool = current_spool(str(tmp_path / "missing"), 4 * COUNT * SIZE)
    segments = filled(spool)
    assert_readable(segments)
    assert spool.written == 0
    assert has_no_thread()


def test_the_limit_holds_in_between(tmp_path: Path) -> None:
    limit = 16 * (SIZE + 64)
    spool = current_spool(str(tmp_path), limit)
    segments = filled(spool, 100)
    assert_readable(segments)
    assert spool.peak <= limit
    assert spool.written >= 80 * SIZE


def test_places_in_the_file_are_used_again(tmp_path: Path) -> None:
    spool = current_spool(str(tmp_path), 0)
    keeper = filled(spool, 3)
    for _ in range(10):
        segments = filled(spool)
        assert_readable(segments)
        del segments
    assert spool._file is not None
    assert os.fstat(spool._file.number).st_size < 4 * COUNT * (SIZE + 64)
    assert_readable(keeper)


def test_the_file_is_private_and_goes_with_the_spool(tmp_path: Path) -> None:
    spool = current_spool(str(tmp_path), 0)
    segments = filled(spool)
    assert spool._file is not None
    file = spool._file.number
    assert (os.fstat(file).st_mode & 0o777, os.fstat(file).st_nlink) == (0o600, 0)
    wait_until(has_no_thread)
    del spool, segments
    gc.collect()

    def is_closed() -> bool:
        try:
            os.fstat(file)
        except OSError:
            return True
        return False

    wait_until(is_closed)  # the thread may be about to leave its last frame


def test_a_system_without_nameless_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    segments = filled(current_spool(str(tmp_path), 0))
    assert not [*tmp_path.iterdir()]
    assert_readable(segments)


@pytest.mark.parametrize("after", [0, 1, 5])
def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    calls = []
    real = os.pwrite

    def pwrite(file: int, data: Any, offset: int) -> int:
        calls.append(offset)
        if len(calls) > after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(file, data[: len(data) // 2 + 1], offset)  # it may write less than asked

    monkeypatch.setattr(os, "pwrite", pwrite)
    spool = current_spool(str(tmp_path), 0)
    segments: list[SpoolSegment] = []
    with pytest.raises(OSError, match="No space left"):
        for _ in range(10):
            segments += filled(spool, 1)
    wait_until(has_no_thread)
    assert current_spool(str(tmp_path), 0) is not spool
    monkeypatch.setattr(os, "pwrite", real)
    assert_readable(filled(current_spool(str(tmp_path), 0)))
    for segment in segments:  # those are not lost
        assert segment.read(0).shape == (NUMBERS,)


@pytest.mark.parametrize("folder", ["missing", "a_file"])
def test_a_folder_that_is_none(tmp_path: Path, folder: str) -> None:
    (tmp_path / "a_file").touch()
    with pytest.raises(OSError, match=r"No such file|Not a directory"):
        filled(current_spool(str(tmp_path / folder), 0))


def test_a_truncated_file(tmp_path: Path) -> None:
    spool = current_spool(str(tmp_path), 0)
    segments = filled(spool)
    wait_until(has_no_thread)
    assert spool._file is not None
    os.ftruncate(spool._file.number, 3 * SIZE + SIZE // 2)
    with pytest.raises(OSError, match="shorter than what was written"):
        segments[20].read(0)
    with pytest.raises(OSError, match="shorter than what was written"):
        segments[20].read(0)
    assert segments[1].read(1) == 1.0
    wait_until(has_no_thread)


def test_no_thread_to_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", start)
    assert_readable(filled(current_spool(str(tmp_path), 0)))


def test_segments_that_are_dropped_on_their_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, go = os.pwrite, threading.Event()

    def pwrite(file: int, data: Any, offset: int) -> int:
        go.wait()
        return real(file, data, offset)

    monkeypatch.setattr(os, "pwrite", pwrite)
    spool = current_spool(str(tmp_path), 0)
    keeper = filled(spool, 1)
    filled(spool, 1)
    go.set()
    wait_until(has_no_thread)
    assert_readable(keeper)
    assert_readable(filled(spool))


@pytest.mark.parametrize("loses", [0, 5])
def test_the_child_of_a_fork_reads_what_its_parent_wrote(tmp_path: Path, loses: int) -> None:
    spool = current_spool(str(tmp_path), 0)
    segments = filled(spool)
    child = os.fork()
    if not child:
        try:
            del segments[COUNT - loses :]
            assert_readable(segments)
            assert current_spool(str(tmp_path), 0) is not spool
            assert_readable(filled(current_spool(str(tmp_path), 0)))
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert_readable(segments)


def test_threads_have_spools_of_their_own(tmp_path: Path) -> None:
    def run(k: int) -> None:
        segments = filled(current_spool(str(tmp_path), 0))
        assert_readable(segments)
        done.append(k)

    done: list[int] = []
    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == [0, 1, 2, 3]
