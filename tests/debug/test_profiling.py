"""`wend.profile`: what ran, how often, and where."""

from __future__ import annotations

import json

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from wend.base.reporting.profile import Event, Span
from wend.numpy import special


@pytest.fixture(params=["numpy", "native"], autouse=True)
def backend(request):
    with wend.config(backend=request.param):
        yield request.param


def nested(x, n):
    total, k = 0.0, 0
    while k < n:
        for _ in range(3):
            x = wnp.sin(x)
        total = total + x.sum()
        k = k + 1
    return total


def named(lines, what):
    return [line for line in lines if line.what == what]


def test_trips_lines_and_what_is_inside_what():
    fun, x = wend.function(nested), np.ones(1000)
    plain = fun(x, 5)
    with wend.profile() as p:
        assert fun(x, 5) == plain
        fun(x, 4)
    outer, inner = named(p.lines(), "while")
    first = nested.__code__.co_firstlineno
    assert (outer.count, outer.trips, outer.depth) == (2, 9, 0)
    assert (inner.count, inner.trips, inner.depth) == (9, 27, 1)
    assert (outer.source.line, inner.source.line) == (first + 2, first + 3)
    assert sum(line.count for line in p.lines() if line.depth == 2) >= 27
    assert {line.function for line in p.lines()} == {"nested"}


def test_times_add_up():
    fun, x = wend.function(nested), np.ones(20_000)
    shares = []
    for _ in range(5):
        with wend.profile() as p:
            for _ in range(3):
                fun(x, 20)
        lines = p.lines()
        run = sum(event.stop - event.start for event in p.events if event.what == "run")
        outer = named(lines, "while")[0]
        assert 0.0 < outer.seconds <= run
        own = sum(line.own_seconds for line in lines)
        roots = sum(line.seconds for line in lines if line.depth == 0)
        assert own == pytest.approx(roots)
        inside = sum(line.own_seconds for line in lines if line.depth == 2)
        shares.append(inside / outer.seconds)
    # Nearly all of it is the sines, but where other programs come between.
    assert max(shares) > 0.5


def test_gradients_and_zero_trips():
    grad, x = wend.grad(nested), np.ones(100)
    with wend.profile() as p:
        grad(x, 0)
        grad(x, 2)
    loops = named(p.lines(), "while")
    assert [line.trips for line in loops if line.depth == 0] == [2, 2]  # there and back
    assert [line.trips for line in loops if line.depth == 1] == [6, 6]


def test_steps_are_noted():
    with wend.profile() as p:
        wend.function(lambda x: x + 1.0)(1.0)
    steps = [event.what for event in p.events]
    assert steps[0] == "trace"
    assert steps[-1] == "run"
    assert "passes" in steps
    assert all(event.stop >= event.start for event in p.events)


def test_what_runs_in_python_is_marked(backend):
    with wend.profile() as p:
        wend.function(lambda x: special.polygamma(1, x).sum() + wnp.sin(x).sum())(np.ones(20))
    left = {line.what for line in p.lines() if line.is_python}
    assert len(left) == (backend == "native")


def test_the_table():
    with wend.profile() as p:
        wend.function(nested)(np.ones(1000), 5)
    head, titles, function, *rows = str(p).split("\n")
    assert head.startswith("1 run: ")
    assert titles.split() == ["line", "what", "times", "trips", "ms", "own", "ms", "own", "%"]
    assert function == "nested:"
    assert rows[0].startswith("test_profiling.py:")
    assert rows[-1].startswith("the calls, and the rest")
    assert str(wend.profile()).startswith("0 runs")


def test_the_timeline(tmp_path):
    with wend.profile() as p:
        wend.function(nested)(np.ones(1000), 5)
    p.save(tmp_path / "trace.json")
    bars = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {bar["ph"] for bar in bars} == {"X", "C"}
    loop = next(bar for bar in bars if bar["name"].startswith("while"))
    assert loop["args"]["trips"] == 5
    run = next(bar for bar in bars if bar["name"] == "run nested")
    assert run["ts"] <= loop["ts"]
    assert loop["ts"] + loop["dur"] <= run["ts"] + run["dur"] + 1.0
    wend.profile().save(tmp_path / "empty.json")


def test_counters_of_operations_grow_from_run_to_run(tmp_path):
    fun = wend.function(nested)
    with wend.profile() as p:
        for _ in range(3):
            fun(np.ones(1000), 5)
    p.save(tmp_path / "trace.json")
    bars = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    (name,) = {x["name"] for x in bars if x["ph"] == "C" and x["name"].startswith("sin")}
    counts = [x["args"]["ms"] for x in bars if x["ph"] == "C" and x["name"] == name]
    assert counts[0] == 0.0
    assert counts == sorted(counts)
    total = sum(line.seconds for line in p.lines() if name.startswith(f"{line.what} "))
    assert counts[-1] == pytest.approx(1e3 * total)


def test_spans_on_the_timeline(tmp_path):
    """Bars of threads, and iterations that may overlap; at the times of the run."""
    line = nested.__code__.co_firstlineno
    source = wend.base.source.Source(__file__, line, "nested", "")
    with wend.profile() as p:
        p.events.append(Event("run", "nested", 10.0, 12.0))
        p.spans.append(Span("dot_general", source, 10.5, 11.0, 1, 3))
        p.spans.append(Span("while", source, 10.25, 11.5, None, 3))
    p.save(tmp_path / "trace.json")
    rows = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    bar = next(x for x in rows if x["name"].startswith("dot_general"))
    assert (bar["ph"], bar["tid"], bar["ts"], bar["dur"]) == ("X", 2, 0.5e6, 0.5e6)
    assert bar["args"]["trip"] == 3
    begin, end = (x for x in rows if x["ph"] in "be")
    assert (begin["ph"], begin["ts"], end["ph"], end["ts"]) == ("b", 0.25e6, "e", 1.5e6)
    assert begin["id"] == end["id"]
    assert begin["cat"] == "iteration"
    assert [x["args"]["name"] for x in rows if x["ph"] == "M"] == ["thread 1"]


def test_it_is_off_before_and_after():
    fun = wend.function(nested)
    fun(np.ones(10), 2)
    with wend.profile() as p:
        fun(np.ones(10), 2)
    count = len(p.events)
    fun(np.ones(10), 2)
    assert len(p.events) == count
    assert not wend.base.config.settings().profile


def test_a_run_that_fails():
    @wend.function
    def fun(x):
        assert x > 0.0, "not positive"
        return x

    with wend.profile() as p:
        with pytest.raises(AssertionError):
            fun(-1.0)
        fun(1.0)
    assert sum(event.what == "run" for event in p.events) == 1


def test_one_in_another():
    fun = wend.function(nested)
    with wend.profile() as outer:
        with wend.profile() as inner:
            fun(np.ones(10), 2)
        fun(np.ones(10), 3)
    assert next(line.trips for line in named(inner.lines(), "while")) == 2
    assert next(line.trips for line in named(outer.lines(), "while")) == 3
