"""`wend doctor`."""

from __future__ import annotations

import platform
from pathlib import Path

import llvmlite
import numpy as np
import pytest

import wend
from wend.cli import doctor, main
from wend.cli.doctor import Check
from wend.runtime.disk_cache import DiskCache


def test_it_tells_versions_and_that_all_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    told = capsys.readouterr().out
    for fact in (
        wend.__version__,
        platform.python_version(),
        np.__version__,
        llvmlite.__version__,
        "BLAS",
        "cache ",
        "all is well",
    ):
        assert fact in told
    assert told.count("  ok ") == len(doctor.checks())
    assert "FAILS" not in told


def test_a_wrong_number_and_an_error_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> float:
        raise RuntimeError("no such compiler")

    wrong = [
        Check("a number", 1e-9, lambda: 1.0, lambda: 1.001),
        Check("a compiler", 1e-9, broken, lambda: 1.0),
        Check("another", 1e-9, lambda: 1.0, lambda: 1.0),
    ]
    monkeypatch.setattr(doctor, "checks", lambda: wrong)
    assert main(["doctor"]) == 1
    told = capsys.readouterr().out
    assert "FAILS a number: AssertionError" in told
    assert "FAILS a compiler: RuntimeError: no such compiler" in told
    assert "ok    another" in told
    assert "something is wrong" in told


def test_settings_that_are_changed_are_listed() -> None:
    with wend.config(backend="numpy"):
        assert dict(doctor.facts())["settings"].startswith("backend='numpy'")


def cache_in(folder: Path | str) -> str:
    with wend.config(cache_dir=str(folder)):
        return dict(doctor.facts())["cache"]


def test_the_cache_is_told_with_its_size_or_why_there_is_none(tmp_path: Path) -> None:
    made, taken = tmp_path / "made", tmp_path / "taken"
    assert cache_in(made) == f"{made}: 0 files, 0.0 of 256 MiB"
    assert not made.exists()
    DiskCache(made).keep(b"key", bytes(3 << 20))
    assert cache_in(made) == f"{made}: 1 file, 3.0 of 256 MiB"
    made.chmod(0o777)
    assert cache_in(made) == f"none: others may write there ({made})"
    taken.write_text("")
    assert cache_in(taken / "wend") == f"none: {taken} is no folder ({taken / 'wend'})"
    assert cache_in("") == "none: WEND_CACHE_DIR, or cache_dir, is empty"


def test_a_cache_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)  # the tests may run as root
    assert cache_in(tmp_path) == f"none: it cannot be written ({tmp_path})"


def test_without_a_home_there_is_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", home)
    assert cache_in("auto") == "none: the user has no home folder"
