"""Random programs against plain Python: value, gradient by the complex step, second order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, reject, settings

import wend
import wend.numpy as wnp
from tests.helpers.random_programs import (
    Block,
    Cond,
    Expr,
    Program,
    Staged,
    complex_step,
    plain,
    programs,
    staged,
)
from wend.base.errors import CarryError, TypeMismatchError

AT = np.array([0.4, -0.7, 0.3, -0.2, 0.9])
WEIGHTS = np.array([1.0, 2.0, -1.0, 0.5, 3.0])
ARGS = (AT[0], AT[1], AT[2:])
_STEP = 1e-5


def examples(number: int) -> settings:
    """So many examples; making programs may take long."""
    return settings(max_examples=number, suppress_health_check=list(HealthCheck))


def _joined(parts: tuple) -> np.ndarray:
    return np.concatenate([np.atleast_1d(part) for part in parts])


def check_value(program: Program) -> None:
    np.testing.assert_allclose(
        wend.function(staged(program))(*ARGS), plain(program, *ARGS)[0], rtol=1e-9, atol=1e-9
    )


def check_gradient(program: Program, fun: Callable[..., Any] | None = None) -> None:
    fun = fun or staged(program)
    found = wend.grad(fun, (0, 1, 2))(*ARGS)
    expected, _ = complex_step(program, AT)
    np.testing.assert_allclose(_joined(found), expected, rtol=1e-8, atol=1e-9)
    value, pullback = wend.vjp(fun, *ARGS)
    np.testing.assert_allclose(value, plain(program, *ARGS)[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(_joined(pullback(1.0)), expected, rtol=1e-8, atol=1e-9)


def check_second_order(program: Program, fun: Callable[..., Any] | None = None) -> None:
    gradient = wend.grad(fun or staged(program), (0, 1, 2))

    def weighted(x, y, v):
        dx, dy, dv = gradient(x, y, v)
        return WEIGHTS[0] * dx + WEIGHTS[1] * dy + wnp.sum(WEIGHTS[2:] * dv)

    whole = wend.function(weighted, input_signature=gradient.input_signature)
    found = _joined(wend.grad(whole, (0, 1, 2))(*ARGS))
    _, path = complex_step(program, AT)
    for k in range(len(AT)):
        step = np.zeros(len(AT))
        step[k] = _STEP
        ahead, path_ahead = complex_step(program, AT + step)
        behind, path_behind = complex_step(program, AT - step)
        if path_ahead == path == path_behind:  # else the difference crosses a branch
            expected = WEIGHTS @ (ahead - behind) / (2 * _STEP)
            np.testing.assert_allclose(found[k], expected, rtol=1e-5, atol=1e-6)


@examples(3 * settings().max_examples)
@given(programs(depth=2))
def test_value_and_gradient(program):
    check_value(program)
    check_gradient(program)


@examples(2 * settings().max_examples)
@given(programs(depth=3, length=2))
def test_deep(program):
    check_value(program)
    check_gradient(program)


@examples(2 * settings().max_examples)
@given(programs(depth=2))
def test_second_order(program):
    check_second_order(program)


@examples(2 * settings().max_examples)
@given(programs(depth=2, scalars_only=True))
def test_scalars(program):
    check_value(program)
    check_gradient(program)
    check_second_order(program)


# One branch gives the vector, the other one of known size.
EITHER_VECTOR = Program(
    block=Block(
        statements=(
            Cond(
                left=1,
                right=1,
                branches=(
                    Block(statements=(), results=(1, 3)),
                    Block(statements=(), results=(1, 2)),
                ),
            ),
            Expr(op="sin", args=(5,), number=0.0),
            Expr(op="sin", args=(4,), number=0.0),
        ),
        results=(7, 6),
    )
)


@examples(2 * settings().max_examples)
@given(programs(depth=2))
@example(EITHER_VECTOR)
def test_unknown_size(program):
    """The vector's size is not known: one trace, whose sizes are symbols."""
    spec = wend.TensorSpec
    fun = wend.function(
        staged(program), input_signature=[spec([]), spec([]), spec([None], name="v")]
    )
    try:
        value = fun(*ARGS)
    except (CarryError, TypeMismatchError):
        reject()  # a carry that may change its size is refused, and rightly
    np.testing.assert_allclose(value, plain(program, *ARGS)[0], rtol=1e-9, atol=1e-9)
    check_gradient(program, fun)
    check_second_order(program, fun)


@examples(2 * settings().max_examples)
@given(programs(depth=2, scalars_only=True))
def test_native(program):
    """Value, gradient and second order on the native backend."""

    def fun(x, y):
        return program(Staged(), x, y, None)  # that has no vectors

    def weighted(x, y):
        dx, dy = wend.grad(fun, (0, 1))(x, y)
        return dx * 2.0 - dy

    both = wend.value_and_grad(fun, (0, 1)), wend.grad(weighted, (0, 1))
    expected = both[0](*ARGS[:2]), both[1](*ARGS[:2])
    with wend.config(backend="native"):
        found = both[0](*ARGS[:2]), both[1](*ARGS[:2])
    np.testing.assert_allclose(found[0][0], plain(program, *ARGS)[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found[0][1], complex_step(program, AT)[0][:2], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found[0][1], expected[0][1], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-9, atol=1e-10)


@pytest.mark.slow
@examples(2000)
@given(programs(depth=3))
def test_long_search(program):
    check_value(program)
    check_gradient(program)
    check_second_order(program)
