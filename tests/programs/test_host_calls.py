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


def check(fun: Callable[..., Any], program: Program) -> None:
    """The same values, gradients, gradients of those and tangents as the program's."""
    moving, args = every(program), program.args
    expected = [wend.value_and_grad(program.fun, moving)(*args)]
    found = [wend.value_and_grad(fun, moving)(*args)]
    for gradients, of in ((expected, program.fun), (found, fun)):
        gradients.append(wend.grad(of_gradient(of, len(args)), moving)(*args))
        gradients.append(wend.jvp(of, args, tuple(np.cos(arg) for arg in args)))
    mine, tree = trees.flatten(found)
    theirs, other = trees.flatten(expected)
    assert tree == other
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("form", ["functional", "python"])
def test_a_program_as_a_host_call(program: Program, form: str) -> None:
    value, _ = decisions(program)

    def plain(*args: Any) -> Any:
        return program.plain(lambda question: bool(question()), *args)

    host = program.fun if form == "functional" else plain
    check(lambda *args: wend.py_function(host, value, *args), program)


def through_host(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose result goes through Python."""

    def run(*args: Any) -> Any:
        result = fun(*args)
        return wend.py_function(lambda x: x, result, result)

    return run


def test_a_host_call_in_every_loop_and_branch(
    program: Program, monkeypatch: pytest.MonkeyPatch
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

    check(fun, program)
