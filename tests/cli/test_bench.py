"""`wend bench`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import wend
from wend.cli import bench, main


def test_options_go_to_the_repositorys_program(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(
        bench.subprocess, "call", lambda command, cwd: calls.append((command, cwd)) or 3
    )
    assert main(["bench", "dopri", "--small", "--help"]) == 3
    ((command, folder),) = calls
    assert command == [sys.executable, "-m", "bench", "dopri", "--small", "--help"]
    assert (folder / "bench" / "__main__.py").is_file()


def test_without_a_repository_it_says_how(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(wend, "__file__", str(tmp_path / "a" / "b" / "c" / "__init__.py"))
    assert main(["bench"]) == 2
    assert "To fix it: get a copy of the repository" in capsys.readouterr().err
