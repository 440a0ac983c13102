"""Loops in two stages: which ones, the bits of one trip after the other, errors, signals."""

from __future__ import annotations

import _thread
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.backends.native.fusion.test_concurrent_nodes import SIZE, bits, calls, on_threads, text
from tests.helpers.graphs import traced

import wend
from wend.backends.build import passes_of
from wend.backends.native.fusion import loop_stages
from wend.backends.native.fusion.concurrent_nodes import group_concurrent_nodes
from wend.backends.native.fusion.pipeline_loops import PipelinedLoop, pipeline_loops
from wend.ir.graph import Node
from wend.ir.verify import verify
from wend.ops.control import WhileParts, while_
from wend.passes.pipeline import run_passes

RANDOM = np.random.default_rng(6)
A, B = (RANDOM.normal(size=(SIZE, SIZE)) / SIZE**0.5 for _ in range(2))
TRIPS = [0, 1, 2, 3, 8]


def two(h: Any, g: Any, n: Any) -> Any:
    for _ in range(n):
        h = np.tanh(h @ A)
        g = np.tanh((g + h) @ B)
    return h, g


def three(h: Any, g: Any, n: Any) -> Any:
    f = g
    for _ in range(n):
        h = np.tanh(h @ A)
        g = np.tanh((g + h) @ B)
        f = np.tanh((f - g) @ A)
    return h, g, f


def with_numbers(h: Any, g: Any, n: Any) -> Any:
    """Both stages read the counter, the old and the new value of what crosses, and a number."""
    k, total = 0, 0.0
    while k < n:
        old, h = h, np.tanh(h @ A) * (1.0 + k)
        g = np.tanh((g + h * 0.5 - old) @ B) + k
        total = total + g.sum()
        k = k + 1
    return h, g, total, k


def until_small(h: Any, g: Any, n: Any) -> Any:
    """The first stage decides how many trips there are."""
    while np.abs(h).sum() > 10.0 * n:
        h = h @ A * 0.5
        g = np.tanh((g + h) @ B)
    return h, g


def only_results(h: Any, g: Any, n: Any) -> Any:
    """Nothing of the second stage is carried on but to itself, and it has a loop."""
    for _ in range(n):
        h = np.tanh(h @ A)
        x = h[0, 0]
        for _ in range(40_000):
            x = np.sin(x) + 0.5
        g = g * 0.5 + x
    return h, g


PROGRAMS = [two, three, with_numbers, until_small, only_results]


def pipelined(fun: Callable[..., Any], *args: Any) -> list[Node]:
    """The loops that are pipelined; the graphs before and after are checked."""
    graph = run_passes(traced(fun, *args), passes_of("native"))
    loops: list[PipelinedLoop] = []
    verify(pipeline_loops(graph, loops))
    return [x.loop for x in loops if x.reason is None]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("n", TRIPS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_bits_of_one_trip_after_the_other(program: Callable[..., Any], n: int) -> None:
    one, several, many = on_threads(program, A, B, n)
    assert bits(one) == bits(several) == bits(many)
    for x, y in zip(several, program(A, B, n), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("program", PROGRAMS)
def test_stages_run_at_once(program: Callable[..., Any]) -> None:
    assert len(pipelined(program, A, B, 8)) == 1
    assert calls(program, A, B, 8) == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n", TRIPS)
def test_backward_loop(n: int) -> None:
    def slope(h: Any, g: Any) -> Any:
        return wend.grad(lambda h, g: (two(h, g, n)[1] ** 2).sum(), argnums=(0, 1))(h, g)

    one, several, many = on_threads(slope, A, B)
    assert bits(one) == bits(several) == bits(many)
    if n > 1:
        assert len(pipelined(slope, A, B)) == 2  # the loop that keeps lists, and the backward one
        step, along = 1e-6, B
        difference = (two(A + step * along, B, n)[1] ** 2).sum() - (
            two(A - step * along, B, n)[1] ** 2
        ).sum()
        np.testing.assert_allclose((several[0] * along).sum(), difference / (2 * step), rtol=1e-5)


def test_loops_that_stay_as_they_are() -> None:
    def one_stage(h: Any, g: Any) -> Any:
        for _ in range(8):
            h = np.tanh((h + g) @ A)
            g = np.tanh((g + h) @ B)
        return h, g

    def independent(h: Any, g: Any) -> Any:
        for _ in range(8):
            h, g = np.tanh(h @ A), np.tanh(g @ B + h)
        return h, g

    def short(h: Any, g: Any) -> Any:
        for _ in range(8):
            h = np.tanh(h @ A[:4, :4])
            g = np.tanh((g + h) @ B[:4, :4])
        return h, g

    def in_order(h: Any, g: Any) -> Any:
        def body(carry: Any) -> Any:
            k, h, g = carry
            h = wend.numpy.tanh(h @ A)
            return k + 1, h, wend.numpy.tanh((g + h) @ B)

        return wend.while_loop(lambda c: c[0] < 8, body, (0, h, g), parallel_iterations=1)

    for fun in (one_stage, independent, in_order):
        assert not pipelined(fun, A, B)
    assert not pipelined(short, A[:4, :4], B[:4, :4])
    assert calls(independent, A, B) == 1  # its products need nothing of the same trip


def test_explain_names_the_loop() -> None:
    with wend.config(threads=2):
        f = wend.function(two, backend="native")
        f(A, B, 8)
        assert "in two stages, the second a trip behind the first" in str(f.explain())


def looped(body: Callable[..., Any], trips: Any = 8) -> Callable[..., Any]:
    """A function of arrays that makes trips of `body`, and asks that they overlap."""

    def run(*arrays: Any) -> Any:
        def step(carry: Any) -> Any:
            return (carry[0] + 1, *body(*carry))

        return wend.while_loop(lambda c: c[0] < trips, step, (0, *arrays), parallel_iterations=4)

    return run


def _one_stage(k: Any, h: Any, g: Any) -> Any:
    h = np.tanh((h + g) @ A)
    return h, np.tanh((g + h) @ B)


def _short(k: Any, h: Any, g: Any) -> Any:
    return h * 2.0, np.tanh((g + h) @ B)


def _independent(k: Any, h: Any, g: Any) -> Any:
    return np.tanh(h @ A), np.tanh((g + h) @ B)


def _in_both(k: Any, h: Any, g: Any) -> Any:
    g = np.linalg.solve(np.eye(SIZE) * (k + 1.0), g)
    h = np.linalg.cholesky(np.eye(SIZE) * (k + 1.0)) + h
    return h, np.tanh((g + h) @ B)


def _with_effect(k: Any, h: Any, g: Any) -> Any:
    print(k)
    h = np.tanh(h @ A)
    return h, np.tanh((g + h) @ B)


def _summed(k: Any, h: Any, g: Any) -> Any:
    h = np.tanh(h @ A)
    return h, np.tanh((g + np.tanh(h).sum(0)) @ B)


WHY_NOT = [
    (_one_stage, loop_stages.ONE_STAGE),
    (_short, loop_stages.LITTLE_WORK),
    (_independent, loop_stages.INDEPENDENT),
    (_in_both, loop_stages.CHECK_IN_BOTH),
    (_with_effect, loop_stages.EFFECT),
    (_summed, loop_stages.SUMS),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("body", "reason"), WHY_NOT)
def test_explain_says_why_a_loop_is_not_pipelined(body: Callable[..., Any], reason: str) -> None:
    with wend.config(threads=2):
        f = wend.function(looped(body), backend="native")
        f.get_concrete_function(A, B)
        f(A, B)
        said = str(f.explain())
    assert f"a trip at a time, despite parallel_iterations=4: {reason}" in said


def test_explain_says_that_sizes_are_unknown() -> None:
    def body(k: Any, h: Any, g: Any) -> Any:
        h = np.tanh(h @ A)
        return h, np.tanh((g + h) @ B)

    spec = wend.TensorSpec((None, SIZE), np.float64)
    with wend.config(threads=2):
        f = wend.function(looped(body), backend="native", input_signature=[spec, spec])
        f(A, B)
        assert f"parallel_iterations=4: {loop_stages.UNKNOWN_SIZES}" in str(f.explain())


def test_lists_that_loops_shorten() -> None:
    def run(h: Any, g: Any, n: Any) -> Any:
        kept = [h]
        for _ in range(n):
            kept.append(h)
            h = np.tanh(h @ A)
            g = np.tanh((g + h) @ B + kept.pop())
            kept.append(g)
        return kept[-1]

    graph = run_passes(traced(run, A, B, 8), passes_of("native"))
    (loop,) = (node for node in graph.nodes if node.op is while_)
    assert loop_stages.stages_of(WhileParts.of(loop)) == loop_stages.LISTS


@pytest.mark.parametrize("given", [2, 10])
def test_memory_does_not_depend_on_trips(given: int) -> None:
    """One record is between the stages, whatever `parallel_iterations` is."""

    def run(h: Any, g: Any, n: Any) -> Any:
        def body(carry: Any) -> Any:
            k, h, g = carry
            h = np.tanh(h @ A)
            return k + 1, h, np.tanh((g + h) @ B)

        start = (0, h, g)
        return wend.while_loop(lambda c: c[0] < n, body, start, parallel_iterations=given)[2]

    assert len(pipelined(run, A, B, 8)) == 1
    with wend.config(threads=2):
        f = wend.function(run, backend="native")
        f(A, B, 8)
        (execute,) = f.get_concrete_function(A, B, 8).compiled.executables()
        held = []
        for trips in (4, 40):
            f(A, B, trips)
            held.append(execute.held_memory()["arrays"])
    assert held[0] == held[1]
    # Of each stage a carry, what is next, and what crosses, in the pools of three functions
    assert held[1] < 16 * A.nbytes


def test_loops_that_did_not_ask_are_not_mentioned() -> None:
    def run(h: Any, g: Any) -> Any:
        for _ in range(8):
            h = np.tanh((h + g) @ A)
        return h

    with wend.config(threads=2):
        f = wend.function(run, backend="native")
        f(A, B)
        assert "a trip at a time" not in str(f.explain())


def _steps(pairs: int) -> int:
    """How many lines of Python run to find the stages of a loop of pairs of products."""

    def body(k: Any, *arrays: Any) -> Any:
        hs = [np.tanh(h @ A) for h in arrays[:pairs]]
        gs = [(g + h) @ B for g, h in zip(arrays[pairs:], hs, strict=True)]
        return (*hs, *gs)

    graph = run_passes(traced(looped(body), *[A] * (2 * pairs)), passes_of("native"))
    (loop,) = (node for node in graph.nodes if node.op is while_)
    steps = 0

    def count(frame: Any, event: str, argument: Any) -> Any:
        nonlocal steps
        steps += event == "line"
        return count

    previous = sys.gettrace()
    sys.settrace(count)
    try:
        stages = loop_stages.stages_of(WhileParts.of(loop))
    finally:
        sys.settrace(previous)
    assert isinstance(stages, loop_stages.Stages)
    return steps


def test_stages_are_found_in_linear_time() -> None:
    assert _steps(48) < 2.2 * _steps(24)


def kept(h: Any, g: Any, n: Any) -> Any:
    """Both stages push to lists of their own, before and after what they compute."""
    hs, gs, k = [], [], 0
    while k < n:
        hs.append(h)
        h = np.tanh(h @ A)
        g = np.tanh((g + h) @ B)
        gs.append(g)
        k = k + 1
    total = np.zeros((SIZE, SIZE))
    for j in range(n):
        total = total * 0.5 + hs[j] - gs[j] * 2.0
    return h, g, total


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n", TRIPS)
def test_lists_of_both_stages(n: int) -> None:
    assert len(pipelined(kept, A, B, n)) == 1
    one, several, many = on_threads(kept, A, B, n)
    assert bits(one) == bits(several) == bits(many)
    for x, y in zip(several, kept(A, B, n), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)


def test_each_stage_pushes_to_its_own_arena() -> None:
    """So a list always ends its arena, where a push copies nothing."""

    def slope(h: Any, g: Any) -> Any:
        return wend.grad(lambda h, g: (two(h, g, 8)[1] ** 2).sum(), argnums=(0, 1))(h, g)

    assert len(pipelined(slope, A, B)) == 2
    code = text(slope, A, B)
    assert [f"%arena{k}.fill" in code for k in range(3)] == [True, True, False]


def test_second_derivatives() -> None:
    def curvature(h: Any, g: Any) -> Any:
        def slope(h: Any) -> Any:
            return (wend.grad(lambda h: (two(h, g, 3)[1] ** 2).sum())(h) * B).sum()

        return wend.grad(slope)(h)

    one, several, _ = on_threads(curvature, A, B)
    assert bits(one) == bits(several)
    expected = wend.function(curvature, backend="numpy")(A, B)
    np.testing.assert_allclose(several, expected, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_first_trip_that_fails_decides_the_error(count: int) -> None:
    """The first stage fails in trip `i`, the second in trip `j`, each with words of its own."""
    eye = np.eye(SIZE)

    def fail(h: Any, g: Any, i: Any, j: Any) -> Any:
        for k in range(6):
            h = np.linalg.cholesky(eye * (1.0 - 2.0 * (k == i))) + h
            g = np.linalg.solve(eye * (1.0 - (k == j)), g + h)
        return h, g

    assert len(pipelined(fail, A, B, 1, 2)) == 1
    words = {"first": "positive definite", "second": "Singular"}
    with wend.config(threads=count):
        f = wend.function(fail, backend="native")
        expected = bits(f(A, B, 9, 9))
        for i, j in [(0, 0), (0, 3), (2, 0), (2, 1), (2, 2), (2, 3), (9, 0), (9, 5), (5, 9)]:
            stage = "first" if i <= j else "second"
            with pytest.raises(np.linalg.LinAlgError, match=words[stage]):
                f(A, B, i, j)
            assert bits(f(A, B, 9, 9)) == expected


def test_sums_of_the_second_stage_have_the_bits_of_one_thread() -> None:
    """A sum in the loop that computes its elements adds them in another order than one alone."""

    def summed(h: Any, g: Any) -> Any:
        total = 0.0
        for _ in range(3):
            h = np.tanh(h @ A)
            total = total + h.sum()
            g = np.tanh((g + h) @ B)
        return h, g, total

    one, *others = map(bits, on_threads(summed, A, B))
    assert all(x == one for x in others)


@pytest.mark.parametrize("count", [1, 3])
def test_the_first_node_of_a_trip_that_fails_decides_the_error(count: int) -> None:
    """What only the second stage needs stands before the first stage, and may fail."""
    eye = np.eye(SIZE)

    def fail(h: Any, g: Any, i: Any, j: Any) -> Any:
        for k in range(4):
            g = np.linalg.solve(eye * (1.0 - (k == j)), g)
            h = np.linalg.cholesky(eye * (1.0 - 2.0 * (k == i))) + h
            g = np.tanh((g + h) @ B)
        return h, g

    assert not pipelined(fail, A, B, 1, 1)
    with wend.config(threads=count):
        f = wend.function(fail, backend="native")
        for i, j, words in [(0, 0, "Singular"), (2, 2, "Singular"), (1, 2, "positive definite")]:
            with pytest.raises(np.linalg.LinAlgError, match=words):
                f(A, B, i, j)


def test_signals_end_a_pipelined_loop() -> None:
    with wend.config(threads=2):
        f = wend.function(two, backend="native")
        expected = bits(f(A, B, 3))
        timer = threading.Timer(0.3, _thread.interrupt_main)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            f(A, B, 10**12)
        timer.join()
        assert bits(f(A, B, 3)) == expected


def test_variables_are_changed_trip_by_trip() -> None:
    """A loop with effects is not split, so they are those of the trips before an error."""
    count = wend.Variable(0)
    eye = np.eye(SIZE)

    def fail(h: Any, g: Any, j: Any) -> Any:
        for k in range(6):
            h = np.tanh(h @ A)
            g = np.linalg.solve(eye * (1.0 - (k == j)), g + h)
            count.assign_add(1)
        return h, g

    stored = []
    for backend in ("native", "numpy"):
        count.assign(0)
        with wend.config(threads=2), pytest.raises(np.linalg.LinAlgError):
            wend.function(fail, backend=backend)(A, B, 4)
        stored.append(int(count.value))
    assert stored[0] == stored[1]


def test_grouping_of_the_pipelined_graph_is_sound() -> None:
    graph = run_passes(traced(two, A, B, 8), passes_of("native"))
    grouped, tasks = group_concurrent_nodes(pipeline_loops(graph, []), 0)
    assert grouped.count("concurrent_call") == 1
    assert [task.body.name for task in tasks] == ["dot_general", "dot_general"]
