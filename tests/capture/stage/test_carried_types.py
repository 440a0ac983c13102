"""Loops whose arrays change their sizes from trip to trip, against plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wend
from wend.base.errors import CarryError
from wend.testing import check_grads

XS = np.sin(np.arange(1.0, 82.0))
LONG = 70  # trips, more than Python runs


def shrinking(x, n):
    for _ in range(n):
        x = 0.6 * x[1:] + 0.4 * x[:-1]
    return x


def together(x, n):
    y = x * 2.0
    for _ in range(n):
        x, y = x[1:] + 0.1 * y[:-1], y[1:]
    return x * y


def apart(x, n):
    y = x * 2.0
    for k in range(n):
        x = x[1:]
        if k % 2 == 0:
            y = y[:-1]
    return x.sum() * y


def growing(x, n):
    out = np.zeros(0)
    while len(out) < n:
        out = np.append(out, x[0] * len(out))
        x = x * 0.99
    return out


def growing_from_none(x, n):
    rows = None
    for k in range(n):
        row = x[:3] * k
        rows = row if rows is None else np.vstack([rows, row])
    return rows


def halving(x, n):
    x = x[:64]
    trips = 0
    while len(x) > 1 and trips < n:
        x = x[::2] * x[1::2] + x[0]
        trips += 1
    return x, trips


def triangle(x, n):
    row = x[:1]
    for _ in range(n):
        row = np.concatenate([x[:1], 0.5 * (row[1:] + row[:-1]), x[1:2]])
    return row


def minors(x, n):
    a = np.outer(x, x) + np.diag(x * x + 2.0)
    for _ in range(n):
        a = a[1:, 1:] - np.outer(a[1:, 0], a[0, 1:]) / a[0, 0]
    return a


def in_a_loop(x, n):
    total = 0.0
    for k in range(n):
        y = x
        for _ in range(k):
            y = y[1:]
        total = total + y.sum()
    return total


def in_place(x, n):
    for _ in range(n):
        x = x[1:].copy()
        x[0] += 1.0
        x *= 1.01
    return x


def left_early(x, n):
    for k in range(n):
        x = x[1:]
        if k > 66:
            return x, k
    return x * 0.0, -1


class Stencil:
    def __init__(self, x):
        self.x, self.steps = x, 0

    def step(self):
        self.x = self.x[2:] - 0.5 * self.x[:-2]
        self.steps += 1


def of_an_object(x, n):
    stencil = Stencil(x)
    while len(stencil.x) > 5 and stencil.steps < n:
        stencil.step()
    return stencil.x, stencil.steps


PROGRAMS = [
    *(shrinking, together, apart, growing, growing_from_none, halving, triangle, minors),
    *(in_a_loop, in_place, left_early, of_an_object),
]


def same(result: Any, expected: Any) -> None:
    for one, other in zip(wend.tree.leaves(result), wend.tree.leaves(expected), strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_results_are_those_of_python(program: Callable[..., Any], backend: str) -> None:
    with wend.config(backend=backend):
        compiled = wend.function(program)
        for n in (LONG, 3, 0 if program is not growing_from_none else 1):
            same(compiled(XS, n), program(XS, n))
        known = wend.function(lambda x: program(x, LONG))
        same(known(XS), program(XS, LONG))


@pytest.mark.sampled
@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_derivatives(program: Callable[..., Any], backend: str) -> None:
    def loss(t):
        results = wend.tree.leaves(program(XS + t * np.cos(3.0 * XS), LONG))
        return sum((x**2).sum() if x.dtype.kind == "f" else 0.0 for x in map(np.asarray, results))

    with wend.config(backend=backend):
        check_grads(loss, (0.07,), order=1)


STEPS: list[Callable[..., Any]] = [
    lambda x, k: x[1:],
    lambda x, k: x[:-1] * 0.9,
    lambda x, k: np.append(x, x[0] * k),
    lambda x, k: x[1:] + x[:-1],
    lambda x, k: np.concatenate([x, x[:2]]),
    lambda x, k: x[x > -0.5] * 0.9 + 0.1,
    lambda x, k: np.sin(x) + 1.0,
    lambda x, k: x[1:] if k % 2 == 0 else x * 0.5,
]


@given(
    st.lists(st.sampled_from(range(len(STEPS))), min_size=1, max_size=3),
    st.integers(5, 40),
    st.integers(0, 12),
)
def test_random_steps(choice: list[int], size: int, trips: int) -> None:
    def program(x: Any, n: Any) -> Any:
        for k in range(n):
            if len(x) > 4:
                for j in choice:
                    x = STEPS[j](x, k)
        return x

    x = np.linspace(0.3, 1.7, size)
    expected = program(x, trips)
    same(wend.function(backend="numpy")(program)(x, np.int64(trips)), expected)


def test_sizes_stay_known_where_python_runs_the_loop() -> None:
    compiled = wend.function(lambda x: shrinking(x, 5))
    compiled(XS)
    assert f"f64[{XS.size - 5}]" in str(compiled.get_concrete_function(XS).graph)


def test_elements_of_a_map() -> None:
    ps = np.array([0.1, 0.4, 0.5])
    mapped = wend.vmap(lambda p: together(p * XS, LONG).sum())
    same(mapped(ps), np.array([together(p * XS, LONG).sum() for p in ps]))
    check_grads(mapped, (ps,), order=1)


def test_another_rank_is_refused_as_before() -> None:
    @wend.function
    def program(x, n):
        for _ in range(n):
            x = x[None]
        return x

    with pytest.raises(CarryError, match=r"`x` enters the loop as f64\[81\], .*f64\[1,81\]"):
        program(XS, LONG)
