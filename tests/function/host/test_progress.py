"""A line that tells how far a loop is."""

from __future__ import annotations

import io
import itertools
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wend
from wend.base.reporting import status_line as screen
from wend.function.host import progress as module
from wend.function.host.progress import ProgressLine

BACKENDS = pytest.mark.parametrize("backend", ["numpy", "native"])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Calls(list[Any]):
    """What lines are told: trips and how many there are, or "end"; and the values."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[Any] = []

    @property
    def trips(self) -> list[int]:
        return [call[0] for call in self if call != "end"]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """On a terminal: what lines are told, each trip of those that are short."""
    found = Calls()
    monkeypatch.setattr(module, "is_watched", lambda: True)
    monkeypatch.setattr(module, "_MAX_FIRST_TRIPS", 1)

    class Noted(ProgressLine):
        def __call__(self, done: Any, count: Any = None, value: Any = None) -> int:
            found.append((int(done), None if count is None else int(count)))
            found.values.append(value)
            due = super().__call__(done, count, value)
            return int(done) + 1 if done < 10 else due

        def end(self) -> None:
            found.append("end")
            super().end()

    monkeypatch.setattr(module, "ProgressLine", Noted)
    return found


def added(n: Any, x: Any) -> Any:
    total = 0.0 * x
    for k in wend.progress(range(n)):
        total = total + x * k
    return total


def halved(x: Any) -> Any:
    while wend.progress(x > 1.0, "halving", value=x):
        x = x * 0.5
    return x


def test_where_nobody_watches_nothing_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    numbers, test = range(3), np.bool_(True)
    assert wend.progress(numbers) is numbers
    assert wend.progress(test, value=1.0) is test

    def plain(x: Any) -> Any:
        while x > 1.0:
            x = x * 0.5
        return x

    graphs = [wend.function(f, name="f").get_concrete_function(2.0).graph for f in (halved, plain)]
    assert str(graphs[0]) == str(graphs[1])


def test_a_value_beside_an_iterable_is_refused() -> None:
    with pytest.raises(TypeError, match="beside the test"):
        wend.progress(range(3), value=1.0)


# `for`
@BACKENDS
@pytest.mark.parametrize("n", [0, 1, 7, 2345, 300_000])
def test_a_compiled_loop_calls_seldom(n: int, backend: str, calls: Calls) -> None:
    if backend == "numpy" and n > 10_000:
        n = 10_000
    fun = wend.function(added, backend=backend)
    concrete = fun.get_concrete_function(wend.TensorSpec([], int), 1.0)
    assert concrete.graph.count("while") == 1
    assert fun(np.int64(n), 1.0) == n * (n - 1) / 2
    assert calls[-1] == "end"
    assert calls.trips == sorted(set(calls.trips))
    assert calls.trips[:10] == [*range(min(n, 10))]
    assert {call[1] for call in calls if call != "end"} <= {n}
    seconds = 10  # more than any of these takes
    assert len(calls) <= 10 + 1 + 20 * seconds + np.log2(n + 1)


@BACKENDS
def test_a_gradient_tells_of_the_forward_loop(backend: str, calls: Calls) -> None:
    slope = wend.grad(wend.function(added, backend=backend), argnums=1)
    assert slope(np.int64(5), 2.0) == 10.0
    assert calls == [*((k, 5) for k in range(5)), "end"]


def test_rows_lists_and_generators(calls: Calls) -> None:
    @wend.function
    def summed(rows: Any) -> Any:
        total = 0.0
        for row in wend.progress(rows):
            total = total + row[0]
        return total

    assert summed(np.ones((3, 2))) == 3.0
    assert calls == [(0, 3), (1, 3), (2, 3), "end"]
    calls.clear()
    assert [*wend.progress([4, 5])] == [4, 5]
    assert calls == [(0, 2), (1, 2), "end"]
    calls.clear()
    assert [*wend.progress(itertools.repeat(1, 2))] == [1, 1]
    assert calls == [(0, None), (1, None), "end"]


def test_a_loop_that_python_runs_while_it_is_recorded(calls: Calls) -> None:
    @wend.function
    def chained(x: Any) -> Any:
        for f in wend.progress([np.sin, np.cos, np.exp]):
            x = f(x)
        return x

    assert chained(0.5) == np.exp(np.cos(np.sin(0.5)))
    assert calls == [(0, 3), (1, 3), "end"]


@BACKENDS
def test_a_for_that_is_left_early_is_over(backend: str, calls: Calls) -> None:
    def first_over(bound: Any) -> Any:
        found = 0
        for k in wend.progress(range(50)):
            found = k
            if k * k > bound:
                break
        return found

    compiled = wend.function(first_over, backend=backend)
    for function in (compiled, first_over):
        calls.clear()
        assert function(10.0) == 4
        assert calls == [*((k, 50) for k in range(5)), "end"]


# `while`
@BACKENDS
def test_a_test_is_counted_and_given_back(backend: str, calls: Calls) -> None:
    fun = wend.function(halved, backend=backend)
    assert fun.get_concrete_function(1.0).graph.count("while") == 1
    for function in (fun, halved):
        calls.clear()
        calls.values.clear()
        assert function(5.0) == 0.625
        assert calls.trips == [0, 1, 2, *([3] if function is fun else [])]
        assert calls[-1] == "end"
        assert [*map(float, calls.values[:3])] == [5.0, 2.5, 1.25]


@BACKENDS
def test_no_trip(backend: str, calls: Calls) -> None:
    assert wend.function(halved, backend=backend)(0.5) == 0.5
    assert halved(0.5) == 0.5
    assert set(calls.trips) <= {0}
    assert calls[-1] == "end"


@BACKENDS
def test_derivatives_tell_of_the_forward_loop(backend: str, calls: Calls) -> None:
    def ran(compute: Callable[[], Any]) -> Any:
        calls.clear()
        found = compute()
        assert calls.trips == [0, 1, 2, 3]
        assert calls[-1] == "end"
        return found

    with wend.config(backend=backend):
        assert ran(lambda: wend.grad(halved)(5.0)) == 0.125
        assert ran(lambda: wend.grad(wend.grad(lambda x: halved(x) * x))(5.0)) == 0.25
        assert ran(lambda: wend.jvp(halved, (5.0,), (1.0,))) == (0.625, 0.125)
        assert ran(lambda: wend.vjp(halved, 5.0)[1](1.0)) == (0.125,)
        assert ran(lambda: wend.jacrev(halved)(5.0)) == 0.125


def test_tapes_eager_mode_and_functional_loops(calls: Calls) -> None:
    def gradient(function: Callable[[Any], Any]) -> Any:
        with wend.GradientTape() as tape:
            x = tape.watch(np.float64(5.0))
            y = function(x)
        return tape.gradient(y, x)

    def functional(x: Any) -> Any:
        return wend.while_loop(lambda c: wend.progress(c > 1.0), lambda c: c * 0.5, x)

    assert gradient(halved) == gradient(wend.function(halved)) == gradient(functional) == 0.125
    calls.clear()
    assert functional(5.0) == 0.625
    assert calls.trips == [0, 1, 2, 3]
    with wend.config(eager=True):
        calls.clear()
        assert wend.function(halved)(5.0) == 0.625
        assert calls.trips == [0, 1, 2]


def test_where_effects_are_refused_it_is_silent(calls: Calls) -> None:
    assert wend.grad(wend.checkpoint(halved))(5.0) == 0.125
    assert calls == []


@BACKENDS
def test_nested_loops_and_one_after_the_other(backend: str, calls: Calls) -> None:
    @wend.function(backend=backend)
    def nested(x: Any) -> Any:
        total = 0.0
        for k in wend.progress(range(2)):
            total = total + halved(x + k)
            total = total + halved(total)
        return total

    nested(2.0)
    inner = [(0, None), (1, None), "end"]
    assert [calls[0], calls[-1]] == [(0, 2), "end"]
    assert calls.count("end") == 5
    assert calls[1:4] == inner  # 2 -> 1
    assert (1, 2) in calls
    starts = [k for k, call in enumerate(calls) if call == (0, None)]
    assert len(starts) == 4  # each time that a loop is entered it counts from 0


@BACKENDS
def test_a_while_that_is_left_by_a_break_is_over(backend: str, calls: Calls) -> None:
    @wend.function(backend=backend)
    def until(x: Any, bound: Any) -> Any:
        while wend.progress(x < 100.0):
            x = x * 2.0
            if x > bound:
                break
        return x

    assert until(1.0, 3.0) == 4.0
    assert calls[-1] == "end"
    assert calls.count("end") == 1


def test_in_python_a_loop_that_was_left_counts_anew(calls: Calls) -> None:
    def until(x: float) -> float:
        while wend.progress(x < 100.0):
            x = x * 2.0
            if x > 5.0:
                break
        return x

    until(1.0)
    until(1.0)
    assert calls.trips == [0, 1, 2, 0, 1, 2]


# The line
def slow_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal 60 letters wide, without rich, and a clock that a call takes 0.06 seconds of."""
    stream, clock = Terminal(), itertools.count(0.0, 0.06)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(module, "perf_counter", lambda: next(clock))
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setenv("COLUMNS", "60")
    return stream


def test_the_line_is_drawn_every_so_often_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = slow_terminal(monkeypatch)
    line = ProgressLine("fit")
    for k in range(4):
        line(np.int64(k), np.int64(4))
    line.end()
    assert terminal.getvalue() == "\rfit ━━━━━━━━━━━━──────────── 2 of 4, 0 s left\x1b[K\r\x1b[K"


def test_a_line_of_unknown_length_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = slow_terminal(monkeypatch)
    line = ProgressLine("")
    for k, value in enumerate([1.0, 0.5, 1.25e-12]):
        line(k, None, value)
    line.end()
    assert terminal.getvalue() == "\r2 trips, 0 s, 1.25e-12\x1b[K\r\x1b[K"


def test_values_that_are_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = slow_terminal(monkeypatch)
    line = ProgressLine("")
    for value, text in (
        (np.arange(9.0), "[0. 1. ... 7. 8.]"),
        (np.bool_(True), "True"),
        (1 + 2j, "1+2j"),
    ):
        for k in range(3):
            line(k, None, value)
        assert f", {text}\x1b[K" in terminal.getvalue()
    line.end()


def test_it_is_called_some_twenty_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(module, "perf_counter", lambda: now[0])
    monkeypatch.setattr(screen, "is_watched", lambda: False)
    line, trips, calls, due = ProgressLine(""), 0, 0, 0
    for _ in range(100_000):  # of 0.1 ms
        if trips >= due:
            due, calls = line(trips), calls + 1
        trips, now[0] = trips + 1, now[0] + 1e-4
    assert 180 < calls < 230
    # It was fast, so a short loop does not call at each trip.
    assert line(0) == module._MAX_FIRST_TRIPS
    line.end()


def test_loops_that_were_left_are_forgotten(calls: Calls) -> None:
    for k in range(100):
        names: dict[str, Any] = {"wend": wend}
        code = "\n" * k + "while wend.progress(True):\n    break"
        exec(compile(code, "left.py", "exec"), names)
    assert len(module._while_tests) <= module._MAX_TESTS
    module._while_tests.clear()


PROGRAM = """
import sys, wend
@wend.function(backend="native")
def endless(x):
    while wend.progress(x < 1e18, "endless"):
        x = x + 1e-9
    return x
@wend.function(backend="native")
def failing(x):
    while wend.progress(x < 0.5, "failing"):
        x = x + 1e-9
    wend.assert_(x < 0.0, "x is large")
    return x
def left(x):
    while wend.progress(x < 1e18, "left"):
        x = x + 1e-9
        if x > 5e-4:
            break
    return x
{0}(0.0)
print("done")
"""


def on_a_terminal(tmp_path: Path, name: str, until: str, *, interrupt: bool = False) -> str:
    """What a program writes to a terminal; it may be interrupted once a text is there."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM.format(name))
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    process = subprocess.Popen(
        [sys.executable, str(file)], stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    found, deadline = b"", time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            found += os.read(ours, 4096)
        except OSError:  # the other side is closed
            break
        if interrupt and until.encode() in found:
            process.send_signal(signal.SIGINT)
            interrupt = False
    process.kill()
    process.wait()
    os.close(ours)
    return found.decode()


@pytest.mark.parametrize(
    ("name", "interrupt", "after"),
    [
        ("endless", True, "Traceback"),
        ("failing", False, "Traceback"),
        ("left", False, "done"),
    ],
)
def test_what_is_written_next_finds_a_clean_line(
    name: str, interrupt: bool, after: str, tmp_path: Path
) -> None:
    written = on_a_terminal(tmp_path, name, f"{name} ", interrupt=interrupt)
    assert re.search(rf"\x1b\[K\r\x1b\[K{after}", written), written
    assert written.count("\x1b[?25l") == 0  # the cursor is never hidden


@pytest.mark.parametrize("others", [(), ("x",), ("x", "x")])
def test_things_that_are_gone_through_together_are_as_many_as_the_shortest(
    calls: Calls, others: tuple[str, ...]
) -> None:
    def fun(n: Any, x: Any) -> Any:
        total = 0.0
        parts = [range(n), *(x for _ in others)]
        for k, *rest in wend.progress(zip(*parts, strict=False)):
            total = total + k + sum(rest)
        return total

    x = np.arange(3.0)
    assert wend.function(fun)(5, x) == fun(5, x)
    counts = {count for (count,) in ((call[1],) for call in calls if call != "end")}
    assert counts <= {3 if others else 5, None}
    assert (3 if others else 5) in counts


def test_of_things_that_nobody_counts_only_trips_are_told(calls: Calls) -> None:
    @wend.function
    def fun(x: Any) -> Any:
        for item, _ in wend.progress(zip(x, itertools.count())):
            x = x + item
        return x

    fun(np.arange(3.0))
    assert {call[1] for call in calls if call != "end"} == {None}
