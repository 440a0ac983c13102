"""Debuggers and coverage see a captured function's own lines."""

from __future__ import annotations

import io
import pdb  # noqa: T100  # what is tested
import sys
from pathlib import Path
from typing import Any

import coverage
import pytest

import wend

TEXT = """\
def f(x):
    total = 0.0
    for i in range(3):
        if x > i:
            total = total + x
        else:
            total = total - 1.0
    while total > 10.0:
        total = total / 2.0
    return total


def untaken(flag, x):
    if flag:
        x = x + 1.0
    else:
        x = x - 1.0
    return x
"""


@pytest.fixture
def module(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    file = tmp_path / "module.py"
    file.write_text(TEXT, encoding="utf-8")
    names: dict[str, Any] = {}
    exec(compile(TEXT, str(file), "exec"), names)
    return file, names


def debugged(file: Path, line: int, commands: list[str], fun: Any, *args: Any) -> str:
    """What a debugger says that stops at a line of a captured function."""
    said = io.StringIO()
    debugger = pdb.Pdb(stdin=io.StringIO("\n".join([*commands, ""])), stdout=said, nosigint=True)
    debugger.use_rawinput = False
    assert debugger.set_break(str(file), line) is None
    captured = wend.function(fun)
    before = sys.gettrace()
    try:
        debugger.runcall(captured, *args)
    finally:
        sys.settrace(before)
        debugger.clear_all_breaks()
    return said.getvalue()


def test_a_debugger_stops_at_a_line_of_a_branch_in_a_loop(module) -> None:
    file, names = module
    said = debugged(file, 5, ["continue", "p x", "p total", "where", "quit"], names["f"], 2.0)
    assert "module.py(5)f()" in said
    assert "-> total = total + x" in said
    assert "<traced f64[] (weak)" in said


def test_a_debugger_steps_to_the_next_line(module) -> None:
    file, names = module
    said = debugged(file, 2, ["continue", "next", "next", "quit"], names["f"], 2.0)
    assert "module.py(2)f()" in said
    assert "module.py(3)f()" in said


def test_coverage_counts_the_lines_that_were_recorded(module) -> None:
    file, names = module
    measured = coverage.Coverage(data_file=None, include=[str(file)], config_file=False)
    with measured.collect():
        wend.function(names["f"])(2.0)
        wend.function(names["untaken"], static_argnums=0)(True, 2.0)
    _, statements, _, missing, _ = measured.analysis2(str(file))
    # `def` lines ran before; of `untaken` only one side is recorded.
    assert set(statements) - set(missing) >= {2, 3, 4, 5, 7, 8, 9, 10, 14, 15, 18}
    assert {17} <= set(missing)


def test_comparisons_belong_to_their_lines() -> None:
    """Those of a loop's test too, which stands in a function of its own when it is rewritten."""

    def fun(x: Any, y: Any) -> Any:
        while x * x < y:
            x = x + 1.0
        return x if x > y - 1.0 else y

    line = fun.__code__.co_firstlineno
    graph = wend.function(fun).get_concrete_function(1.0, 9.0).graph
    lines = {node.op.name: node.source.line - line for node in graph.walk() if node.source}
    assert (lines["lt"], lines["gt"]) == (1, 3)
