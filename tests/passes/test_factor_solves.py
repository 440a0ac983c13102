"""Solves share factors: with other solves, with other trips of a loop, and with derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
from tests.helpers.differences import central_differences
from tests.helpers.graphs import traced
from wend.autodiff.jvp import jvp
from wend.autodiff.vjp import joint
from wend.ir.graph import Graph
from wend.ops.control import call, while_
from wend.passes.pipeline import OPTIMIZE, run_passes

RNG = np.random.default_rng(0)
A = RNG.normal(size=(9, 9)) + 9.0 * np.eye(9)
B = RNG.normal(size=9)
BACKENDS = "numpy", "native", "dataflow"


def counts(graph: Graph) -> dict[str, int]:
    """Count the operations of linear systems in a graph, each shared callee once."""
    graphs, pending = {graph: None}, [graph]
    for g in pending:
        inner = [region for node in g.nodes for region in node.regions if region not in graphs]
        graphs.update(dict.fromkeys(inner))
        pending += inner
    names = [node.op.name for g in graphs for node in g.nodes]
    return {x: names.count(x) for x in ("solve", "lu_factor", "lu_solve") if x in names}


def in_loops(graph: Graph) -> set[str]:
    loops = [x for x in graph.walk() if x.op is while_]
    return {x.op.name for loop in loops for region in loop.regions for x in region.walk()}


def optimized(graph: Graph) -> Graph:
    return run_passes(graph, OPTIMIZE)


def gradient(fun: Any, *args: Any) -> Graph:
    graph = traced(fun, *args)
    return optimized(joint(graph, range(len(graph.params)), 0)[0])


def one(a: Any, b: Any) -> Any:
    return np.sum(np.sin(np.linalg.solve(a, b)))


def two(a: Any, b: Any) -> Any:
    return np.sum(np.linalg.solve(a, b) * np.linalg.solve(a, b * b))


def steps(a: Any, b: Any) -> Any:
    x = b
    for _ in range(5):
        x = np.tanh(np.linalg.solve(a, x)) + b
    return np.sum(x)


def until(a: Any, b: Any) -> Any:
    x, k = b, 0
    while np.sum(x * x) > 0.5 and k < 7:
        x = np.linalg.solve(a @ a.T + np.eye(len(b)), x) + 0.1 * b
        k += 1
    return np.sum(x)


def changing(a: Any, b: Any) -> Any:
    x = b
    for _ in range(3):
        x = np.linalg.solve(a + np.diag(x), b)
    return np.sum(x)


@wend.function
def inner(a: Any, b: Any) -> Any:
    return np.linalg.solve(a, b)


def calls(a: Any, b: Any) -> Any:
    return np.sum(inner(a, inner(a, b)))


PROGRAMS = [one, two, steps, until, changing, calls]


def test_one_solve_stays_whole() -> None:
    assert counts(traced(one, A, B, optimize=True)) == {"solve": 1}
    assert counts(traced(changing, A, B, optimize=True)) == {"solve": 1}


def test_solves_with_one_matrix_share_its_factors() -> None:
    assert counts(traced(two, A, B, optimize=True)) == {"lu_factor": 1, "lu_solve": 2}


@pytest.mark.parametrize("fun", [steps, until])
def test_factors_that_no_trip_changes_are_computed_once(fun: Any) -> None:
    graph = traced(fun, A, B, optimize=True)
    assert counts(graph) == {"lu_factor": 1, "lu_solve": 1}
    assert "lu_factor" not in in_loops(graph)


@pytest.mark.parametrize(("fun", "solves"), [(one, 2), (two, 4), (steps, 2), (until, 2)])
def test_a_gradient_factors_no_matrix_twice(fun: Any, solves: int) -> None:
    graph = gradient(fun, A, B)
    assert counts(graph) == {"lu_factor": 1, "lu_solve": solves}
    assert "lu_factor" not in in_loops(graph)


def test_trips_record_the_factors_of_matrices_that_they_change() -> None:
    assert counts(gradient(changing, A, B)) == {"lu_factor": 1, "lu_solve": 2}
    assert counts(gradient(changing, A[:8, :8], B[:8])) == {"solve": 2}  # small ones are not kept


def test_stacks_are_solved_whole() -> None:
    stack = np.stack([A, A])
    assert counts(gradient(lambda a, b: np.sum(np.linalg.solve(a, b)), stack, A)) == {"solve": 2}


def test_a_second_derivative_factors_no_matrix_twice() -> None:
    graph = traced(lambda a, b: np.sum(wend.grad(one)(a, b) ** 2), A, B)
    second = optimized(joint(graph, range(2), 0)[0])
    assert counts(second)["lu_factor"] == 1
    tangents = optimized(jvp(traced(one, A, B), (0, 1)).graph)
    assert counts(tangents) == {"lu_factor": 1, "lu_solve": 2}


def test_callees_stay_shared() -> None:
    graph = gradient(calls, A, B)
    assert call not in graph.ops or counts(graph)["lu_factor"] == 1


def test_complex_systems_are_solved_whole() -> None:
    assert counts(gradient(lambda a, b: np.sum(abs(np.linalg.solve(a * 1j, b))), A, B)) == {
        "solve": 2
    }


@pytest.mark.sampled(4)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("fun", PROGRAMS)
def test_values_and_derivatives(fun: Any, backend: str) -> None:
    with wend.config(backend=backend):
        np.testing.assert_allclose(wend.function(fun)(A, B), fun(A, B), rtol=1e-12)
        grads = wend.function(wend.grad(fun, (0, 1)))
        for k, grad in enumerate(grads(A, B)):
            slope = central_differences(fun, k, A, B, step=1e-6)
            np.testing.assert_allclose(grad, slope, rtol=1e-6, atol=1e-8)
        # A derivative of second order by either mode
        seed = RNG.normal(size=9)
        by_rows = wend.function(wend.jacfwd(wend.grad(fun, 1), 1))(A, B)
        by_columns = wend.function(wend.jacrev(wend.grad(fun, 1), 1))(A, B)
        np.testing.assert_allclose(by_rows, by_columns, rtol=1e-9, atol=1e-12)
        ends = [grads(A, B + step * seed)[1] for step in (1e-6, -1e-6)]
        np.testing.assert_allclose(by_rows @ seed, (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_trip_factors_nothing(backend: str) -> None:
    def f(a: Any, b: Any, n: int) -> Any:
        for _ in range(n):
            b = np.linalg.solve(a, b)
        return np.sum(b)

    with wend.config(backend=backend):
        for fun in (f, wend.value_and_grad(f, (0, 1))):
            compiled = wend.function(fun)
            compiled(np.zeros((3, 3)), np.ones(3), 0)
            with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
                compiled(np.zeros((3, 3)), np.ones(3), 2)
        assert not wend.function(wend.grad(f))(np.zeros((3, 3)), np.ones(3), 0).any()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("size", [9, 30])
@pytest.mark.parametrize("lower", [False, True])
def test_triangles_are_not_factored(size: int, lower: bool, backend: str) -> None:
    full = RNG.normal(size=(size, size)) + 2.0 * size * np.eye(size)
    a, b = (np.tril if lower else np.triu)(full), RNG.normal(size=size)

    def f(a: Any, b: Any) -> Any:
        x = np.linalg.solve(a, b)
        return np.sum(np.linalg.solve(a, np.sin(x)))

    with wend.config(backend=backend):
        np.testing.assert_allclose(wend.function(f)(a, b), f(a, b), rtol=1e-12)
        grads = wend.function(wend.grad(f, (0, 1)))(a, b)
        for k, grad in enumerate(grads):
            slope = central_differences(f, k, a, b, step=1e-6)
            np.testing.assert_allclose(grad, slope, rtol=1e-5, atol=1e-8)
        a[size // 2, size // 2] = 0.0
        with pytest.raises(np.linalg.LinAlgError):
            wend.function(f)(a, b)
