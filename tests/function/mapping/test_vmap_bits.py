"""How far the results of lanes are from those of one element: a few ulp, none in strict mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from wend.backends.strict import same_bits

FUNCTIONS = (
    *(np.sin, np.cos, np.tan, np.exp, np.exp2, np.expm1, np.tanh, np.sinh, np.cosh, np.log),
    *(
        np.log2,
        np.log10,
        np.log1p,
        np.arcsin,
        np.arccos,
        np.arctan,
        np.arcsinh,
        np.arctanh,
        np.cbrt,
    ),
)
XS = np.random.default_rng(0).uniform(0.01, 0.99, 300)
TRIPS = np.random.default_rng(1).integers(1, 4, 300)
# Each of the two ways is within 4 ulp of the exact value
FEW_ULP = 8


def once(fun: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """A loop whose last trip computes a function, and which the data end."""

    def program(x: Any, n: Any) -> Any:
        y, k = x, 0
        while k < n:
            y, k = fun(x), k + 1
        return y

    return program


def product(x: Any, n: Any) -> Any:
    """A product with a matrix of two rows: sums of two terms of one sign."""
    matrix, vector, k = np.array([[x, 0.3], [0.7, x]]), np.array([x, 1.0 - x]), 0
    while k < n:
        vector, k = matrix @ vector, k + 1
    return vector[0]


def ulps(x: Any, y: Any) -> Any:
    return np.max(np.abs(x - y) / np.spacing(np.abs(y)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("fun", FUNCTIONS)
def test_functions_of_lanes_are_within_few_ulp_of_those_of_one_element(
    fun: Any, dtype: Any
) -> None:
    program, xs = once(fun), XS.astype(dtype)
    alone, vmapped = wend.function(program), wend.vmap(program)
    found = vmapped(xs, TRIPS)
    assert " lanes" in vmapped.explain()
    assert ulps(found, np.array([alone(x, n) for x, n in zip(xs, TRIPS, strict=True)])) <= FEW_ULP


@pytest.mark.parametrize("fun", [once(np.sin), once(np.tanh), product])
def test_strict_mode_has_the_bits_of_one_element(fun: Any) -> None:
    with wend.config(strict=True):
        found = wend.vmap(fun)(XS, TRIPS)
        alone = wend.function(fun)
        assert same_bits(found, np.array([alone(x, n) for x, n in zip(XS, TRIPS, strict=True)]))


def test_products_of_lanes_are_within_few_ulp_of_those_of_one_element() -> None:
    alone, vmapped = wend.function(product), wend.vmap(product)
    found = vmapped(XS, TRIPS)
    assert " lanes" in vmapped.explain()
    expected = np.array([alone(x, n) for x, n in zip(XS, TRIPS, strict=True)])
    assert ulps(found, expected) <= 3 * TRIPS.max()
