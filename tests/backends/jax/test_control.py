"""Every program equals the interpreter: value, gradient, tangents, second order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.helpers.plain_programs import PLAIN
from tests.helpers.programs import PROGRAMS, Program

import wend
from wend.base import trees

# Programs whose carries or results have shapes that depend on data; the list may only shrink.
REFUSED: set[str] = set()
_EXACT = 1e-9


def every(program: Program) -> tuple[int, ...]:
    return tuple(range(len(program.args)))


def close(found: Any, expected: Any) -> None:
    found, expected = trees.flatten(found)[0], trees.flatten(expected)[0]
    for a, b in zip(found, expected, strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(np.asarray(a), b, rtol=_EXACT, atol=_EXACT)


def check(fun: Callable[..., Any], program: Program) -> None:
    with wend.config(backend="numpy"):
        expected = fun(*program.args)
    with wend.config(backend="jax"):
        close(fun(*program.args), expected)
        close(fun(*program.args), expected)  # with the capacities that the first call has left


@pytest.mark.sampled(16)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_value_and_gradient(program: Program) -> None:
    check(wend.value_and_grad(program.fun, every(program)), program)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_second_gradient(program: Program) -> None:
    def summed(*args: Any) -> Any:
        return sum(np.sum(1.3 * x) for x in wend.grad(program.fun, every(program))(*args))

    check(wend.grad(summed, every(program)), program)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_tangents(program: Program) -> None:
    tangents = tuple(np.full_like(np.asarray(x), 0.7)[()] for x in program.args)
    check(wend.function(lambda *args: wend.jvp(program.fun, args, tangents)), program)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("program", [p for p in PROGRAMS if p.name in PLAIN], ids=str)
def test_plain_python(program: Program) -> None:
    check(wend.value_and_grad(PLAIN[program.name], every(program)), program)


# Tapes that grow (D34)
def climb(x: Any, trips: Any) -> Any:
    for _ in range(trips):
        x = np.sin(x) + 1.1 * x
    return x


@pytest.mark.sampled(16)
@pytest.mark.usefixtures("little_room")
@pytest.mark.parametrize("trips", [0, 1, 15, 16, 17, 31, 32, 33, 200])
def test_a_tape_has_room_for_any_number_of_trips(trips: int) -> None:
    fun = wend.value_and_grad(climb)
    with wend.config(backend="numpy"):
        expected = fun(0.001, np.int64(trips))
    with wend.config(backend="jax"):
        close(fun(0.001, np.int64(trips)), expected)


# Shapes of control flow, with the trips of two levels
def nest(x: Any, n: Any, m: Any) -> Any:
    for i in range(n):
        y = x
        for _ in range((m * (i + 1)) % 37):
            y = np.sin(y) + 0.01 * x
        x = x + 0.1 * y
    return x


def one_after_the_other(x: Any, n: Any, m: Any) -> Any:
    for _ in range(n):
        x = np.sin(x) + 0.4
    for _ in range(m):
        x = np.cos(x) * x + 0.1
    return x


def three_deep(x: Any, n: Any, m: Any) -> Any:
    for i in range(n):
        y = x
        for j in range(m):
            for _ in range((i + j) % 3):
                y = np.sin(y) + 0.3
        x = 0.5 * (x + np.tanh(y))
    return x


def loop_in_a_branch(x: Any, n: Any, m: Any) -> Any:
    for i in range(n):
        if np.sin(3.0 * x) + 0.01 * i > 0.0:
            for _ in range(m):
                x = x - 0.1 * np.sin(x)
        x = x + 0.3
    return x


def a_loop_on_each_side(x: Any, n: Any, m: Any) -> Any:
    for i in range(n):
        if i % 3 == 1:
            for _ in range(m):
                x = np.cos(x) + 0.2 * x
        else:
            while x < 1.0:
                x = x + 0.2 + 0.1 * np.sin(x)
            x = 0.3 * x
    return x


def branch_around(x: Any, n: Any, m: Any) -> Any:
    if x > 0.1:
        for _ in range(n):
            x = np.sin(x) + 0.2 * x
        for _ in range(m):
            x = x / (1.0 + x * x)
        return x
    return 2.0 * x


def loop_in_the_test(x: Any, n: Any, m: Any) -> Any:
    def settled(y: Any) -> Any:
        for _ in range(m):
            y = 0.5 * np.sin(y)
        return y

    k = 0
    while settled(x) > -1.0 and k < n:
        x, k = x + 0.1 * settled(x), k + 1
    return x


def breaks(x: Any, n: Any, m: Any) -> Any:
    for i in range(n):
        for j in range(m):
            x = x + 0.1 * np.sin(x)
            if j > i + 3 or x > 30.0:
                break
            x = x * 0.99
        if x > 31.0:
            break
    return x


def an_exit_in_the_middle(x: Any, n: Any, m: Any) -> Any:
    k = 0
    while True:
        x = np.sin(x) + 0.1
        if k >= n:
            break
        x, k, j = 1.1 * x, k + 1, 0
        while True:
            x = x + 0.01 * np.cos(x)
            if j >= m:
                break
            j = j + 1
    return x


@wend.function
def _relaxed(x: Any, m: Any) -> Any:
    for _ in range(m):
        x = 0.9 * np.sin(x) + 0.1
    return x


def calls(x: Any, n: Any, m: Any) -> Any:
    for _ in range(n):
        x = _relaxed(x, m) + 0.2 * x
    return _relaxed(x, n)


def lists(x: Any, n: Any, m: Any) -> Any:
    kept = []
    for i in range(n):
        x = np.sin(x) + 0.1 * i
        kept.append(x)
    total = 0.0
    for j in range(m):
        if j < n:
            total = total + kept[n - 1 - j] * kept[j]
    return total + x


def of_rows(x: Any, n: Any, m: Any) -> Any:
    h = np.stack([x, 2.0 * x, -x])
    for _ in range(n):
        g = h
        for _ in range(m):
            g = np.tanh(g[::-1]) + 0.1 * h
        h = 0.5 * h + 0.2 * g
    return np.sum(h * h)


SHAPES = [
    *(nest, one_after_the_other, three_deep, loop_in_a_branch, a_loop_on_each_side, branch_around),
    *(loop_in_the_test, breaks, an_exit_in_the_middle, calls, lists, of_rows),
]


def check_capacities(fun: Callable[..., Any]) -> None:
    for n in (0, 1, 16, 17):
        for m in (0, 1, 16, 32, 33):
            args = (0.3, np.int64(n), np.int64(m))
            with wend.config(backend="native"):
                expected = fun(*args)
            with wend.config(backend="jax"):
                close(fun(*args), expected)


@pytest.mark.sampled
@pytest.mark.usefixtures("little_room")
@pytest.mark.parametrize("fun", SHAPES)
def test_tapes_have_room_at_each_level(fun: Callable[..., Any]) -> None:
    check_capacities(wend.value_and_grad(fun))


@pytest.mark.slow
@pytest.mark.usefixtures("little_room")
@pytest.mark.parametrize("fun", SHAPES)
def test_second_derivatives_have_room_at_each_level(fun: Callable[..., Any]) -> None:
    check_capacities(wend.grad(lambda *args: wend.grad(fun)(*args)))


def test_a_stack_that_decides_the_loop_never_loses_an_element() -> None:
    @wend.function
    def paths(depth: Any) -> Any:
        stack, seen = [depth], 0
        while len(stack) > 0:
            n = stack.pop()
            seen = seen + 1
            if n > 0:
                stack.append(n - 1)
                stack.append(n - 1)
                stack.append(n - 2)
        return seen

    expected = wend.function(paths.python_function, backend="numpy")(np.int64(6))
    assert int(wend.function(paths.python_function, backend="jax")(np.int64(6))) == int(expected)


def _root(a: Any) -> Any:
    x = a
    while np.abs(x * x - a) > 1e-12 * a:  # without end for a < 0
        x = 0.5 * (x + a / x)
    return x


def _raises_before(a: Any) -> Any:
    if a[1] < 0:
        raise ValueError(f"negative: {a[1]}")
    return _root(a[1])


def _raises_before_a_loop_of_loops(a: Any) -> Any:
    total = 0.0
    if a[1] < 0:
        raise ValueError(f"negative: {a[1]}")
    for x in a:
        total = total + _root(x)
    return total


def _raises_in_a_loop(a: Any) -> Any:
    total = 0.0
    for x in a:
        if x < 0:
            raise ValueError(f"negative: {x}")
        total = total + _root(x)
    return total


def _is_outside_before(a: Any) -> Any:
    return _root(a[int(a[1])] - 10.0)


@pytest.mark.parametrize(
    "program", [_raises_before, _raises_before_a_loop_of_loops, _raises_in_a_loop]
)
def test_what_follows_a_failing_check_ends(program: Callable[..., Any]) -> None:
    good, bad = np.array([4.0, 9.0]), np.array([4.0, -9.0])
    for fun in (program, wend.grad(program)):
        run = wend.function(fun, backend="jax")
        run(good)
        with pytest.raises(ValueError, match=r"negative: -9\.0"):
            run(bad)


def test_what_follows_a_position_out_of_range_ends() -> None:
    with pytest.raises(IndexError):
        wend.function(_is_outside_before, backend="jax")(np.array([4.0, 7.0]))


def test_elements_of_a_map_that_fail_end() -> None:
    fun = wend.function(wend.vmap(_raises_before), backend="jax")
    rows = np.array([[1.0, 4.0], [1.0, -4.0], [1.0, -9.0]])
    with pytest.raises(ValueError, match=r"negative: -4\.0"):
        fun(rows)


def _stacked(x: Any, trips: Any) -> Any:
    out = []
    for k in range(trips):
        x = np.sin(x) + 0.1 * k
        out.append(x)
    rows = np.stack(out)
    return np.sum(rows * rows) + rows[-1] * np.mean(rows)


_POLICIES = ["recompute", *(pytest.param(m, marks=pytest.mark.slow) for m in ("thin", "keep"))]


@pytest.mark.parametrize("memory", _POLICIES)
def test_lists_of_loops_that_run_again_are_stacked(memory: str) -> None:
    """What is known of a stack's size in one place is known of its shape everywhere."""
    second = wend.grad(lambda x: np.sin(wend.grad(lambda x: _stacked(x, 6))(x)))
    expected = wend.function(second, backend="numpy")(0.7)
    with wend.config(memory=memory):
        close(wend.function(second, backend="jax")(0.7), expected)
