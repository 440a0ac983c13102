"""Gradients through branches that change some carries run in lanes, with the bits of elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
from wend.backends.strict import same_bits

RNG = np.random.default_rng(4)
XS = RNG.uniform(0.05, 1.5, 60)
TRIPS = RNG.geometric(0.1, 60) - 1
STEEP = RNG.geometric(0.1, 60) * 1.0


def heun(x: Any, k: Any) -> Any:
    """Steps of a size that the error decides; those of too large an error change no state."""
    t, h = 0.0, 0.1
    while t < 1.0:
        h = np.minimum(h, 1.0 - t)
        first = -k * x * x
        y = x + h * first
        second = -k * y * y
        error = np.abs(h * (second - first)) / 2
        if error < 1e-3:
            t, x = t + h, x + h * (first + second) / 2
        h = h * np.minimum(2.0, np.maximum(0.3, 0.9 * np.sqrt(1e-3 / (error + 1e-12))))
    return x


def one_sided(x: Any, n: Any) -> Any:
    s, k = 0.0, 0
    while k < n:
        if x > 0.7:
            s = s + np.sqrt(x - 0.7)
            x = x * 0.6
        elif x > 0.4:
            s = s * x
        else:
            x = x + 0.45 * x * x + 0.2
        k = k + 1
    return s + x


def nested_branches(x: Any, n: Any) -> Any:
    y, z, k = x, 1.0, 0
    while k < n:
        if k % 2 == 0:
            if y > 0.5:
                z = z * y
            y = y * 0.9
        else:
            y = 0.5 * y * y * z + 0.3
        k = k + 1
    return y if z < 0.5 else y * z


PROGRAMS = [(heun, STEEP), (one_sided, TRIPS), (nested_branches, TRIPS)]


@pytest.mark.parametrize(("fun", "second"), PROGRAMS)
def test_gradients_in_lanes_have_the_bits_of_elements(fun: Any, second: Any) -> None:
    both = wend.value_and_grad(fun)
    alone = wend.function(both)
    vmapped = wend.vmap(both)
    results = vmapped(XS, second)
    rows = [alone(x, n) for x, n in zip(XS, second, strict=True)]
    for x, column in zip(results, zip(*rows, strict=True), strict=True):
        assert same_bits(x, np.array(column))
    assert " lanes" in vmapped.explain()


@pytest.mark.parametrize(("fun", "second"), PROGRAMS)
def test_second_order(fun: Any, second: Any) -> None:
    twice = wend.grad(lambda x, n: wend.grad(fun)(x, n) ** 2)
    alone = wend.function(twice)
    expected = [alone(x, n) for x, n in zip(XS, second, strict=True)]
    np.testing.assert_allclose(wend.vmap(twice)(XS, second), expected, rtol=1e-9, atol=1e-9)
