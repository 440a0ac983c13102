"""Branches give what all of them store in one place: values, errors and derivatives stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import wend
from tests.helpers.graphs import traced
from wend.ir.graph import Graph
from wend.ops import indexing, updating
from wend.ops.control import if_
from wend.passes.pipeline import OPTIMIZE, run_passes

SIZE = 6
BACKENDS = "numpy", "native"
CHOICES = np.array([0.3, -0.2, 0.9, -0.8, 0.1, 0.7])
WEIGHTS = np.cos(np.arange(SIZE))

# What a branch does, in order: an array, whether it is read, and where, from the number of the trip
ACTIONS = st.lists(st.tuples(st.integers(0, 1), st.booleans(), st.integers(-2, 1)), max_size=4)
BRANCHES = st.tuples(ACTIONS, ACTIONS, ACTIONS)
# Both arrays, in one place each
LAST = [(0, False, 0), (1, False, 0)]


def in_branches(branches: tuple[Any, ...], is_last: bool) -> Callable[..., Any]:
    """Return a program that changes two arrays by one of three branches in each trip."""
    each = [[*branch, *LAST] if is_last else branch for branch in branches]

    def run(actions: Any, arrays: Any, k: Any, total: Any) -> Any:
        for number, is_read, offset in actions:
            if is_read:
                total = total + np.sin(arrays[number][k + offset])
            else:
                arrays[number][k + offset] = 0.5 * total
        return total

    def program(y: Any, z: Any, choices: Any, start: Any) -> Any:
        arrays, total = (y, z), y[0] + 2.0 * z[1]
        for k in range(start, SIZE):
            if choices[k] > 0.5:
                total = run(each[0], arrays, k, total)
            elif choices[k] > 0.0:
                total = run(each[1], arrays, k, 0.7 * total)
            else:
                total = run(each[2], arrays, k, total + 0.1)
        return total

    return program


def outcome(fun: Callable[..., Any], *args: Any) -> Any:
    try:
        return fun(*args)
    except IndexError as error:
        return f"IndexError: {error}"


@given(branches=BRANCHES, is_last=st.booleans(), start=st.sampled_from([0, 2, SIZE]))
@example(([(0, True, -1)], [(0, True, -2)], [(1, True, 0)]), True, 2)
@example(([(0, False, 1)], [(0, False, 1)], [(0, False, 1)]), False, 2)
@settings(deadline=None)
def test_as_numpy(branches: tuple[Any, ...], is_last: bool, start: int) -> None:
    program = in_branches(branches, is_last)
    x = np.linspace(0.2, 1.1, SIZE)

    def weighted(x: Any) -> Any:
        y, z = 1.0 * x, x * x
        total = program(y, z, CHOICES, start)
        return total + (y * WEIGHTS).sum() - 3.0 * (z * WEIGHTS).sum()

    expected_y, expected_z = 1.0 * x, x * x
    expected = outcome(program, expected_y, expected_z, CHOICES, start)
    for backend in BACKENDS:
        with wend.config(backend=backend):
            y, z = 1.0 * x, x * x
            result = outcome(wend.function(program), y, z, CHOICES, start)
            np.testing.assert_allclose(y, expected_y, rtol=1e-14)
            np.testing.assert_allclose(z, expected_z, rtol=1e-14)
            if isinstance(expected, str):
                assert result == expected
                continue
            np.testing.assert_allclose(result, expected, rtol=1e-14)
            check_derivatives(weighted, x)


def check_derivatives(fun: Callable[..., Any], x: Any) -> None:
    """Compare derivatives along `WEIGHTS` with a complex step, and with differences."""
    moved = fun(x + 1e-30j * WEIGHTS).imag * 1e30
    gradient = wend.function(wend.grad(fun))
    np.testing.assert_allclose(gradient(x) @ WEIGHTS, moved, rtol=1e-11, atol=1e-11)
    step = 1e-4
    values = [fun(x + k * step * WEIGHTS) for k in (-1, 0, 1)]
    second = (values[0] - 2.0 * values[1] + values[2]) / step**2
    along = wend.function(lambda x: wend.jvp(gradient, (x,), (WEIGHTS,))[1] @ WEIGHTS)
    np.testing.assert_allclose(along(x), second, rtol=1e-4, atol=1e-5)
    twice = wend.function(wend.grad(lambda x: gradient(x) @ WEIGHTS))
    np.testing.assert_allclose(twice(x) @ WEIGHTS, along(x), rtol=1e-10, atol=1e-10)


def longest_common(a: Any, b: Any) -> Any:
    t = np.zeros((SIZE + 1, SIZE + 1))
    for i in range(SIZE):
        for k in range(SIZE):
            if a[i] == b[k]:
                t[i + 1, k + 1] = t[i, k] + 1.0
            else:
                t[i + 1, k + 1] = max(t[i, k + 1], t[i + 1, k])
    return t


def of_any_size(a: Any, b: Any) -> Any:
    n, m = a.shape[0], b.shape[0]
    t = np.zeros((n + 1, m + 1))
    for i in range(n):
        for k in range(m):
            if a[i] == b[k]:
                t[i + 1, k + 1] = t[i, k] + 1.0
            elif a[i] > b[k]:
                t[i + 1, k + 1] = t[i, k + 1]
            else:
                t[i + 1, k + 1] = t[i + 1, k]
    return t


def optimized(program: Callable[..., Any], *args: Any) -> Graph:
    return run_passes(traced(program, *args), OPTIMIZE)


def in_branches_of(graph: Graph, op: Any, rank: int = 1) -> int:
    """Return how many nodes in branches have an operation on arrays of a rank."""
    branches = [branch for node in graph.walk() if node.op is if_ for branch in node.regions]
    nodes = [node for branch in branches for node in branch.nodes if node.op is op]
    return sum(len(node.operands[0].tensor.dims) == rank for node in nodes)


@pytest.mark.parametrize("program", [longest_common, of_any_size])
def test_branches_give_the_number_that_is_stored(program: Callable[..., Any]) -> None:
    letters = np.array([0, 1, 1, 2, 0, 2])
    graph = optimized(program, letters, letters[::-1].copy())
    assert in_branches_of(graph, updating.scatter_set, rank=2) == 0
    # `t[i + 1, k]` is carried, and the two others are read
    assert in_branches_of(graph, indexing.gather, rank=2) == 2


def test_stores_in_other_places_stay() -> None:
    def program(x: Any) -> Any:
        y = np.zeros(2 * SIZE)
        for k in range(SIZE):
            if x[k] > 0.0:
                y[k] = x[k]
            else:
                y[k + SIZE] = x[k]
        return y

    assert in_branches_of(optimized(program, CHOICES), updating.scatter_set) == 2


def test_errors_have_the_line_of_the_branch() -> None:
    """A store that may fail stays in its branch."""

    def fun(x: Any, n: Any) -> Any:
        y = np.zeros(3)
        for k in range(n):
            if x[k] > 0.0:
                y[k] = x[k]
            else:
                y[k] = -x[k]
        return y

    with pytest.raises(IndexError) as error:
        wend.function(fun)(CHOICES, 4)
    (note,) = error.value.__notes__
    assert note.endswith(f":{fun.__code__.co_firstlineno + 6}")
