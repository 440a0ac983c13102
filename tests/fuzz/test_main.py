"""The long search keeps what fails, made small, as a file that the tests run."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import strategies as st

import wend
from tests.fuzz import __main__ as fuzz
from tests.fuzz.program import Program, read


def test_what_fails_is_made_small_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(program: Program, number: int) -> None:
        raise AssertionError("a number\nand more")

    made = st.integers(-50, 50).map(
        lambda n: Program(f"def f(x):\n    return x + {n}\n", ((1.0,),), (0,))
    )
    searched = fuzz.Searched(made, refuse, 40, ".py")
    monkeypatch.setattr(fuzz, "SEARCHED", {"programs": searched})
    monkeypatch.setattr(fuzz, "REGRESSIONS", tmp_path)
    with wend.config():
        assert fuzz.main(["1", "--seed", "7"]) == 1
    (kept,) = tmp_path.iterdir()
    text = kept.read_text(encoding="utf-8")
    assert text.startswith("# AssertionError: a number\n")
    assert read(text).text == "def f(x):\n    return x + 0\n"
    says = capsys.readouterr().out
    assert f"{kept.name}: AssertionError: a number" in says
    assert "seed 7" in says
