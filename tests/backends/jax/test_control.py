"""Every program equals the interpreter: value, gradient, tangents, second order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.helpers.jax_runs import close
from tests.helpers.loop_shapes import SHAPES
from tests.helpers.plain_programs import PLAIN
from tests.helpers.programs import PROGRAMS, Program

import wend


def every(program: Program) -> tuple[int, ...]:
    return tuple(range(len(program.args)))


def check(fun: Callable[..., Any], program: Program) -> None:
    with wend.config(backend="numpy"):
        expected = fun(*program.args)
    with wend.config(backend="jax"):
        close(fun(*program.args), expected)
        close(fun(*program.args), expected)  # with the capacities that the first call has left


@pytest.mark.sampled(64)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_value_and_gradient(program: Program) -> None:
    check(wend.value_and_grad(program.fun, every(program)), program)


@pytest.mark.sampled(32)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_second_gradient(program: Program) -> None:
    def summed(*args: Any) -> Any:
        return sum(np.sum(1.3 * x) for x in wend.grad(program.fun, every(program))(*args))

    check(wend.grad(summed, every(program)), program)


@pytest.mark.sampled(32)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_tangents(program: Program) -> None:
    tangents = tuple(np.full_like(np.asarray(x), 0.7)[()] for x in program.args)
    check(wend.function(lambda *args: wend.jvp(program.fun, args, tangents)), program)


@pytest.mark.sampled(32)
@pytest.mark.parametrize("program", [p for p in PROGRAMS if p.name in PLAIN], ids=str)
def test_plain_python(program: Program) -> None:
    check(wend.value_and_grad(PLAIN[program.name], every(program)), program)


# Tapes that grow (D34)
def climb(x: Any, trips: Any) -> Any:
    for _ in range(trips):
        x = np.sin(x) + 1.1 * x
    return x


@pytest.mark.sampled(32)
@pytest.mark.usefixtures("little_room")
@pytest.mark.parametrize("trips", [0, 1, 15, 16, 17, 31, 32, 33, 200])
def test_a_tape_has_room_for_any_number_of_trips(trips: int) -> None:
    fun = wend.value_and_grad(climb)
    with wend.config(backend="numpy"):
        expected = fun(0.001, np.int64(trips))
    with wend.config(backend="jax"):
        close(fun(0.001, np.int64(trips)), expected)


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
