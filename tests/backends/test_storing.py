"""What runs of graphs with assignments leave behind, on each backend."""

from __future__ import annotations

import numpy as np
import pytest

import wend
from wend.backends.storing import Storing, executable


def graph_of(fun, *args):
    return wend.function(fun).get_concrete_function(*args).graph


def test_graphs_without_assignments_are_as_they_are():
    run = executable("numpy", graph_of(lambda x: x + 1.0, 1.0))
    assert not isinstance(run, Storing)
    assert [*run([np.float64(2.0)])] == [3.0]


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_what_a_run_gives(backend):
    v = wend.Variable(1.0)
    run = executable(backend, graph_of(lambda x: v.assign_add(x) * 2.0, 1.0))
    assert [*run([np.float64(2.0), np.float64(5.0)])] == [14.0, 7.0]
    assert v.value == 7.0


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_what_a_run_that_fails_leaves(backend):
    v = wend.Variable(0.0)
    graph = graph_of(
        lambda x: (v.assign(x), wend.assert_(x < 0.0, "no"), v.assign(9.0))[0] + 0.0, 1.0
    )
    run = executable(backend, graph)
    with pytest.raises(AssertionError, match="no"):
        run([np.float64(5.0), None, np.float64(0.0)])
    assert v.value == 5.0
    run([np.float64(-5.0), None, np.float64(0.0)])
    assert v.value == 9.0
