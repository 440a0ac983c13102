"""`memory="spill"` where the disk is full, a folder is missing, or the run is stopped."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wend
from wend.autodiff import rule_spill
from wend.base.errors import UnsupportedError
from wend.runtime import spool as spool_module

X = np.linspace(0.1, 1.0, 200)
TRIPS = 150
REPEATS = 200
KERNEL = Path("/sys/kernel")


def walk(x: Any, trips: Any) -> Any:
    for _ in wend.loop(range(trips), memory="spill"):
        x = np.sin(x) + 0.5 * np.cos(x[::-1])
    return np.sum(x)


@pytest.fixture
def slope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(rule_spill, "_SEGMENT_BYTES", 8000)
    with wend.config(backend="native", spill_dir=str(tmp_path)):
        yield wend.grad(walk)
    assert not [*tmp_path.iterdir()]
    end = time.monotonic() + 20.0
    while any(spool.is_working() for spool in spool_module._spools.values()):
        assert time.monotonic() < end
        time.sleep(0.001)


def fails_at(call: int, real: Callable[..., int]) -> Callable[..., int]:
    calls = iter(range(10**9))

    def run(*args: Any) -> int:
        if next(calls) >= call:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*args)

    return run


@pytest.mark.parametrize("name", ["pwrite", "preadv"])
def test_a_write_or_a_read_that_fails(
    slope: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = slope(X, TRIPS)
    real = getattr(os, name)
    errors = []
    for call in range(REPEATS // 4):
        monkeypatch.setattr(os, name, fails_at(call, real))
        try:
            result = slope(X, TRIPS)
        except wend.SpillError as error:
            errors.append(str(error))
        else:  # the last segments are still in memory when they are read
            np.testing.assert_array_equal(result, expected)
        monkeypatch.setattr(os, name, real)
        np.testing.assert_array_equal(slope(X, TRIPS), expected)
    assert len(errors) > 10
    for text in errors:
        assert "the tape of the loop at test_spilling.py:28 could not be" in text
        assert "No space left on device" in text


@pytest.mark.parametrize("folder", ["missing", "a_file"])
def test_a_folder_that_is_none(slope: Any, tmp_path: Path, folder: str) -> None:
    path = tmp_path.parent / "a_file" if folder == "a_file" else tmp_path / folder
    if folder == "a_file":
        path.touch()
    with wend.config(spill_dir=str(path)), pytest.raises(wend.SpillError) as caught:
        slope(X, TRIPS)
    assert isinstance(caught.value, OSError)
    reason = "No such file or directory" if folder == "missing" else "Not a directory"
    assert f"could not be written to {str(path)!r}: {reason}." in str(caught.value)
    assert "To fix it: use config(spill_dir=…) with a folder that has room" in str(caught.value)


@pytest.mark.skipif(
    os.geteuid() == 0 and not KERNEL.exists(), reason="root may write anywhere but there"
)
def test_a_folder_that_one_may_not_write_to(slope: Any, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    folder = KERNEL if os.geteuid() == 0 else tmp_path
    with wend.config(spill_dir=str(folder)):
        with pytest.raises(wend.SpillError, match="Permission denied"):
            slope(X, TRIPS)
    tmp_path.chmod(0o700)


class Stop(Exception):
    """Raised by the handler of an alarm."""


# Python drops what a handler raises while an object is finalized.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupts(slope: Any) -> None:
    def stop(*_: Any) -> None:
        raise Stop

    expected = slope(X, TRIPS)
    start = time.perf_counter()
    slope(X, TRIPS)
    duration = time.perf_counter() - start
    rng = np.random.default_rng(0)
    before = signal.signal(signal.SIGALRM, stop)
    stopped = 0
    try:
        for k in range(REPEATS):
            try:
                signal.setitimer(signal.ITIMER_REAL, max(1e-6, rng.uniform(0.0, duration)))
                result = slope(X, TRIPS)
                signal.setitimer(signal.ITIMER_REAL, 0.0)
            except Stop:
                stopped += 1
            else:
                np.testing.assert_array_equal(result, expected)
            if k % 20 == 0:
                np.testing.assert_array_equal(slope(X, TRIPS), expected)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert stopped > 10
    np.testing.assert_array_equal(slope(X, TRIPS), expected)


def test_kills(slope: Any, tmp_path: Path) -> None:
    expected = slope(X, TRIPS)
    rng = np.random.default_rng(0)
    for _ in range(REPEATS // 4):
        child = os.fork()
        if not child:
            while True:
                slope(X, TRIPS)
        time.sleep(rng.uniform(0.0, 0.02))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert not [*tmp_path.iterdir()]
    np.testing.assert_array_equal(slope(X, TRIPS), expected)


@pytest.mark.parametrize("backend", ["numpy", "dataflow"])
def test_backends_that_keep_tapes_in_memory_refuse(slope: Any, backend: str) -> None:
    with wend.config(backend=backend), pytest.raises(UnsupportedError) as caught:
        slope(X, TRIPS)
    assert 'the loop at test_spilling.py:28 has memory="spill", but the' in str(caught.value)
    assert f"{backend} backend keeps all of a tape in memory" in str(caught.value)
    assert 'use backend="native", or memory="thin"' in str(caught.value)


def test_effects_are_refused(slope: Any) -> None:
    def talking(x: Any) -> Any:
        for _ in wend.loop(range(5), memory="spill"):
            x = np.sin(x)
            print(x)
        return x

    with pytest.raises(wend.WendError, match='has memory="spill", and an effect: print at'):
        wend.grad(talking)(1.0)
