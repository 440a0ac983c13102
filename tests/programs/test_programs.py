"""Whole programs × backend × value, gradient, gradient of the gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.graphs import check_graph, traced
from tests.helpers.programs import PROGRAMS, Program, decisions, unrolled

BACKENDS = ["numpy", "native", "boxed"]
EXACT = 1e-9  # against the unrolled loop


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=PROGRAMS, ids=str)
def program(request: pytest.FixtureRequest) -> Program:
    return request.param


def run(fun: Callable[..., Any], program: Program, backend: str) -> Any:
    with wend.config(backend=backend):
        return fun(*program.args)


def close(found: Any, expected: Any, digits: float) -> None:
    for a, b in zip(found, expected, strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=digits, atol=digits)


def every(program: Program) -> tuple[int, ...]:
    return tuple(range(len(program.args)))


_expected: dict[tuple[str, int], Any] = {}


def expected_gradient(program: Program) -> Any:
    """The gradient of the unrolled program, computed once."""
    key = program.name, 1
    if key not in _expected:
        _expected[key] = wend.grad(unrolled(program), every(program))(*program.args)
    return _expected[key]


def expected_second(program: Program) -> Any:
    """The gradient of the gradient of the unrolled program, computed once."""
    key = program.name, 2
    if key not in _expected:
        summed = of_gradient(unrolled(program), len(program.args))
        _expected[key] = wend.grad(summed, every(program))(*program.args)
    return _expected[key]


def test_value(program, backend):
    found = run(wend.function(program.fun), program, backend)
    expected, _ = decisions(program)
    close([found], [expected], EXACT)
    if program.value is not None:
        close([found], [program.value], program.digits)


def test_gradient(program, backend):
    value, found = run(wend.value_and_grad(program.fun, every(program)), program, backend)
    close([value], [decisions(program)[0]], EXACT)
    close(found, expected_gradient(program), EXACT)
    if program.grads is not None:
        close(found, program.grads, program.digits)


@pytest.mark.sampled(3)
def test_gradient_by_vjp(program):
    value, pullback = wend.vjp(program.fun, *program.args)
    close([value], [decisions(program)[0]], EXACT)
    close(pullback(1.0), wend.grad(program.fun, every(program))(*program.args), 1e-12)


@pytest.mark.sampled(3)
def test_gradient_by_complex_step(program):
    """Against plain Python with complex numbers, which knows none of wend's rules."""
    fun = unrolled(program)
    found = wend.grad(program.fun, every(program))(*program.args)
    for k, arg in enumerate(program.args):
        expected = np.zeros(np.shape(arg))
        for place in np.ndindex(np.shape(arg)):
            moved = np.array(arg, dtype=complex)
            moved[place] += 1e-30j
            args = [*program.args[:k], moved[()], *program.args[k + 1 :]]
            expected[place] = np.imag(fun(*args)) / 1e-30
        close([found[k]], [expected], EXACT)


def of_gradient(fun: Callable[..., Any], count: int) -> Callable[..., Any]:
    """A number made of a whole gradient, with another weight for each part."""
    gradient = wend.grad(fun, tuple(range(count)))
    return lambda *args: sum(
        (k + 1.0) * wnp.sum(part * wnp.cos(part)) for k, part in enumerate(gradient(*args))
    )


@pytest.mark.sampled(30)
def test_gradient_of_gradient(program, backend):
    count = len(program.args)
    second = wend.grad(of_gradient(program.fun, count), every(program))
    found = run(second, program, backend)
    close(found, expected_second(program), 1e-8)
    if program.second is not None:
        second = wend.grad(wend.grad(program.fun))
        close([run(second, program, backend)], [program.second], max(program.digits, 1e-8))


@pytest.mark.sampled(3)
def test_round_trip(program):
    check_graph(traced(program.fun, *program.args))
    check_graph(traced(wend.value_and_grad(program.fun, every(program)), *program.args))
