"""Graphs and programs that once failed: `python -m tests.fuzz --minutes 60` writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import agree, check, example, mapped, program


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "path", sorted(example.REGRESSIONS.glob("*.*")), ids=lambda path: path.stem
)
def test_what_once_failed(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if path.name.endswith(".mapped.py"):
        mapped.check_mapped(program.read(text))
    elif path.suffix == ".py":
        check.check_program(program.read(text))
    else:
        agree.check(example.read(text))
