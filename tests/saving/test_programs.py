"""Whole programs from files: values and derivatives are equal to the last bit."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.programs import PROGRAMS, Program
from tests.helpers.saved import again, is_same, saved

BACKENDS = ["numpy", "native"]


def second(fun: Any, numbers: tuple[int, ...]) -> Any:
    """The gradient of the sum of the squares of the gradient."""

    def squares(*args: Any) -> Any:
        return sum(wnp.sum(g * g) for g in wend.grad(fun, numbers)(*args))

    return wend.grad(squares, numbers)


@pytest.mark.sampled(20)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_values_and_derivatives_of_every_order_are_equal(program: Program, backend: str) -> None:
    args = program.args
    with wend.config(backend=backend):
        fun = wend.function(program.fun)
        value = fun(*args)
        loaded = again(fun=fun).fun
        assert is_same(loaded(*args), value)
        numbers = tuple(k for k, x in enumerate(args) if np.asarray(x).dtype.kind == "f")
        if not numbers:
            return
        gradient = wend.value_and_grad(fun, numbers)
        expected = gradient(*args)
        assert is_same(wend.value_and_grad(loaded, numbers)(*args), expected)
        assert is_same(again(gradient=gradient).gradient(*args), expected)
        assert is_same(second(loaded, numbers)(*args), second(fun, numbers)(*args))
        tangents = tuple(np.ones_like(x)[()] if k in numbers else None for k, x in enumerate(args))
        assert is_same(wend.jvp(loaded, args, tangents), wend.jvp(fun, args, tangents))


def test_another_process_computes_the_same(tmp_path: Any) -> None:
    w = wend.Variable(np.linspace(-1.0, 1.0, 5), name="w")

    @wend.function
    def steps(x: Any) -> Any:
        n = 0
        while wnp.sum(x * x) > 1e-3:
            x = 0.5 * wnp.tanh(x + 0.1 * w)
            n = n + 1
            if n > 50:
                break
        return wnp.sum(x) + n

    x = np.arange(5.0)
    steps(x)
    wend.save(tmp_path / "m.wend", steps=steps, gradient=called(wend.grad(steps), x))
    program = (
        "import sys, numpy as np, wend\n"
        "m = wend.load(sys.argv[1])\n"
        "x = np.arange(5.0)\n"
        "for fun in (m.steps, m.gradient, wend.grad(m.steps), wend.hessian(m.steps)):\n"
        "    print(np.asarray(fun(x)).tobytes().hex())\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "m.wend")],
        capture_output=True,
        text=True,
        check=True,
    )
    funs = (steps, wend.grad(steps), wend.grad(steps), wend.hessian(steps))
    assert run.stdout.split() == [np.asarray(fun(x)).tobytes().hex() for fun in funs]


def called(fun: Any, *args: Any) -> Any:
    fun(*args)
    return fun


def test_equal_functions_give_equal_files() -> None:
    def once() -> bytes:
        fun = wend.function(lambda x, n: x * np.arange(3.0) + n, name="f")
        fun(np.ones(3), 2)
        return saved(f=fun)

    assert once() == once()
