"""Spans of machine code: what ran at once and the trips around it, and code without profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.backends.native.fusion.test_concurrent_nodes import SIZE, A, B, loops, text

import wend
from wend.backends.native import module
from wend.backends.native.codegen import instrument
from wend.backends.native.jit.llvm import engine
from wend.backends.native.run import profiled
from wend.base.reporting.profile import MAX_SPANS, ProfilePart, Span

TRIPS = 6
SMALL = np.sqrt(1.0 / SIZE)


def pipeline(h: Any, g: Any) -> Any:
    for _ in range(TRIPS):
        h = np.tanh(h @ A * SMALL)
        g = np.tanh((g + h) @ B * SMALL)
    return h, g


def spans_of(fun: Any, *args: Any, runs: int = 1) -> tuple[list[Span], list[Span], Any]:
    """The spans of tasks and of iterations, in order of time, and the profile."""
    with wend.config(threads=2), wend.profile() as p:
        f = wend.function(fun, backend="native")
        for _ in range(runs):
            f(*args)
    spans = sorted(p.spans, key=lambda x: x.start)
    tasks = [x for x in spans if x.thread is not None]
    return tasks, [x for x in spans if x.thread is None], p


def test_stages_and_trips_of_a_pipeline() -> None:
    tasks, trips, p = spans_of(pipeline, A, B, runs=2)
    # The first trip of one stage stands before the loop, the last one of the other after it
    numbers = [*range(TRIPS - 1)]
    assert [x.trip for x in trips] == numbers + numbers
    assert [x.what for x in tasks] == ["dot_general"] * 2 * len(trips)
    assert {x.thread for x in tasks} <= {0, 1}
    assert {x.source.line - pipeline.__code__.co_firstlineno for x in tasks} == {2, 3}
    for trip in trips:
        inside = [x for x in tasks if trip.start <= x.start and x.stop <= trip.stop]
        assert len(inside) == 2
    runs = [x for x in p.events if x.what == "run"]
    assert all(runs[0].start <= x.start <= x.stop <= runs[0].stop for x in tasks[: 2 * TRIPS - 2])


def test_the_table_knows_what_runs_at_once() -> None:
    _, _, p = spans_of(loops, A, B)
    (group,) = (x for x in p.lines() if x.what == "at once")
    inside = [x for x in p.lines() if x.depth == group.depth + 1]
    assert sorted(x.trips for x in inside if x.trips) == [20_000, 40_000]
    own = sum(x.own_seconds for x in p.lines())
    roots = sum(x.seconds for x in p.lines() if x.depth == 0)
    assert own == pytest.approx(roots)  # elapsed time, although two threads took it
    assert all(x.own_seconds >= 0.0 for x in p.lines())


@pytest.mark.parametrize("fun", [loops, pipeline])
def test_each_row_stands_below_what_it_is_part_of(fun: Any) -> None:
    """Also where both threads are busy all the time: that leaves a group no time of its own."""
    with wend.config(threads=2):
        f = wend.function(fun, backend="native")
        f(A, B)
        with wend.profile() as p:
            f(A, B)
    (event,) = (x for x in p.events if x.what == "run")
    p.events = [replace(event, parts=[_busy(x, event.parts) for x in event.parts])]
    rows = str(p).splitlines()
    place = rows[1].index("what")
    texts = [row[place:] for row in rows[3:-1]]
    depths = [(len(x) - len(x.lstrip())) // 2 for x in texts]
    assert any("at once" in x for x in texts)
    assert all(after <= before + 1 for before, after in zip([-1, *depths], depths, strict=False))


def _busy(part: ProfilePart, parts: Sequence[ProfilePart]) -> ProfilePart:
    """A group, with the time that its parts take together."""
    if not part.is_concurrent:
        return part
    return replace(
        part, seconds=sum(x.seconds for x in parts if x.loop is not None and parts[x.loop] is part)
    )


def test_the_ring_keeps_the_last_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    for holder in (instrument, module, profiled):
        monkeypatch.setattr(holder, "MAX_SPANS", 4)
    tasks, trips, p = spans_of(pipeline, A, B, runs=2)
    assert len(p.spans) == 8
    assert [x.trip for x in trips][-1] == TRIPS - 2
    assert len(tasks) + len(trips) == 8
    assert p.spans.maxlen == MAX_SPANS == 10**6


def test_code_is_the_same_without_a_profile() -> None:
    """To the last instruction; nothing that measures is in it."""
    before = text(pipeline, A, B)
    with wend.profile():
        measured = wend.function(pipeline, backend="native")
        with wend.config(threads=2):
            measured(A, B)
    after = text(pipeline, A, B)
    assert before == after
    assert instrument.READ not in after
    assert "atomicrmw" not in after.replace("atomicrmw min", "")  # that of the limit
    assert engine().assembly(before) == engine().assembly(after)


def test_a_graph_without_groups_has_no_ring() -> None:
    with wend.config(threads=2), wend.profile() as p:
        wend.function(lambda x: np.sin(x) + x, backend="native")(np.ones(5))
    assert not p.spans


def test_spans_after_a_run_that_fails() -> None:
    def systems(a: Any, b: Any) -> Any:
        return np.linalg.solve(a, b), np.linalg.solve(b, a)

    with wend.config(threads=2), wend.profile() as p:
        f = wend.function(systems, backend="native")
        with pytest.raises(np.linalg.LinAlgError):
            f(np.zeros_like(A), B)
        f(A, B)
    assert [x.what for x in p.spans] == ["solve", "solve"]
