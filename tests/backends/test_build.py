"""What runs of graphs with assignments leave behind, on each backend."""

from __future__ import annotations

import numpy as np
import pytest

import wend
from wend.backends.build import StoresInRun, executable
from wend.passes.pipeline import LazyOptimized


def graph_of(fun, *args):
    return wend.function(fun).get_concrete_function(*args).graph


def test_graphs_without_assignments_are_as_they_are():
    run = executable("numpy", LazyOptimized(graph_of(lambda x: x + 1.0, 1.0)))
    assert not isinstance(run, StoresInRun)
    assert [*run([np.float64(2.0)])] == [3.0]


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_what_a_run_gives(backend):
    v = wend.Variable(1.0)
    run = executable(backend, LazyOptimized(graph_of(lambda x: v.assign_add(x) * 2.0, 1.0)))
    assert [*run([np.float64(2.0), np.float64(5.0)])] == [14.0, 7.0]
    assert v.value == 7.0


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_what_a_run_that_fails_leaves(backend):
    v = wend.Variable(0.0)
    graph = graph_of(
        lambda x: (v.assign(x), wend.assert_(x < 0.0, "no"), v.assign(9.0))[0] + 0.0, 1.0
    )
    run = executable(backend, LazyOptimized(graph))
    with pytest.raises(AssertionError, match="no"):
        run([np.float64(5.0), None, np.float64(0.0)])
    assert v.value == 5.0
    run([np.float64(-5.0), None, np.float64(0.0)])
    assert v.value == 9.0


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_what_is_stored_stays_what_it_is(backend):
    """An array that is stored is used on, by several: whoever is last gives it up, nobody twice."""
    v = wend.Variable(np.zeros(40))

    def fun(x, n):
        total = v + 0.0
        for _ in range(n):
            v.assign(v + x)
            inside = v * 2.0
            total = total + inside + v
        return total, v + x, x * x

    run = wend.function(fun, backend=backend)
    x, held = np.arange(40.0), np.zeros(40)
    for n in (3, 0, 5):
        expected = held.copy()
        for _ in range(n):
            held = held + x
            expected = expected + held * 2.0 + held
        for found, wanted in zip(run(x, n), (expected, held + x, x * x), strict=True):
            np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(v.value, held)
