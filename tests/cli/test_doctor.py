"""`wend doctor`."""

from __future__ import annotations

import platform

import llvmlite
import numpy as np
import pytest

import wend
from wend.cli import doctor, main
from wend.cli.doctor import Check


def test_it_tells_versions_and_that_all_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    told = capsys.readouterr().out
    for fact in (
        wend.__version__,
        platform.python_version(),
        np.__version__,
        llvmlite.__version__,
        "BLAS",
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
