"""Whole programs as host calls, and with a host call in every loop and branch, at both orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.programs import PROGRAMS, Program, decisions
from wend.base import trees


@pytest.fixture(params=PROGRAMS, ids=str)
def program(request: pytest.FixtureRequest) -> Program:
    return request.param


def every(program: Program) -> tuple[int, ...]:
    return tuple(range(len(program.args)))


def of_gradient(fun: Callable[..., Any], count: int) -> Callable[..., Any]:
    gradient = wend.grad(fun, tuple(range(count)))
    return lambda *args: sum(
        (k + 1.0) * wnp.sum(part * wnp.cos(part)) for k, part in enumerate(gradient(*args))
    )


def derivatives(fun: Callable[..., Any], program: Program) -> list[Any]:
    """The value, gradient, gradient of that, and a tangent of a function."""
    moving, args = every(program), program.args
    return [
        wend.value_and_grad(fun, moving)(*args),
        wend.grad(of_gradient(fun, len(args)), moving)(*args),
        wend.jvp(fun, args, tuple(np.cos(arg) for arg in args)),
    ]


_expected: dict[tuple[str, str], Any] = {}


@pytest.fixture
def expected(program: Program, arrays: str) -> Any:
    """The program's own derivatives, computed once."""
    key = program.name, arrays
    if key not in _expected:
        _expected[key] = derivatives(program.fun, program)
    return _expected[key]


def check(fun: Callable[..., Any], program: Program, expected: Any) -> None:
    """The same values, gradients, gradients of those and tangents as the program's."""
    mine, tree = trees.flatten(derivatives(fun, program))
    theirs, other = trees.flatten(expected)
    assert tree == other
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.sampled(30)
@pytest.mark.parametrize("form", ["functional", "python"])
def test_a_program_as_a_host_call(program: Program, expected: Any, form: str) -> None:
    value, _ = decisions(program)

    def plain(*args: Any) -> Any:
        return program.plain(lambda question: bool(question()), *args)

    host = program.fun if form == "functional" else plain
    check(lambda *args: wend.py_function(host, value, *args), program, expected)


def through_host(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose result goes through Python."""

    def run(*args: Any) -> Any:
        result = fun(*args)
        return wend.py_function(lambda x: x, result, result)

    return run


@pytest.mark.sampled(30)
def test_a_host_call_in_every_loop_and_branch(
    program: Program, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, choice = wend.while_loop, wend.cond

    def while_loop(test: Any, body: Any, *args: Any, **options: Any) -> Any:
        return loop(test, through_host(body), *args, **options)

    def cond(pred: Any, then: Any, other: Any, *args: Any) -> Any:
        return choice(pred, through_host(then), through_host(other), *args)

    def fun(*args: Any) -> Any:
        with monkeypatch.context() as patched:
            patched.setattr(wend, "while_loop", while_loop)
            patched.setattr(wend, "cond", cond)
            return program.fun(*args)

    check(fun, program, expected)
