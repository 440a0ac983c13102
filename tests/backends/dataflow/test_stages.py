"""Which loops are run in parts, and which are one compiled task."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.helpers.graphs import traced

import wend
from wend.backends.dataflow.backend import DataflowBackend
from wend.backends.dataflow.executor import Executor
from wend.backends.dataflow.lower import lower
from wend.backends.dataflow.normal_form import prepare
from wend.backends.dataflow.plan import Plan
from wend.backends.dataflow.stages import collapse, gains
from wend.backends.native.backend import BACKEND as NATIVE
from wend.passes.pipeline import OPTIMIZE, run_passes


def two_stages(h: Any, g: Any, a: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        return np.tanh(c[0] @ a), np.tanh(c[1] @ a + c[0])

    return wend.fori_loop(0, 6, body, (h, g))


def one_stage(h: Any, g: Any, a: Any) -> Any:
    """Each of the two needs the other."""

    def body(i: Any, c: Any) -> Any:
        return np.tanh(c[1] @ a), np.tanh(c[0] @ a)

    return wend.fori_loop(0, 6, lambda i, c: body(i, body(i, c)), (h + g, g))


def squares(h: Any, g: Any, a: Any) -> Any:
    return (h @ a) + (g @ a)


def chain(h: Any, g: Any, a: Any) -> Any:
    return ((h @ a) @ g) @ a


SIZE = 160
LARGE = [np.random.default_rng(k).standard_normal((SIZE, SIZE)) / 20 for k in range(3)]
SMALL = [x[:3, :3] for x in LARGE]


@pytest.mark.parametrize(
    ("fun", "size", "expected"),
    [
        (two_stages, LARGE, True),
        (two_stages, SMALL, False),
        (squares, LARGE, True),
        (squares, SMALL, False),
        (chain, LARGE, False),
        (lambda h, g, a: wend.fori_loop(0, 3, lambda i, v: np.tanh(v @ a), h), LARGE, False),
        (lambda h, g, a: wend.grad(lambda a: two_stages(h, g, a)[1].sum())(a), LARGE, True),
    ],
)
def test_what_gains(fun: Any, size: Any, expected: bool):
    graph = prepare(run_passes(traced(fun, *size), OPTIMIZE))
    assert gains(graph) == expected


def test_two_carries_that_need_each_other_are_one_stage():
    def body(i: Any, c: Any, a: Any) -> Any:
        h = np.tanh(c[1] @ a)
        return h, np.tanh(h @ a)

    fun = lambda h, g, a: wend.fori_loop(0, 6, lambda i, c: body(i, c, a), (h, g))  # noqa: E731
    assert not gains(prepare(traced(fun, *LARGE)))


class Tasks(Executor):
    """Counts the tasks that run at once."""

    most = 0

    def _start(self, plan: Any, iteration: Any, inputs: Any) -> None:
        super()._start(plan, iteration, inputs)
        self.most = max(self.most, self.running)


def test_stages_of_two_trips_run_at_once():
    graph = traced(two_stages, *LARGE)
    counts = []
    for limit in (1, 2):
        run = Tasks(Plan(lower(graph), limit))
        results = run.run(LARGE)
        counts.append(run.most)
    expected = wend.function(two_stages, backend="numpy")(*LARGE)
    np.testing.assert_allclose(results, expected, rtol=1e-12)
    assert counts[1] >= 2


def test_a_loop_that_gains_nothing_is_one_node():
    def fun(h: Any, g: Any, a: Any, n: Any) -> Any:
        k = wend.while_loop(lambda v: v < n, lambda v: 1.5 * v, 1.0)
        return two_stages(h, g, a)[1] * k

    graph = prepare(traced(fun, *LARGE, 9.0))
    collapsed = collapse(graph, NATIVE.compile)
    names = [node.op.name for node in collapsed.nodes]
    assert (names.count("cluster"), names.count("while")) == (1, 1)
    backend = DataflowBackend()
    backend.use_cluster_compiler(NATIVE.compile)
    (found,) = backend.compile(traced(fun, *LARGE, 9.0))([*LARGE, np.float64(9.0)])
    expected = wend.function(fun, backend="numpy")(*LARGE, 9.0)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_what_gains_nothing_at_all_is_compiled_as_a_whole():
    def root(a: Any) -> Any:
        return wend.while_loop(lambda x: np.abs(x * x - a) > 1e-12, lambda x: (x + a / x) / 2, a)

    compiled = []
    backend = DataflowBackend()
    backend.use_cluster_compiler(lambda graph: compiled.append(graph) or NATIVE.compile(graph))
    graph = traced(root, 2.0)
    np.testing.assert_allclose(backend.compile(graph)([np.float64(2.0)]), [2**0.5])
    assert compiled == [graph]


def test_effects_of_a_compiled_loop_stay_in_order(capfd: pytest.CaptureFixture[str]):
    def fun(h: Any, g: Any, a: Any) -> Any:
        wend.print("before")

        def body(i: Any, v: Any) -> Any:
            wend.print("trip", i)
            return v + 1.0

        k = wend.fori_loop(0, 2, body, 0.0)
        wend.print("after")
        return two_stages(h, g, a)[0] + k

    wend.function(fun, backend="dataflow")(*LARGE)
    assert capfd.readouterr().out == "before\ntrip 0\ntrip 1\nafter\n"
