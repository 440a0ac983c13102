"""Capturing costs little, however long the file, and whichever code the collector watches."""

from __future__ import annotations

import ast
import gc
import inspect
import time
from pathlib import Path

import numpy as np
import pytest

import wend
from wend.capture.convert import captured
from wend.capture.heap.locations import write_log
from wend.capture.heap.user_operators import log_write_operands
from wend.capture.stage.staged_loop import StagedLoop

TEXT = '''
def settle_{k}(w, b, tolerance):
    """Iterate x = tanh(W·x + b) until it stands still."""
    x = b * 0.0
    steps = 0
    while True:
        new = np.tanh(w @ x + b)
        steps += 1
        if abs(new - x).max() < tolerance:
            break
        x = new
    for i in range(steps):
        x = x * 0.5 if x.sum() > i else x + 1.0
    return x, steps
'''


def functions(file: Path, count: int) -> list:
    text = "".join(TEXT.format(k=k) for k in range(count))
    file.write_text(text, encoding="utf-8")
    names: dict = {}
    exec(compile(text, str(file), "exec"), names)
    return [value for name, value in names.items() if name.startswith("settle_")]


def milliseconds(fun) -> float:
    return timed(lambda: captured(fun))


def timed(run) -> float:
    start = time.process_time()
    run()
    return (time.process_time() - start) * 1e3


def test_a_small_function_takes_three_milliseconds(tmp_path: Path) -> None:
    # The least of several: what else the machine does only adds. Where the machine is slow, by
    # what Python takes to compile a file of its own.
    files = (functions(tmp_path / f"small{k}.py", 1) for k in range(8))
    text = inspect.getsource(ast)
    usual = min(timed(lambda: compile(text, "ast.py", "exec")) for _ in range(8))
    assert min(milliseconds(fun) for (fun,) in files) <= max(3.0, 0.5 * usual)


def test_one_in_a_long_file_takes_little_more(tmp_path: Path) -> None:
    # 300 times as long, with the first look at the file; by ratio, since machines differ.
    short = (functions(tmp_path / f"short{k}.py", 1) for k in range(7))
    long = (functions(tmp_path / f"long{k}.py", 300) for k in range(7))
    alone = min(milliseconds(fun) for (fun,) in short)
    assert min(milliseconds(funs[-1]) for funs in long) <= 2.5 * alone


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_left_as_it_was(tmp_path: Path, enabled: bool) -> None:
    (fun,) = functions(tmp_path / f"collector{enabled}.py", 1)
    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        captured(fun)
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_a_list_that_the_body_makes_costs_no_further_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Made for the trip, and dropped: nobody else can see that it changes.
    def squares(x):
        found = [x]
        found.append(x * x)
        return sum(found)

    def program(x):
        while x < 10.0:
            x = x + squares(x)
        return x

    rounds = _counted_rounds(monkeypatch)
    assert wend.function(program)(np.float64(1.0)) == program(1.0)
    assert rounds == ["after"]


def _counted_rounds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    rounds: list[str] = []
    trace_after = StagedLoop._trace_after

    def counted(self, body):
        rounds.append("after")
        return trace_after(self, body)

    monkeypatch.setattr(StagedLoop, "_trace_after", counted)
    return rounds


class CountsHashes:
    hashes = 0

    def __hash__(self) -> int:
        self.hashes += 1
        return 1


def test_code_is_not_hashed_at_each_arm() -> None:
    def caller() -> None:
        log_write_operands()

    constant = CountsHashes()
    code = caller.__code__  # its hash is that of all its constants
    caller.__code__ = code.replace(co_consts=(*code.co_consts, constant))  # type: ignore[arg-type]
    before = constant.hashes
    with write_log():
        caller()
    assert constant.hashes == before
