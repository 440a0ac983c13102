"""The executor: what runs at once, which error wins, and that nothing is left behind."""

from __future__ import annotations

import _thread
import random
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest
from tests.helpers.dataflow import shuffled
from tests.helpers.graphs import traced
from tests.helpers.threads import running

import wend
from wend.backends.dataflow.backend import DataflowBackend
from wend.backends.dataflow.executor import Executor
from wend.backends.dataflow.lower import lower
from wend.backends.dataflow.plan import Plan
from wend.base.errors import GraphError

# Seconds that an interrupted run may take; a thread that waits for ever takes longer.
PATIENCE = 10.0


def runner(fun: Any, *args: Any, **options: Any) -> Any:
    backend = DataflowBackend(collapse=False, **options)
    concrete = wend.function(fun).get_concrete_function(*args)
    execute = backend.compile(concrete.graph)
    return lambda *xs: concrete.traced.run(execute, [*map(np.asarray, xs)], backend.boundary)


class Stages(Executor):
    """Counts the iterations in flight."""

    most = 0

    def _advance(self, frame):
        super()._advance(frame)
        self.most = max(self.most, len(frame.iterations))


def two_stages(x):
    return wend.fori_loop(0, 20, lambda i, c: (np.tanh(c[0] + 1.0), np.tanh(c[1] + c[0])), (x, x))


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_at_most_so_many_iterations_are_in_flight(limit):
    graph = traced(two_stages, 0.5)
    expected = wend.function(two_stages, backend="numpy")(0.5)
    for seed in range(5):
        run = Stages(Plan(lower(graph), limit), shuffled(seed))
        np.testing.assert_array_equal(run.run([np.float64(0.5)]), expected)
        assert run.most <= limit
    if limit > 1:
        assert run.most > 1


@pytest.mark.parametrize("seed", range(4))
def test_the_first_error_of_the_program_wins(seed):
    def fun(x, i):
        def step(k, total):
            return total + x[k + i]

        return wend.fori_loop(0, 5, step, 0.0)

    run = runner(fun, np.arange(4.0), np.int64(0), take=shuffled(seed))
    with pytest.raises(IndexError) as seen:
        run(np.arange(4.0), np.int64(2))
    with pytest.raises(IndexError) as expected, wend.config(backend="numpy"):
        wend.function(fun)(np.arange(4.0), np.int64(2))
    assert str(seen.value) == str(expected.value)
    assert seen.value.__notes__ == expected.value.__notes__


def test_errors_of_other_threads_arrive():
    def fun(a, b):
        return (a @ b) @ np.linalg.inv(b)

    good, bad = np.eye(3), np.zeros((3, 3))
    run, before = runner(fun, good, good, min_task=0.0), _thread._count()
    np.testing.assert_array_equal(run(good, good), good)
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        run(good, bad)
    assert running(expected=before) == before


@pytest.mark.parametrize("kind", ["interrupt", "host call", "task"])
def test_cancelled_runs_leave_no_thread(kind):
    """At random points of a run that has tasks on other threads."""
    calls = [0]
    stop = [0]

    def host(x):
        calls[0] += 1
        if calls[0] == stop[0] and kind != "task":
            raise KeyboardInterrupt if kind == "interrupt" else ValueError("stop")
        return x

    def fun(a, b):
        def body(i, c):
            u = wend.py_function(host, wend.TensorSpec([4, 4]), c[0])
            checked = np.linalg.inv(c[1] - (i == 7) * c[1]) if kind == "task" else c[1]
            return np.tanh(u @ a), np.tanh(checked @ b + u)

        return wend.fori_loop(0, 12, body, (a, b))

    x, before = np.eye(4), _thread._count()
    run = runner(fun, x, x, min_task=0.0)
    error = {"interrupt": KeyboardInterrupt, "host call": ValueError}.get(kind)
    for number in range(1, 40):
        calls[0], stop[0] = 0, number % 13
        start = time.monotonic()
        if kind == "task":
            with pytest.raises(np.linalg.LinAlgError):
                run(x, x)
        elif stop[0]:
            with pytest.raises(error):
                run(x, x)
            assert calls[0] == stop[0]  # later calls do not run
        else:
            run(x, x)
        assert time.monotonic() - start < PATIENCE
        assert running(expected=before) == before


def run_interrupted(run: Any, args: Any, delay: float) -> bool:
    """Run until a signal comes; return whether it came before the end."""
    timer = threading.Timer(delay, signal.raise_signal, [signal.SIGINT])
    try:
        timer.start()
        run(*args)
        timer.join()  # the signal comes now
        time.sleep(0.01)
    except KeyboardInterrupt:
        timer.join()
        return True
    raise AssertionError("no signal came")


def test_interrupts_at_random_moments() -> None:
    stored = wend.Variable(0)

    def fun(a, b):
        def body(i, c):
            stored.assign(i + 1)
            return np.tanh(c[0] @ a), np.tanh(c[1] @ b + c[0])

        return wend.fori_loop(0, 400, body, (a, b))

    x, before = np.eye(32), _thread._count()
    run = runner(fun, x, x, min_task=0.0)
    rng = random.Random(0)
    for _ in range(15):
        start = time.monotonic()
        assert run_interrupted(run, (x, x), rng.uniform(0.0, 0.05))
        assert time.monotonic() - start < PATIENCE
        assert running(expected=before) == before
        assert 0 <= stored.value <= 400
    results = run(x, x)  # as if nothing had happened
    assert stored.value == 400
    np.testing.assert_array_equal(results, wend.function(fun, backend="numpy")(x, x))


def test_a_graph_that_never_ends_its_results_says_what_waits():
    graph = traced(two_stages, 0.5)
    plan = Plan(lower(graph))
    plan.starting = []  # the constants
    with pytest.raises(GraphError, match=r"no result: .* waits for values that never come"):
        Executor(plan).run([np.float64(0.5)])


def test_it_is_a_backend_of_functions():
    fun = wend.function(two_stages, backend="dataflow")
    expected = wend.function(two_stages, backend="numpy")(0.5)
    np.testing.assert_allclose(fun(0.5), expected, rtol=1e-14)
    gradient = wend.grad(lambda x: two_stages(x)[1])
    with wend.config(backend="dataflow"):
        found = gradient(0.5)
    with wend.config(backend="numpy"):
        np.testing.assert_allclose(found, gradient(0.5), rtol=1e-12)


def test_changed_arguments_are_written_back_where_it_fails():
    def fun(x, i):
        x[0] = 5.0
        x[1] = x[i]
        x[2] = 7.0
        return x[0]

    for backend in ("numpy", "dataflow"):
        x = np.arange(3.0)
        with pytest.raises(IndexError), wend.config(backend=backend):
            wend.function(fun)(x, np.int64(9))
        np.testing.assert_array_equal(x, [5.0, 1.0, 2.0])
