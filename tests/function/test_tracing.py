"""Functions that call each other may be many."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import wend


def chain(folder: Path, count: int) -> Any:
    """The last of so many functions, each of which calls the one before."""
    lines = ["import wend", "", "def f0(x):", "    return x * 2.0"]
    for k in range(1, count):
        lines += ["", "@wend.function", f"def f{k}(x):", f"    return f{k - 1}(x) + 0.5"]
    file = folder / "chain.py"
    file.write_text("\n".join(lines))
    names: dict[str, Any] = {"__name__": "chain"}
    exec(compile(file.read_text(), str(file), "exec"), names)
    return names[f"f{count - 1}"]


def test_a_long_chain(tmp_path: Path) -> None:
    limit = sys.getrecursionlimit()
    last = chain(tmp_path, 100)
    assert last(1.5) == 3.0 + 99 * 0.5
    assert wend.grad(last)(1.5) == 2.0
    assert sys.getrecursionlimit() == limit


@pytest.mark.parametrize("count", [170, 250])
def test_a_chain_that_is_too_long_says_so(tmp_path: Path, count: int) -> None:
    """Wherever Python gives up: while it reads the code, runs it, or handles the error."""
    limit = sys.getrecursionlimit()
    last = chain(tmp_path, count)
    for _ in range(2):
        with pytest.raises(
            RecursionError, match="functions call each other, and recording all"
        ) as e:
            last(1.5)
        assert "sys.setrecursionlimit" in str(e.value)
        assert sys.getrecursionlimit() == limit
