"""Whole programs without compiling them: in eager mode, and by tapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.plain_programs import PLAIN
from tests.helpers.programs import PROGRAMS, Program, decisions

EXACT = 1e-9


@pytest.fixture(params=PROGRAMS, ids=str)
def program(request: pytest.FixtureRequest) -> Program:
    return request.param


def close(found: Any, expected: Any, digits: float = EXACT) -> None:
    for a, b in zip(found, expected, strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=digits, atol=digits)


def every(program: Program) -> tuple[int, ...]:
    return tuple(range(len(program.args)))


def plain(program: Program) -> Callable[..., Any]:
    """The program in Python, deciding by itself."""
    return lambda *args: program.plain(lambda question: bool(question()), *args)


def of_gradient(fun: Callable[..., Any], count: int) -> Callable[..., Any]:
    gradient = wend.grad(fun, tuple(range(count)))
    return lambda *args: sum(
        (k + 1.0) * wnp.sum(part * wnp.cos(part)) for k, part in enumerate(gradient(*args))
    )


_expected: dict[Any, Any] = {}


@pytest.fixture
def expected(program: Program, arrays: str) -> Any:
    """Its value and gradient, compiled."""
    key = "value and gradient", program.name, arrays
    if key not in _expected:
        _expected[key] = wend.value_and_grad(program.fun, every(program))(*program.args)
    return _expected[key]


@pytest.fixture
def expected_second(program: Program, arrays: str) -> Any:
    """The gradient of its gradient, compiled."""
    key = "second", program.name, arrays
    if key not in _expected:
        summed = of_gradient(program.fun, len(program.args))
        _expected[key] = wend.grad(summed, every(program))(*program.args)
    return _expected[key]


@pytest.mark.sampled(30)
@pytest.mark.parametrize("form", ["functional", "python"])
def test_eager_value_and_gradient(program, expected, form):
    fun = program.fun if form == "functional" else plain(program)
    with wend.config(eager=True):
        close([wend.function(fun)(*program.args)], [decisions(program)[0]])
        value, grads = wend.value_and_grad(fun, every(program))(*program.args)
        again, pullback = wend.vjp(fun, *program.args)
        close(pullback(np.float64(1.0)), expected[1])
    close([value, again], [expected[0]] * 2)
    close(grads, expected[1])


@pytest.mark.sampled(30)
@pytest.mark.parametrize("form", ["functional", "python"])
def test_eager_gradient_of_gradient(program, expected_second, form):
    count = len(program.args)
    fun = program.fun if form == "functional" else plain(program)
    with wend.config(eager=True):
        found = wend.grad(of_gradient(fun, count), every(program))(*program.args)
    close(found, expected_second, 1e-8)


@pytest.mark.sampled(30)
@pytest.mark.parametrize("form", ["functional", "python"])
def test_eager_tangent(program, form):
    """In eager mode functions are traced all the same for forward mode: so Python is plain."""
    fun = program.fun if form == "functional" else PLAIN[program.name]
    rng = np.random.default_rng(0)
    tangents = tuple(rng.standard_normal(np.shape(arg))[()] for arg in program.args)
    expected = wend.jvp(program.fun, program.args, tangents)
    with wend.config(eager=True):
        close(wend.jvp(fun, program.args, tangents), expected)
        slopes = wend.grad(lambda *args: wend.jvp(fun, args, tangents)[1], every(program))
        found = slopes(*program.args)
    again = wend.grad(lambda *args: wend.jvp(program.fun, args, tangents)[1], every(program))
    close(found, again(*program.args), 1e-8)


def by_tape(fun: Callable[..., Any], args: Any) -> Any:
    with wend.GradientTape() as tape:
        watched = tape.watch(args)
        value = fun(*watched)
    return tape.gradient(value, watched, unconnected_gradients="zero")


@pytest.mark.sampled(30)
@pytest.mark.parametrize("form", ["compiled", "functional", "python"])
def test_tape(program, expected, form):
    forms = {
        "compiled": wend.function(program.fun),
        "functional": program.fun,
        "python": plain(program),
    }
    close(by_tape(forms[form], program.args), expected[1])


@pytest.mark.sampled(30)
@pytest.mark.parametrize("form", ["compiled", "functional", "python"])
def test_nested_tapes(program, expected_second, form):
    forms = {
        "compiled": wend.function(program.fun),
        "functional": program.fun,
        "python": plain(program),
    }
    with wend.GradientTape() as outer:
        args = outer.watch(program.args)
        grads = by_tape(forms[form], args)
        value = sum((k + 1.0) * wnp.sum(g * wnp.cos(g)) for k, g in enumerate(grads))
    close(outer.gradient(value, args, unconnected_gradients="zero"), expected_second, 1e-8)


@pytest.mark.sampled(30)
def test_tape_over_grad(program, expected_second):
    count = len(program.args)
    found = by_tape(of_gradient(program.fun, count), program.args)
    close(found, expected_second, 1e-8)


@pytest.mark.sampled(30)
def test_tape_in_a_trace(program, expected):
    def gradient(*args: Any) -> Any:
        return by_tape(program.fun, args)

    found = wend.function(gradient)(*program.args)
    close(found, expected[1])


@pytest.mark.sampled(30)
def test_gradient_of_a_tape_in_a_trace(program, expected_second):
    def summed(*args: Any) -> Any:
        grads = by_tape(program.fun, args)
        return sum((k + 1.0) * wnp.sum(g * wnp.cos(g)) for k, g in enumerate(grads))

    close(wend.grad(summed, every(program))(*program.args), expected_second, 1e-8)


@pytest.mark.sampled(30)
def test_nested_tapes_in_a_trace(program, expected_second):
    def second(*args: Any) -> Any:
        with wend.GradientTape() as outer:
            args = outer.watch(args)
            grads = by_tape(program.fun, args)
            value = sum((k + 1.0) * wnp.sum(g * wnp.cos(g)) for k, g in enumerate(grads))
        return outer.gradient(value, args, unconnected_gradients="zero")

    close(wend.function(second)(*program.args), expected_second, 1e-8)
