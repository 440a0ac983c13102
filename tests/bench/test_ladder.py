"""The ladder of first calls: its programs, its table, and that the work of a call is linear."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter

import numpy as np
import pytest
from bench.ladder import Rung, growth, lines, main, ratios, verdicts
from bench.ladder_programs import KINDS

import wend


def program(kind: str, size: int, tmp_path):
    text, argument = KINDS[kind](size, False, np)
    path = tmp_path / f"{kind}{size}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.program, argument


@pytest.mark.parametrize("kind", KINDS)
def test_programs_compute_what_python_does(kind: str, tmp_path) -> None:
    fun, argument = program(kind, 30, tmp_path)
    np.testing.assert_allclose(wend.function(fun)(argument), fun(argument), rtol=1e-12)


def calls(fun, argument) -> int:
    """Return how many functions are called for a first call."""
    counts: Counter[str] = Counter()
    sys.setprofile(lambda frame, event, arg: counts.update((event,)))
    try:
        fun(argument)
    finally:
        sys.setprofile(None)
    return counts["call"] + counts["c_call"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["scalars", "arrays", "leaves", "ifs"])
def test_the_work_of_a_first_call_is_linear(kind: str, tmp_path) -> None:
    def first(size: int) -> int:
        fun, argument = program(kind, size, tmp_path)
        with wend.config(cache_dir="", backend="native"):
            return calls(wend.function(fun), argument)

    first(30)  # what a process does once
    assert first(120) <= 2.2 * first(60)


def test_a_ladder_is_printed_and_judged(capsys) -> None:
    assert main(["leaves", "--sizes", "3,30", "--runs", "1", "--only", "wend", "--core", "-1"]) == 0
    told = capsys.readouterr().out
    assert "leaves, value" in told
    assert "growth" in told
    assert "imports, after NumPy's: wend" in told


def test_goals() -> None:
    rows = {
        "wend": {30: Rung([1.0]), 300: Rung([2.0, 40.0, 3.0])},
        "jax": {30: Rung([2.0]), 300: Rung(why="> 60")},
    }
    assert ratios(rows) == {30: 0.5, 300: None}
    assert growth(rows["wend"]) == pytest.approx(np.log10(3.0))
    assert growth(rows["jax"]) is None
    table = "\n".join(lines("loop", "value", rows))
    assert "0.50×" in table
    assert "> 60" in table
    ladder = {("loop", "value", library): row for library, row in rows.items()}
    assert verdicts(ladder)[0].endswith(", met")
    rows["jax"][30] = Rung([0.5])
    assert verdicts(ladder)[0].endswith("not met: 2.00× at 30")
