"""A call that a signal handler interrupts leaves what the completed trips have written."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import wend
from wend.ops.control import WhileParts, while_
from wend.ops.frame_states import last_needs

FOREVER = 10**12
DELAY = 0.15  # seconds


class Interruption(Exception):
    """What the handler raises."""


@contextmanager
def interrupted() -> Iterator[None]:
    """Interrupt what runs in the block."""

    def handle(*args: object) -> None:
        raise Interruption

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, DELAY)
    try:
        with pytest.raises(Interruption):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def interrupt(program: Callable[..., Any], backend: str, *arguments: Any, few: float = 3) -> None:
    """Call a program with few trips, then interrupt it with many."""
    with wend.config(backend=backend):
        function = wend.function(program)
        function(*(x.copy() if isinstance(x, np.ndarray) else x for x in arguments), few)
        with interrupted():
            function(*arguments, type(few)(FOREVER))  # of the same trace


def one_element(x, y, n):
    for k in range(n):
        x[0] = k + 1.0
        y[0] = k + 1.0


def positions_that_may_fail(x, y, n):
    for k in range(n):
        x[k % 5] = k + 1.0
        y[k % 5] = x[k % 5]


def nested(x, y, n):
    for _ in range(n):
        x[0] += 1.0
        for i in range(1, 5):
            x[i] = x[i - 1]
        y[:] = x


def by_while(x, y, n):
    k = 0
    while k < n:
        k += 1
        x += 1.0
        y += 1.0


def in_a_branch(x, y, n):
    for k in range(n):
        if k % 2 == 0:
            x[1:] = k + 1.0
            y[1:] = k + 1.0


def by_masks(x, y, n):
    for k in range(n):
        x[x < k] = k
        y[y < k] = k


def in_a_callee(x, y, n):
    for k in range(n):
        _change(x, y, k)


@wend.function
def _change(x, y, k):
    x[k % 5] = k
    y[k % 5] = k


def before_the_loop(x, y, n):
    x[:] = 5.0
    y[:] = 5.0
    for _ in range(n):
        x[1:] += 1.0
        y[1:] += 1.0


PROGRAMS = [
    before_the_loop,
    one_element,
    positions_that_may_fail,
    nested,
    by_while,
    in_a_branch,
    by_masks,
    in_a_callee,
]


@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_completed_trips_stay(program: Callable[..., Any], backend: str) -> None:
    """Both arrays, as whole trips or statements leave them: `x` is written before `y`."""
    x, y = np.zeros(5), np.zeros(5)
    interrupt(program, backend, x, y)
    assert x.max() > 3
    assert np.all((x == y) | (x > y))
    assert x.max() - y.max() <= 1


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_what_was_written_before_a_loop_stays(backend: str) -> None:
    def program(x, n):
        x[1] = 7.0
        total = 0.0
        while total < n:
            total = total * 0.5 + 1.0
        x[2] = total

    x = np.zeros(3)
    interrupt(program, backend, x, few=1.5)
    np.testing.assert_array_equal(x, [0.0, 7.0, 0.0])


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_a_test_that_writes(backend: str) -> None:
    """What stood before the loop stays, at least: no statement is seen by half."""

    def program(x, y, n):
        x[:] = 5.0
        y[:] = 6.0

        def bump():
            x[0] += 1.0
            return x[0]

        while bump() < n:
            y[1] += 1.0

    x, y = np.zeros(3), np.zeros(3)
    interrupt(program, backend, x, y)
    assert x[1] == 5.0
    assert y[0] == 6.0
    assert 0 <= (x[0] - 5) - (y[1] - 6) <= 1


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_what_a_finished_loop_has_written_stays(backend: str) -> None:
    def program(x, n):
        for k in range(100):
            x[0] = k
        total = np.zeros(400)
        while total[0] < n:
            total = np.sort(np.sin(total))
        return total

    x = np.zeros(2)
    interrupt(program, backend, x, few=0.0)
    assert x[0] == 99


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_containers(backend: str) -> None:
    def program(x, counts, n):
        for k in range(n):
            x[0] = k + 1.0
            counts["trips"] = counts["trips"] + 1.0

    x, counts = np.zeros(2), {"trips": np.float64(0.0)}
    with wend.config(backend=backend):
        function = wend.function(program)
        function(x, counts, 3)
        with interrupted():
            function(x, counts, FOREVER)
    assert x[0] > 3
    assert 0 <= x[0] + 3 - counts["trips"] <= 1


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_scans(backend: str) -> None:
    def program(x, rows):
        def step(carry, row):
            x[0] += row[0]
            inner = 0.0
            while inner < row[1]:
                inner = inner * 0.5 + 1.0
            return carry + inner, None

        return wend.scan(step, 0.0, rows)[0]

    rows = np.ones((4, 2))
    x = np.zeros(1)
    with wend.config(backend=backend):
        function = wend.function(program)
        function(x.copy(), rows)
        rows[2, 1] = 3.0  # an endless trip
        with interrupted():
            function(x, rows)
    assert x[0] in (2.0, 3.0)


def test_a_loop_whose_body_tells_the_contents_does_not_need_those_before_it() -> None:
    """What a row was before is dead where the loop over it begins, so it changes in place."""

    def rows(x):
        for i in range(1, x.shape[0]):
            x[i, 1:] += x[i - 1, :-1]
            for j in range(1, x.shape[1]):
                x[i, j] += x[i, j - 1]

    graph = wend.function(rows).get_concrete_function(np.ones((4, 5))).graph
    (outer,) = (node for node in graph.nodes if node.op is while_)
    body = WhileParts.of(outer).after
    (loop,) = (k for k, node in enumerate(body.nodes) if node.op is while_)
    assert all(position < loop for position in last_needs(body))
