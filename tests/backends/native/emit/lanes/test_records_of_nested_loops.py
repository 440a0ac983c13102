"""Loops inside loops keep records in lanes; gradients have the bits of elements one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
from wend.backends.native.emit.lanes import replay
from wend.backends.strict import same_bits

RNG = np.random.default_rng(28)
XS = RNG.uniform(0.3, 3.0, 61)
OUTER = RNG.integers(0, 6, 61)
INNER = RNG.geometric(0.2, 61) - 1


def newton(x: Any, n: Any, m: Any) -> Any:
    """An inner loop that ends by its test, as often as the data say."""
    z = x
    for _ in range(n):
        y = z
        while np.abs(y * y - x) > 1e-6 * x:
            y = 0.5 * (y + x / y)
        z = 0.9 * y + 0.3 * m * z
    return z


def counted(x: Any, n: Any, m: Any) -> Any:
    z = x
    for i in range(n):
        for _ in range(m - i):
            z = x / (1.0 + z * z) + 0.1
    return z * z


def known_trips(x: Any, n: Any, m: Any) -> Any:
    z = x
    for i in range(4):
        for _ in range(n):
            z = x / (1.0 + z * z) + 0.1 * i
        y = z
        while y > 0.1 * m + 0.2:
            for _ in range(40):
                y = 0.98 * y
        z = 0.5 * z + y * x
    return z


def two_in_a_row(x: Any, n: Any, m: Any) -> Any:
    s = 0.0
    for _i in range(n):
        y = x + s
        while y > 0.5:
            y = 0.7 * y / (1.0 + 0.1 * y)
        for _ in range(m):
            y = y / (1.0 + y) + 0.2 * x
        s = s + y * y
    return s


def three_levels(x: Any, n: Any, m: Any) -> Any:
    z = x
    for i in range(n):
        for j in range(i + 1):
            while np.abs(z) < m:
                z = z * 1.5 + x
            z = z / (2.0 + z * z) + 0.1 * x * j
    return z


def inner_in_the_test(x: Any, n: Any, m: Any) -> Any:
    z, k = x, 0
    while True:
        y = z
        for _ in range(m):
            y = 0.5 * (y + x / y)
        k = k + 1
        if k > n:
            break
        z = 0.5 * y * z + 0.1
    return z + y


def ended_inside(x: Any, n: Any, m: Any) -> Any:
    """The inner loop decides whether the outer one goes on, and has records of its last run."""
    z, k = x, 0

    def root(z: Any) -> Any:
        y = z
        while np.abs(y * y - x) > 1e-4 * x:
            y = 0.5 * (y + x / y)
        return y

    while (y := root(z)) * z < m and k < n:
        z, k = 0.5 * z * y * 1.25 + 0.1 * x, k + 1
    return z * y


PROGRAMS = [
    newton,
    counted,
    known_trips,
    two_in_a_row,
    three_levels,
    inner_in_the_test,
    ended_inside,
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("bound", [replay.MAX_BYTES, 1 << 11])
@pytest.mark.parametrize("fun", PROGRAMS)
def test_gradients_in_lanes_have_the_bits_of_elements(
    fun: Any, bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With little memory for records, elements run forward and backward a few at a time."""
    monkeypatch.setattr(replay, "MAX_BYTES", bound)
    monkeypatch.setattr(replay, "FEWEST_TRIPS", 1)
    both = wend.value_and_grad(fun)
    alone, vmapped = wend.function(both), wend.vmap(both)
    rows = [alone(*args) for args in zip(XS, OUTER, INNER, strict=True)]
    for x, column in zip(vmapped(XS, OUTER, INNER), zip(*rows, strict=True), strict=True):
        assert same_bits(x, np.array(column))
    assert " lanes" in vmapped.explain()


def test_a_loop_and_its_backward_loop_inside_another() -> None:
    def descent(x: Any, n: Any, m: Any) -> Any:
        z = x
        for _ in range(n):
            z = z - 0.1 * wend.grad(counted)(z, m, 3)
        return z

    alone, vmapped = wend.function(descent), wend.vmap(descent)
    rows = [alone(*args) for args in zip(XS, OUTER, INNER % 4, strict=True)]
    assert same_bits(vmapped(XS, OUTER, INNER % 4), np.array(rows))
    assert " lanes" in vmapped.explain()
