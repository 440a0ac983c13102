"""Random programs by tapes and in eager mode, against the compiled gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given, reject, settings
from tests.autodiff.test_fuzz import ARGS, WEIGHTS, _joined, check_gradient, examples
from tests.helpers.random_programs import Program, programs, staged

import wend
import wend.numpy as wnp
from wend.base.errors import CarryError, TypeMismatchError


def by_tape(fun: Callable[..., Any], args: Any) -> Any:
    with wend.GradientTape() as tape:
        watched = tape.watch(args)
        value = fun(*watched)
    return tape.gradient(value, watched, unconnected_gradients="zero")


def weighted(gradient: Callable[..., Any]) -> Callable[..., Any]:
    def fun(x: Any, y: Any, v: Any) -> Any:
        dx, dy, dv = gradient(x, y, v)
        return WEIGHTS[0] * dx + WEIGHTS[1] * dy + wnp.sum(WEIGHTS[2:] * dv)

    return fun


def agree(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(_joined(found), _joined(expected), rtol=1e-9, atol=1e-9)


@examples(settings().max_examples)
@given(programs(depth=2))
def test_gradients(program: Program) -> None:
    fun = staged(program)
    expected = wend.grad(fun, (0, 1, 2))(*ARGS)
    agree(by_tape(wend.function(fun), ARGS), expected)
    agree(by_tape(fun, ARGS), expected)
    agree(wend.function(lambda *args: by_tape(fun, args))(*ARGS), expected)
    with wend.config(eager=True):
        check_gradient(program)


@examples(settings().max_examples)
@given(programs(depth=1))
def test_second_order(program: Program) -> None:
    fun = staged(program)
    expected = wend.grad(weighted(wend.grad(fun, (0, 1, 2))), (0, 1, 2))(*ARGS)
    for form in (fun, wend.function(fun)):
        agree(by_tape(weighted(lambda *args: by_tape(form, args)), ARGS), expected)  # noqa: B023
    nested = wend.function(
        lambda *args: by_tape(weighted(lambda *inner: by_tape(fun, inner)), args)
    )
    agree(nested(*ARGS), expected)
    with wend.config(eager=True):
        agree(wend.grad(weighted(wend.grad(fun, (0, 1, 2))), (0, 1, 2))(*ARGS), expected)


@examples(settings().max_examples)
@given(programs(depth=2))
def test_unknown_size(program: Program) -> None:
    """A function of a vector whose size is a symbol of its graph."""
    spec = wend.TensorSpec
    signature = [spec([]), spec([]), spec([None], name="v")]
    fun = wend.function(staged(program), input_signature=signature)
    try:
        fun(*ARGS)
    except (CarryError, TypeMismatchError):
        reject()  # a carry that may change its size is refused, and rightly
    args = tuple(map(np.asarray, ARGS))
    agree(by_tape(fun, args), wend.grad(staged(program), (0, 1, 2))(*ARGS))
    expected = wend.grad(weighted(wend.grad(staged(program), (0, 1, 2))), (0, 1, 2))(*ARGS)
    agree(by_tape(weighted(lambda *args: by_tape(fun, args)), args), expected)
    traced = wend.function(lambda *args: by_tape(staged(program), args), input_signature=signature)
    agree(traced(*ARGS), wend.grad(staged(program), (0, 1, 2))(*ARGS))
