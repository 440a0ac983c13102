"""What takes long, or may fail, leaves loops behind a guard, and nobody sees that it did."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import pytest

import wend
from tests.helpers.graphs import traced
from tests.passes.test_push_out import REQUIRED, run
from tests.passes.test_trim_loops import function
from wend.ir.types import TOKEN
from wend.ops.control import while_

A = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 1.2]])
B = np.array([0.4, -0.2, 0.9])
SINGULAR = np.zeros((3, 3))
BACKENDS = "numpy", "native"

# Functions of a matrix and a vector, which change in no trip
STEADY = {
    "solve": "np.linalg.solve(a, b)",
    "inv": "np.linalg.inv(a) @ b",
    "cholesky": "np.linalg.cholesky(a)[:, 0] * b",
    "det": "np.linalg.det(a) * b",
    "sort": "np.sort(b) * a[0]",
    "fft": "np.fft.rfft(b).real[:1] * a[1]",
    "eigh": "np.linalg.eigh(a)[0] * b",
    "max": "np.max(a) * b + np.argmax(b)",
    "branch": "np.linalg.solve(a, b) if b[0] > 0.0 else b",
}
NAMES = {"inv": "solve", "fft": "rfft", "max": "reduce_max", "branch": "solve"}
# Loops of n trips, with their tests
LOOPS = (
    "for k in range(n):",
    "k = 0\n    while k < n:\n        k += 1",
    "k = 0\n    while np.sum(x) < 1e3 and k < n:\n        k += 1",
    "k = 0\n    while True:\n        if k >= n: break\n        k += 1",
)


def loop(steady: str, header: str, first: str = "pass") -> Any:
    """Return a function with a loop that adds a steady value in each trip."""
    return function(
        f"def f(a, b, n):\n    x = b * 1.0\n    {header}\n        {first}\n"
        f"        x = np.tanh(x * 0.5 + ({steady}))\n    return x\n"
    )


def names_in_loops(fun: Any, *args: Any) -> set[str]:
    loops = [x for x in traced(fun, *args, optimize=True).walk() if x.op is while_]
    return {x.op.name for loop in loops for region in loop.regions for x in region.walk()}


def outcome(fun: Any, *args: Any) -> tuple[Any, str, str]:
    """Return the result of a call, what it prints, and its error."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), np.errstate(all="ignore"):
        try:
            return fun(*args), printed.getvalue(), ""
        except (np.linalg.LinAlgError, AssertionError, IndexError) as error:
            return None, printed.getvalue(), f"{type(error).__name__}: {error}"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("header", LOOPS)
@pytest.mark.parametrize("name", STEADY)
def test_what_takes_long_runs_once_before_the_loop(name: str, header: str) -> None:
    f = loop(STEADY[name], header)
    assert NAMES.get(name, name) not in names_in_loops(f, A, B, 3)
    for backend in BACKENDS:
        compiled = wend.function(f, backend=backend)
        for n in 0, 1, 3:
            np.testing.assert_allclose(compiled(A, B, n), f(A, B, n), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("header", LOOPS[:2])
@pytest.mark.parametrize("name", ["solve", "inv", "cholesky"])
def test_it_fails_only_where_the_loop_makes_a_trip(name: str, header: str) -> None:
    f = loop(STEADY[name], header)
    for backend in BACKENDS:
        compiled = wend.function(f, backend=backend)
        for n in 0, 1, 3:
            (result, _, error), (expected, _, plain) = (
                outcome(fun, SINGULAR, B, n) for fun in (compiled, f)
            )
            assert error.partition("\n")[0] == plain
            if not plain:
                np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("first", "is_moved"),
    [
        ("print('trip')", False),
        ("assert n < 2, 'many'", False),
        ("x = x + b[int(x[0] * 9.0)]", False),  # an IndexError comes first
        ("x = np.sin(x)", True),
    ],
)
def test_what_a_trip_does_first_is_seen_before_an_error(first: str, is_moved: bool) -> None:
    f = loop(STEADY["solve"], "for k in range(n):", first)
    assert ("solve" not in names_in_loops(f, A, B, 3)) is is_moved
    for backend in BACKENDS:
        compiled = wend.function(f, backend=backend)
        for a, n in (SINGULAR, 0), (SINGULAR, 1), (SINGULAR, 3), (A, 1):
            results, printed, error = outcome(compiled, a, B, n)
            expected, plain_printed, plain_error = outcome(f, a, B, n)
            assert (printed, error.partition("\n")[0]) == (plain_printed, plain_error)
            if expected is not None:
                np.testing.assert_allclose(results, expected, rtol=1e-12)


def test_it_leaves_nested_loops() -> None:
    def f(a: Any, b: Any, n: Any, m: Any) -> Any:
        x = b * 1.0
        for _ in range(n):
            for _ in range(m):
                x = np.tanh(x * 0.5 + np.linalg.solve(a, b))
        return x

    assert "solve" not in names_in_loops(f, A, B, 2, 3)
    for backend in BACKENDS:
        compiled = wend.function(f, backend=backend)
        for n, m in (0, 2), (2, 0), (2, 3):
            np.testing.assert_allclose(compiled(A, B, n, m), f(A, B, n, m), rtol=1e-12)
            if not n * m:
                np.testing.assert_array_equal(compiled(SINGULAR, B, n, m), B)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["solve", "cholesky", "sort", "max", "branch"])
@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_are_those_of_loops_that_keep_it(name: str, order: int) -> None:
    f = loop(STEADY[name], LOOPS[1])
    fun = wend.grad(lambda a, b, n: np.sum(f(a, b, n) ** 2), (0, 1))
    if order == 2:
        first = fun
        fun = wend.grad(lambda a, b, n: sum(np.sum(np.sin(g)) for g in first(a, b, n)), (0, 1))
    for n in 0, 1, 3:
        graph = traced(fun, A, B, n)
        inputs = [
            None if x.type == TOKEN else y for x, y in zip(graph.params, (A, B, n), strict=False)
        ]
        kept, *_ = run(graph, REQUIRED, inputs, "numpy")
        for result, expected in zip(wend.function(fun)(A, B, n), kept, strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-11, atol=1e-13)


def test_loops_in_lanes_keep_it() -> None:
    """Each element of a `vmap` has its own test."""

    def f(b: Any, n: Any) -> Any:
        x, k = b, 0
        while k < n:
            x = np.tanh(x + np.sort(b))
            k += 1
        return x

    bs, counts = np.linspace(-1.0, 1.0, 12).reshape(4, 3)[:, ::-1], np.array([0, 3, 1, 2])
    expected = [f(b, n) for b, n in zip(bs, counts, strict=True)]
    for backend in BACKENDS:
        mapped = wend.function(wend.vmap(f), backend=backend)
        np.testing.assert_allclose(mapped(bs, counts), expected, rtol=1e-12)
