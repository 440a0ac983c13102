"""Whole programs mapped over elements, against a Python loop over the elements; none is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.programs import PROGRAMS, Program

BACKENDS = ["numpy", "native", pytest.param("boxed", marks=pytest.mark.sampled)]
EXACT = 1e-9
COUNT = 3


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, arrays: str) -> Any:
    with wend.config(backend=request.param):
        yield request.param


@pytest.fixture(params=PROGRAMS, ids=str)
def program(request: pytest.FixtureRequest) -> Program:
    return request.param


def moved(arg: Any, k: int) -> Any:
    """An argument of element k: floats that differ, so that loops make other trips."""
    array = np.asarray(arg)
    return (array if array.dtype.kind in "iub" else array * (1 + 0.07 * k))[()]


def elements(program: Program, count: int = COUNT) -> list[list[Any]]:
    return [[moved(arg, k) for arg in program.args] for k in range(count)]


def batch(rows: list[list[Any]]) -> list[Any]:
    return [np.stack(column) for column in zip(*rows, strict=True)]


def every(program: Program) -> tuple[int, ...]:
    return tuple(range(len(program.args)))


def close(found: Any, expected: Any, digits: float = EXACT) -> None:
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=digits, atol=digits)


def all_close(found: Any, rows: list[Any], digits: float = EXACT) -> None:
    for part, expected in zip(found, batch(rows), strict=True):
        close(part, expected, digits)


def total(fun: Callable[..., Any], in_axes: Any = 0) -> Callable[..., Any]:
    mapped = wend.vmap(fun, in_axes)
    return lambda *args: wnp.sum(mapped(*args))


def of_gradient(fun: Callable[..., Any], wrt: tuple[int, ...]) -> Callable[..., Any]:
    """A number made of a whole gradient, with another weight for each part."""
    gradient = wend.grad(fun, wrt)
    return lambda *args: sum(
        (k + 1.0) * wnp.sum(part * wnp.cos(part)) for k, part in enumerate(gradient(*args))
    )


@pytest.mark.sampled
def test_values(program, backend):
    rows = elements(program)
    close(wend.vmap(program.fun)(*batch(rows)), [program.fun(*row) for row in rows])


@pytest.mark.sampled
def test_values_of_values(program, backend):
    rows = elements(program)
    columns = [np.stack([column, column[::-1]]) for column in batch(rows)]
    values = [program.fun(*row) for row in rows]
    twice = wend.vmap(wend.vmap(program.fun))
    close(twice(*columns), [values, values[::-1]])


@pytest.mark.sampled(30)
def test_gradients(program, backend):
    rows, wrt = elements(program), every(program)
    gradient = wend.grad(program.fun, wrt)
    expected = [gradient(*row) for row in rows]
    all_close(wend.vmap(gradient)(*batch(rows)), expected)
    all_close(wend.grad(total(program.fun), wrt)(*batch(rows)), expected)


@pytest.mark.sampled
def test_gradients_of_what_all_elements_share(program, backend):
    wrt, shared = every(program), program.args[1:]
    rows = [row[0] for row in elements(program)]
    gradient = wend.grad(program.fun, wrt)
    firsts, *expected = zip(*(gradient(x, *shared) for x in rows), strict=True)
    in_axes = (0, *(None for _ in shared))
    found = wend.grad(total(program.fun, in_axes), wrt)(np.stack(rows), *shared)
    close(found[0], firsts)
    for part, parts in zip(found[1:], expected, strict=True):
        close(part, sum(parts))


@pytest.mark.sampled(30)
def test_tangents(program, backend):
    rows = elements(program)
    columns = batch(rows)
    tangents = [np.cos(np.arange(c.size)).reshape(c.shape) for c in columns]
    tangents = [t if c.dtype.kind == "f" else None for t, c in zip(tangents, columns, strict=True)]

    def tangent(row: Any, direction: Any) -> Any:
        return wend.jvp(program.fun, tuple(row), tuple(direction))[1]

    expected = [
        tangent(row, [None if t is None else t[k] for t in tangents]) for k, row in enumerate(rows)
    ]
    close(wend.vmap(tangent)(columns, tangents), expected)
    close(wend.jvp(wend.vmap(program.fun), tuple(columns), tuple(tangents))[1], expected)


@pytest.mark.sampled(30)
@pytest.mark.parametrize("order", ["vmap of g of g", "g of g of vmap", "g of vmap of g"])
def test_second_gradients(program, order):
    rows, wrt = elements(program), every(program)
    once = of_gradient(program.fun, wrt)
    second = wend.grad(once, wrt)
    fun = {
        "vmap of g of g": wend.vmap(second),
        "g of g of vmap": wend.grad(of_gradient(total(program.fun), wrt), wrt),
        "g of vmap of g": wend.grad(total(once), wrt),
    }[order]
    all_close(fun(*batch(rows)), [second(*row) for row in rows], 1e-8)


@pytest.mark.sampled(40)
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 1000])
def test_batch_sizes(program, count):
    if not all(np.asarray(arg).dtype.kind == "f" for arg in program.args):
        return
    rows = [[moved(arg, k % 7) for arg in program.args] for k in range(count)]
    columns = batch(rows) or [np.zeros((0, *np.shape(arg))) for arg in program.args]
    value, gradient = wend.vmap(wend.value_and_grad(program.fun, every(program)))(*columns)
    some = wend.value_and_grad(program.fun, every(program))
    expected = [some(*row) for row in rows[:7]]
    assert np.shape(value) == (count,)
    for k in range(count):
        close(value[k], expected[k % 7][0])
        for part, other in zip(gradient, expected[k % 7][1], strict=True):
            close(part[k], other)
    for part, column in zip(gradient, columns, strict=True):
        assert np.shape(part) == np.shape(column)
