"""Short loops that index small arrays are unrolled: values and slopes stay, growth is bounded."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wend
from tests.helpers.compiled import compiled
from tests.helpers.graphs import traced
from tests.helpers.shares import sized
from wend.ops.control import while_
from wend.passes.unroll_loops import unroll_loops

RANGES = ["4", "1, 4", "3, -1, -1", "0, 8, 3", "2, 2", "i + 1", "i, 4", "3, i - 1, -1"]
POSITIONS = ["i", "j", "i - j", "j - 1", "(i + j) % 4", "2 * i - 3"]
UPDATES = [
    "d[{0}] = x * d[{1}] + 0.5",
    "d[{0}] += d[{1}] * d[{2}]",
    "d[{0}] = d[{1}] - x if {2} > 1 else d[{0}]",
    "x = x + d[{0}] * 0.25",
]


def program_of(lines: list[str]) -> Any:
    """The function of x and of an array of four numbers with a body of these lines."""
    body = ["def program(x, y):", "    d = y.copy()", *(f"    {line}" for line in lines)]
    body.append("    return x + np.sum(d * np.array([1.0, -2.0, 3.0, 0.5]))")
    return compiled("\n".join(body), "program")


@st.composite
def bodies(draw: Any) -> list[str]:
    first, second = draw(st.sampled_from(RANGES[:5])), draw(st.sampled_from(RANGES))
    lines = [f"for i in range({first}):", f"    for j in range({second}):"]
    for _ in range(draw(st.integers(1, 2))):
        positions = [draw(st.sampled_from(POSITIONS)) for _ in range(3)]
        lines.append("        " + draw(st.sampled_from(UPDATES)).format(*positions))
    return lines


def outcome(program: Any, y: Any) -> Any:
    """What a program returns, or the error of a position out of range."""
    try:
        return program(0.7, y)
    except IndexError as error:
        return error


@given(lines=bodies())
@settings(max_examples=sized(8, 20), deadline=None)
def test_values_slopes_and_errors_are_those_of_python(lines: list[str]) -> None:
    program, y = program_of(lines), np.array([0.3, -0.2, 0.4, 0.1])
    expected = outcome(program, y)
    if isinstance(expected, IndexError):
        for backend in ("native", "numpy"):
            error = outcome(wend.function(program, backend=backend), y)
            assert type(error) is IndexError
            assert str(error).startswith(str(expected))
        return
    step = 1e-40
    slope = program(0.7 + step * 1j, y.astype(complex)).imag / step
    slopes = [program(0.7 + 0j, y + step * 1j * row).imag / step for row in np.eye(4)]
    for backend in ("native", "numpy"):
        with wend.config(backend=backend):
            np.testing.assert_allclose(wend.function(program)(0.7, y), expected, rtol=1e-14)
            found = wend.function(wend.grad(program, (0, 1)))(0.7, y)
            np.testing.assert_allclose(found[0], slope, rtol=1e-11, atol=1e-13)
            np.testing.assert_allclose(found[1], slopes, rtol=1e-11, atol=1e-13)
            _, tangent = wend.jvp(program, (0.7, y), (1.0, np.zeros(4)))
            np.testing.assert_allclose(tangent, slope, rtol=1e-11, atol=1e-13)


def loops_of(fun: Any, *args: Any) -> int:
    return unroll_loops(traced(fun, *args)).count(while_.name)


def test_inner_loops_whose_bounds_follow_from_outer_ones() -> None:
    def triangle(x: Any) -> Any:
        d = x.copy()
        for r in range(1, 4):
            for j in range(3, r - 1, -1):
                d[j] = 0.5 * d[j - 1] + d[j]
        return d[3]

    assert traced(triangle, np.ones(4)).count(while_.name) == 2
    assert loops_of(triangle, np.ones(4)) == 0


def test_only_short_loops_over_small_arrays() -> None:
    def many_trips(x: Any) -> Any:
        x = x.copy()
        for k in range(9):
            x[k] = x[k] + 1.0
        return x

    def large_array(x: Any) -> Any:
        x = x.copy()
        for k in range(4):
            x[k] = x[k] + 1.0
        return x

    def position_of_the_data(x: Any, k: Any) -> Any:
        x = x.copy()
        for _ in range(4):
            x[k] = x[k] * 2.0
        return x

    def no_array(x: Any) -> Any:
        for _ in range(4):
            x = np.sin(x)
        return x

    def policy(x: Any) -> Any:
        x = x.copy()
        for k in wend.loop(range(4), memory="recompute"):
            x[k] = x[k] + 1.0
        return x

    assert loops_of(many_trips, np.ones(9)) == 1
    assert loops_of(large_array, np.ones(17)) == 1
    assert loops_of(large_array, np.ones(16)) == 0
    assert loops_of(position_of_the_data, np.ones(4), 2) == 1
    assert loops_of(no_array, 1.0) == 1
    assert loops_of(policy, np.ones(4)) == 1


def test_growth_is_bounded() -> None:
    """Four loops in one another would be 8⁴ trips."""

    def nest(x: Any) -> Any:
        d = np.zeros(8)
        for a in range(8):
            for b in range(8):
                for c in range(8):
                    for e in range(8):
                        d[(a + b + c + e) % 8] += x * d[e]
        return d

    graph = traced(nest, 1.0)
    assert unroll_loops(graph).count() < 8 * graph.count() + 512


def test_many_loops_grow_by_a_constant() -> None:
    def loops(x: Any) -> Any:
        d = np.zeros(8) + x
        for _ in wend.unroll(range(60)):
            for k in range(8):
                d[k] = np.sin(d[k] * x) + d[k - 1]
        return d

    graph = traced(loops, 1.0)
    assert graph.count(while_.name) == 60
    unrolled = unroll_loops(graph)
    assert unrolled.count(while_.name) > 40
    assert unrolled.count() < graph.count() + 1024


def test_loops_that_would_fail_stay() -> None:
    """The error is that of the first trip which fails, and what follows the loop is not run."""

    def backwards(x: Any, b: Any) -> Any:
        d = x * 1.0
        for i in range(4):
            d[3 - i] = b[i]
        if b[1] > 0.5:
            raise ValueError("late")
        return d

    def unread(m: Any) -> Any:
        t = 0.0
        for k in range(8):
            t = m[-k - 1, k % 4]
        return t

    assert loops_of(backwards, np.ones(3), np.ones(5)) == 1
    assert loops_of(unread, np.ones((4, 4))) == 1
    for backend in ("native", "numpy"):
        with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
            wend.function(backwards, backend=backend)(np.ones(3), np.ones(5))
        with pytest.raises(IndexError, match="index -5 is out of bounds for axis 0 with size 4"):
            wend.function(unread, backend=backend)(np.ones((4, 4)))


def test_arrays_that_are_indexed_at_unknown_positions_too_stay() -> None:
    def mixed(a: Any, x: Any) -> Any:
        a = a * 1.0
        for i in range(50):
            for k in range(7):
                a[(i + k) % 8] += x * a[k]
        return np.sum(a)

    def apart(a: Any, b: Any) -> Any:
        s = 0.0
        for i in range(50):
            for k in range(7):
                s = s + a[k] * b[(i + k) % 8]
        return s

    assert loops_of(mixed, np.ones(8), 0.1) == 2
    assert loops_of(apart, np.ones(8), np.ones(8)) == 1


def test_explain_tells_how_often_they_run() -> None:
    def triangle(x: Any) -> Any:
        d = x * 1.0
        for r in range(1, 4):
            for j in range(3, r - 1, -1):
                d[j] = 0.5 * d[j - 1] + d[j]
        return d[3]

    program = wend.function(triangle, backend="native")
    program(np.ones(4))
    text = str(program.explain())
    assert re.search(r"runs the loop at \S+ 3 times, unrolled", text)
    assert re.search(r"runs the loop at \S+ 3 and 2 and 1 times, unrolled", text)
