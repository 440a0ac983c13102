"""What a failed check leaves in arguments that are changed in place: what Python leaves."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp


def in_a_loop(a: Any, n: Any) -> Any:
    a[0] = 7.0
    for i in range(n):
        a[i] += 1
        assert i < 2, f"{i}"
        a[1] = 5.0
    return a.sum()


def in_a_while(a: Any, n: Any) -> Any:
    i = 0
    while i < n:
        if i > 1:
            a[0] -= 1.0
            assert a[0] > -1.0
        a[3] += a[0]
        i += 1
    return a[0]


def in_a_branch(a: Any, n: Any) -> Any:
    if n > 1:
        a[0] = 9.0
        assert n < 2
    a[1] = 3.0
    return a[0]


def by_a_view(a: Any, n: Any) -> Any:
    v = a[1:]
    v[0] = 3.0
    assert n < 2
    v[1] = 4.0
    return a.sum()


def as_a_whole(a: Any, n: Any) -> Any:
    a += 1.0
    np.multiply(a, 2.0, out=a)
    wend.raise_if(n > 1, AssertionError, "{}", n)
    a[:] = 0.0
    return n


def before_any_write(a: Any, n: Any) -> Any:
    assert n < 2
    a[0] = 1.0
    return n


def functional(a: Any, n: Any) -> Any:
    def body(i: Any, total: Any) -> Any:
        wend.assert_(i < 2)
        return total + i

    a[0] = 1.0
    a[1] = wend.fori_loop(0, n, body, 0)
    return a.sum()


PROGRAMS = [
    *(in_a_loop, in_a_while, in_a_branch, by_a_view, as_a_whole, before_any_write, functional)
]


def outcome(fun: Callable[..., Any], n: int) -> tuple[Any, ...]:
    a, b = np.zeros(4), np.zeros(3)
    try:
        result: Any = float(fun(a, b, n) if fun.__name__.startswith("of_") else fun(a, n))
    except AssertionError:
        result = "failed"
    return result, a.tolist(), b.tolist()


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_arguments_are_what_the_assignments_left(program: Any, backend: str) -> None:
    compiled = wend.function(program, backend=backend)
    failed = set()
    for n in (1, 5, 5, 2, 5, 5, 1):  # the later ones by the fast path
        expected = outcome(program, n)
        assert outcome(compiled, n) == expected
        failed.add(expected[0] == "failed")
    assert failed == {True, False}


def of_two(a: Any, b: Any, n: Any, inner: Any) -> Any:
    b[0] = 4.0
    inner(a, n)
    b[1] = 5.0
    return a.sum()


def of_one(a: Any, b: Any, n: Any, inner: Any) -> Any:
    a[2] = -1.0
    inner(a, n)
    a[2] = -2.0
    return a.sum()


def of_a_copy(a: Any, b: Any, n: Any, inner: Any) -> Any:
    a[2] = -1.0
    c = a * 1.0
    for _ in range(2):
        inner(c, n)
    a[2] = c[1]
    return a.sum()


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("outer", [of_one, of_two, of_a_copy])
@pytest.mark.parametrize("inner", [in_a_loop, in_a_branch, before_any_write])
def test_a_function_that_is_called_fails(outer: Any, inner: Any, backend: str) -> None:
    callee = wend.function(inner)

    def of_compiled(a: Any, b: Any, n: Any) -> Any:
        return outer(a, b, n, callee)

    def of_plain(a: Any, b: Any, n: Any) -> Any:
        return outer(a, b, n, inner)

    compiled = wend.function(of_compiled, backend=backend)
    compiled.__name__ = "of_compiled"
    for n in (1, 5, 5, 1, 5):
        assert outcome(compiled, n) == outcome(of_plain, n)


def test_gradients_and_checkpoints() -> None:
    @wend.checkpoint
    def checked(x: Any, n: Any) -> Any:
        assert n < 2
        return wnp.sin(x)

    def loss(x: Any, a: Any, n: Any) -> Any:
        a[0] = 5.0
        y = checked(x, n)
        assert n > 0
        a[1] = 6.0
        return y

    for fun in (wend.grad(loss), wend.value_and_grad(loss), wend.function(loss)):
        for n, contents in ((1, [5.0, 6.0]), (3, [5.0, 0.0]), (0, [5.0, 0.0]), (3, [5.0, 0.0])):
            a = np.zeros(2)
            try:
                fun(2.0, a, n)
            except AssertionError:
                assert n != 1
            assert a.tolist() == contents


def test_a_function_with_a_rule_fails() -> None:
    @wend.custom_vjp
    def checked(x: Any, n: Any) -> Any:
        assert n < 2
        return wnp.sin(x)

    def forward(x: Any, n: Any) -> Any:
        return checked(x, n), (x, n)

    def backward(residuals: Any, ct: Any) -> Any:
        return ct * wnp.cos(residuals[0]), None

    checked.defvjp(forward, backward)

    def loss(x: Any, a: Any, n: Any) -> Any:
        a[0] = 5.0
        y = checked(x, n)
        a[1] = 6.0
        return y

    for backend in ("numpy", "native"):
        with wend.config(backend=backend):
            for fun in (wend.grad(loss), wend.function(loss)):
                for n, contents in ((1, [5.0, 6.0]), (3, [5.0, 0.0]), (3, [5.0, 0.0])):
                    a = np.zeros(2)
                    with contextlib.suppress(AssertionError):
                        fun(2.0, a, n)
                    assert a.tolist() == contents


def test_a_read_only_argument_is_refused() -> None:
    a = np.zeros(4)
    a.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        wend.function(in_a_branch)(a, 5)


def test_variables_hold_what_was_assigned() -> None:
    v = wend.Variable(0.0)

    @wend.function
    def fun(n: Any) -> Any:
        for i in range(n):
            v.assign(i * 1.0)
            wend.raise_if(i > 2, KeyError, "{}", i)
            v.assign_add(0.5)
        return v.value

    assert fun(2) == 1.5
    with pytest.raises(KeyError, match="3"):
        fun(9)
    assert v.concrete == 3.0
