"""The compiler that links."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from wend.build import linking
from wend.build.linking import LinkError, find_compiler, link_shared


def test_the_variable_comes_before_the_command_and_that_before_the_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CC", "clang -m64")
    assert find_compiler() == ["clang", "-m64"]
    monkeypatch.delenv("CC")
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    assert find_compiler() == ["cc"]
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(linking, "find_spec", lambda name: object())
    assert find_compiler() == [sys.executable, "-m", "ziglang", "cc"]


def test_without_one_the_cures_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(linking, "find_spec", lambda name: None)
    with pytest.raises(LinkError, match=r"pip install 'wend\[build\]'"):
        link_shared([], tmp_path / "x.so")


def test_what_the_compiler_says_is_told(tmp_path: Path) -> None:
    if find_compiler() is None:
        pytest.skip("NO COMPILER OF C")
    with pytest.raises(LinkError, match=r"nothing\.o"):
        link_shared([tmp_path / "nothing.o"], tmp_path / "x.so")
