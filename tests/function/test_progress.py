"""A line that tells how far a loop is."""

from __future__ import annotations

import io
import itertools
import sys
from typing import Any

import numpy as np
import pytest

import wend
from wend.function import progress as module
from wend.function.progress import Line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, Any]]:
    """On a terminal: what lines are told."""
    found: list[tuple[int, Any]] = []
    monkeypatch.setattr(module, "_is_watched", lambda: True)

    class Noted(Line):
        def __call__(self, k: Any, count: Any) -> None:
            found.append((int(k), None if count is None else int(count)))
            super().__call__(k, count)

    monkeypatch.setattr(module, "Line", Noted)
    return found


def added(n: Any, x: Any) -> Any:
    total = 0.0 * x
    for k in wend.progress(range(n)):
        total = total + x * k
    return total


def test_where_nobody_watches_it_is_the_iterable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    numbers = range(3)
    assert wend.progress(numbers) is numbers


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("n", [0, 1, 7, 100, 1000, 2345])
def test_a_compiled_loop_calls_some_hundred_times(
    n: int, backend: str, calls: list[tuple[int, Any]]
) -> None:
    fun = wend.function(added, backend=backend)
    concrete = fun.get_concrete_function(wend.TensorSpec([], int), 1.0)
    assert concrete.graph.count("while") == 1
    assert fun(np.int64(n), 1.0) == n * (n - 1) / 2
    assert len(calls) <= 201
    if n:
        assert calls[0] == (0, n)
        assert calls[-1] == (n - 1, n)
    if 0 < n <= 100:
        assert calls == [(k, n) for k in range(n)]


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_gradient_tells_of_the_forward_loop(backend: str, calls: list[tuple[int, Any]]) -> None:
    slope = wend.grad(wend.function(added, backend=backend), argnums=1)
    assert slope(np.int64(5), 2.0) == 10.0
    assert calls == [(k, 5) for k in range(5)]


def test_rows_lists_and_generators(calls: list[tuple[int, Any]]) -> None:
    @wend.function
    def summed(rows: Any) -> Any:
        total = 0.0
        for row in wend.progress(rows):
            total = total + row[0]
        return total

    assert summed(np.ones((3, 2))) == 3.0
    assert calls == [(0, 3), (1, 3), (2, 3)]
    calls.clear()
    assert [*wend.progress([4, 5])] == [4, 5]
    assert calls == [(0, 2), (1, 2)]
    calls.clear()
    assert [*wend.progress(itertools.repeat(1, 2))] == [1, 1]
    assert calls == [(0, None), (1, None)]


def test_a_loop_that_is_left_early(calls: list[tuple[int, Any]]) -> None:
    @wend.function
    def first_over(bound: Any) -> Any:
        found = 0
        for k in wend.progress(range(50)):
            found = k
            if k * k > bound:
                break
        return found

    assert first_over(10.0) == 4
    assert calls == [(k, 50) for k in range(5)]


def test_the_line_is_drawn_every_so_often_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, clock = Terminal(), itertools.count(0.0, 0.06)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(module, "perf_counter", lambda: next(clock))
    monkeypatch.setenv("COLUMNS", "60")
    line = Line("fit")
    for k in range(4):
        line(np.int64(k), np.int64(4))
    assert stream.getvalue() == "\rfit ━━━━━━━━━━━━━━━━━━────── 3 of 4, 0 s left\x1b[K\r\x1b[K"


def test_a_line_of_unknown_length_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, clock = Terminal(), itertools.count(0.0, 1.0)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(module, "perf_counter", lambda: next(clock))
    monkeypatch.setenv("COLUMNS", "12")
    line = Line("")
    for k in range(2):
        line(k, None)
    assert stream.getvalue() == "\r2 after 1 s\x1b[K"
