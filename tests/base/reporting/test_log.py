"""The lines that tell what is being made, and how long it takes."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import wend
from wend.base.reporting.log import step

LINE = re.compile(r"wend: (\w+) +\d+\.\d ms  ([\w<>]+): (.+)")


def told(capsys: pytest.CaptureFixture[str]) -> list[tuple[str, ...]]:
    lines = capsys.readouterr().err.splitlines()
    found = [LINE.fullmatch(line) for line in lines]
    assert all(found), lines
    return [match.groups() for match in found if match is not None]


@pytest.mark.parametrize(
    ("backend", "last"), [("numpy", r"\d+ lines"), ("native", r"\d+ lines of LLVM")]
)
def test_each_step_has_a_line(capsys: pytest.CaptureFixture[str], backend: str, last: str) -> None:
    def double(x: float) -> float:
        return x + x * 1.0

    function = wend.function(double, backend=backend)
    with wend.config(debug=True):
        function(1.0)
        found = told(capsys)
        function(2.0)  # the trace that there is
        assert not told(capsys)
    assert found[:3] == [
        ("trace", "double", "3 nodes"),
        ("passes", "double", "3 nodes -> 3"),
        ("passes", "double", "3 nodes -> 1"),
    ]
    assert found[3][:2] == (backend, "double")
    assert re.fullmatch(last, found[3][2])
    assert len(found) == 4


def test_a_step_that_fails_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    def fails(x: float) -> float:
        raise ZeroDivisionError

    with wend.config(debug=True), pytest.raises(ZeroDivisionError):
        wend.function(fails)(1.0)
    assert told(capsys) == [("trace", "fails", "ZeroDivisionError")]


def test_without_the_setting_nothing_is_told_or_computed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with step("trace", "quiet") as tell:
        tell(lambda: pytest.fail("nobody asked"))
    assert not told(capsys)


def test_the_environment_asks_for_it() -> None:
    code = "import wend; wend.function(lambda x: x * x)(2.0)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "WEND_DEBUG": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert [line.split()[1] for line in run.stderr.splitlines()] == [
        *("trace", "passes", "passes", "native")
    ]
