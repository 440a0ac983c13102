"""What the dataflow executor records: operations, iterations and frames."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from tests.helpers.graphs import traced

import wend
from wend.backends.dataflow.backend import DataflowBackend
from wend.backends.dataflow.executor import Executor
from wend.backends.dataflow.recording import RecordingExecutor
from wend.base.reporting.profile import EVENTS, Event

TRIPS = 5


def stages(h: Any, g: Any) -> Any:
    for _ in range(TRIPS):
        h, g = np.tanh(h + 1.0), np.tanh(g + h)
    return h, g


def nested(x: Any) -> Any:
    for _ in range(3):
        for _ in range(4):
            x = np.sin(x)
        x = x + 1.0
    return x


def profiled(fun: Any, *args: Any, **options: Any) -> Any:
    backend = DataflowBackend(collapse=False, **options)
    concrete = wend.function(fun).get_concrete_function(*args)
    with wend.profile() as p:
        execute = backend.compile(concrete.graph)
        concrete.traced.run(execute, [*map(np.asarray, args)], backend.boundary)
    return p


def test_each_operation_and_each_iteration_is_a_span() -> None:
    x = np.ones((40, 40))
    p = profiled(stages, x, x, min_task=0.0)
    iterations = [x for x in p.spans if x.thread is None]
    assert sorted(x.trip for x in iterations) == [*range(TRIPS)]
    tanh = [x for x in p.spans if x.what == "tanh"]
    assert sorted(x.trip for x in tanh) == sorted([*range(TRIPS)] * 2)
    assert any(x.thread for x in tanh)  # another thread has run it
    for x in tanh:
        around = next(y for y in iterations if y.trip == x.trip)
        assert around.start <= x.start <= x.stop <= around.stop


def test_parts_of_nested_frames() -> None:
    p = profiled(nested, np.ones(3))
    outer, inner = (x for x in p.lines() if x.what == "while")
    assert (outer.count, outer.trips, outer.depth) == (1, 3, 0)
    assert (inner.count, inner.trips, inner.depth) == (3, 12, 1)
    (sin,) = (x for x in p.lines() if x.what == "sin")
    assert (sin.count, sin.depth) == (12, 2)
    assert sum(x.own_seconds for x in p.lines()) <= sum(
        x.stop - x.start for x in p.events if x.what == "run"
    )


def test_results_are_those_of_a_run_that_is_not_recorded() -> None:
    graph, args = traced(nested, 0.5), [np.float64(0.5)]
    plain = DataflowBackend(collapse=False).compile(graph)(args)
    token = EVENTS.set(list[Event]())
    try:
        with wend.config(profile=True):
            np.testing.assert_array_equal(
                DataflowBackend(collapse=False).compile(graph)(args), plain
            )
    finally:
        EVENTS.reset(token)


def test_nothing_is_recorded_without_a_profile() -> None:
    execute: Any = DataflowBackend(collapse=False).compile(traced(nested, 0.5))
    assert execute._executor is Executor
    assert issubclass(RecordingExecutor, Executor)


def test_host_calls_run_beside_long_operations() -> None:
    """The host call on the thread of the caller, and the product on another one."""

    def wait(x: Any) -> Any:
        time.sleep(0.05)
        return x

    def both(a: Any, x: Any) -> Any:
        product = a @ a
        return product, wend.py_function(wait, wend.TensorSpec([3]), x)

    p = profiled(both, np.ones((200, 200)), np.ones(3), min_task=0.0)
    (product,) = (x for x in p.spans if x.what == "dot_general")
    (host,) = (x for x in p.spans if x.what == "py_function")
    assert host.thread == 0
    assert product.thread != 0
    assert host.start < product.stop
    assert product.start < host.stop
