"""A thousand runs that end early: within a second, with no thread left and effects in order.

`make test-long` makes all of them.
"""

from __future__ import annotations

import _thread
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wend
from tests.helpers.threads import running
from wend.backends.dataflow.backend import DataflowBackend

TRIPS, RUNS = 8, 25
# Native code runs at once what takes long; the other backend runs everything so, as it is told to
SIZES = {"native": 110, "dataflow": 16}
NEVER = TRIPS + 1
# Seconds of the processor and of the clock; the machine may have other work
PATIENCE, LONG = 1.0, 20.0
KINDS = ["signal", "interrupt in a host call", "host call", "task", "other thread"]
RANDOM = np.random.default_rng(3)


class Program:
    """Trips with a host call, and a product and a linear system that run at once.

    Attributes:
        log: for each thread the numbers of the trips whose host call has run.
        raises: for each thread what its host call raises, and in which trip.
    """

    def __init__(self, backend: str) -> None:
        self.log: dict[int, list[int]] = {}
        self.raises: dict[int, tuple[int, type[BaseException]]] = {}
        self._size = n = SIZES[backend]
        self._args = [RANDOM.normal(size=(n, n)) / n**0.5 for _ in range(2)]
        if backend == "native":
            run = wend.function(self._program, backend="native")
            self.log[0] = []
            run(*self._args, NEVER)
            assert "runs at once" in str(run.explain())
            self._run: Any = lambda *xs: run(*xs)
        else:
            tokens = DataflowBackend(collapse=False, min_task=0.0)
            concrete = wend.function(self._program).get_concrete_function(*self._args, NEVER)
            execute = tokens.compile(concrete.graph)
            boundary = tokens.boundary
            self._run = lambda *xs: concrete.traced.run(execute, [*map(np.asarray, xs)], boundary)

    def _host(self, h: Any, k: Any) -> Any:
        caller = int(k) // 1000
        trip = int(k) % 1000
        self.log[caller].append(trip)
        stop, error = self.raises.get(caller, (NEVER, ValueError))
        if trip == stop:
            raise error("stop")
        return h

    def _program(self, a: Any, b: Any, fails: Any) -> Any:
        # The number of the caller is in that of the trip that fails
        first = fails // 1000 * 1000
        h, g = a, b
        for k in range(TRIPS):
            h = wend.py_function(self._host, wend.TensorSpec([self._size] * 2), h, first + k)
            left = np.linalg.solve(np.eye(self._size) * (1.0 - (first + k == fails)), g)
            h, g = np.tanh(h @ a), np.tanh(left + b)
        return h, g

    def run(self, fails: int, caller: int = 0) -> Any:
        """Run it; the linear system of a trip has no solution."""
        self.log[caller] = []
        return self._run(*self._args, np.int64(1000 * caller + fails))


def bits(results: Any) -> list[bytes]:
    return [np.asarray(x).tobytes() for x in results]


@pytest.fixture(autouse=True)
def alarms_interrupt() -> Iterator[None]:
    """A timer of the process does what Ctrl-C does."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield
    signal.signal(signal.SIGALRM, before)


def interrupted(run: Callable[[], Any], delay: float) -> None:
    """Run until a signal comes, which may be after its end."""
    with pytest.raises(KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, max(delay, 1e-6))
        run()
        for _ in range(1000):  # short ones: a signal just before a sleep does not end it
            time.sleep(0.01)


def in_two_threads(program: Program, at: int, expected: list[bytes]) -> None:
    """One of two calls fails in another thread, and the other does not notice."""
    errors: list[BaseException] = []

    def fail() -> None:
        try:
            program.run(at, caller=1)
        except np.linalg.LinAlgError as error:
            errors.append(error)

    other = threading.Thread(target=fail)
    other.start()
    assert bits(program.run(NEVER)) == expected
    other.join()
    assert len(errors) == 1
    assert program.log[1] == [*range(at + 1)]
    assert program.log[0] == [*range(TRIPS)]


def cancel(program: Program, kind: str, at: int, delay: float, expected: list[bytes]) -> None:
    """Make a run that ends early, and check what it has done until then."""
    match kind:
        case "signal":
            interrupted(lambda: program.run(NEVER), delay)
            assert program.log[0] == [*range(len(program.log[0]))]
        case "host call" | "interrupt in a host call":
            error = ValueError if kind == "host call" else KeyboardInterrupt
            program.raises[0] = at, error
            with pytest.raises(error):
                program.run(NEVER)
            del program.raises[0]
            assert program.log[0] == [*range(at + 1)]  # later ones do not run
        case "task":
            with pytest.raises(np.linalg.LinAlgError):
                program.run(at)
            assert program.log[0] == [*range(at + 1)]
        case _:
            in_two_threads(program, at, expected)


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("backend", ["native", "dataflow"])
@pytest.mark.parametrize("kind", KINDS)
def test_runs_that_end_early(kind: str, backend: str, seed: int) -> None:
    rng = random.Random(f"{kind} {backend} {seed}")
    with wend.config(threads=2):
        program = Program(backend)
        begun = time.perf_counter()
        expected = bits(program.run(NEVER))
        whole = time.perf_counter() - begun
        threads = _thread._count()
        for _ in range(RUNS):
            used, start = time.process_time(), time.monotonic()
            cancel(program, kind, rng.randrange(TRIPS), rng.uniform(0.0, whole), expected)
            assert time.process_time() - used < PATIENCE
            assert time.monotonic() - start < LONG
            assert running(expected=threads) == threads
        assert bits(program.run(NEVER)) == expected
