"""Powers to known exponents: within 2 ulp of mpmath's, at zeros and infinities as NumPy's."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from tests.helpers.graphs import traced

import wend
from wend.backends.native.backend import BACKEND

RNG = np.random.default_rng(1)
EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 1e-310, 2.3e-308, 1.79e308, -1.79e308]
SAMPLES = np.concatenate(
    [
        EDGES,
        [1e-45, -1e-45, 3.4e38, 1.0, -1.0],
        2.0 ** RNG.uniform(-1074, 1024, 120),
        2.0 ** RNG.uniform(-149, 128, 120),
        RNG.uniform(1.0, 4.0, 240),
        -(2.0 ** RNG.uniform(-300, 300, 60)),
    ]
)
EXPONENTS = (-3.0, -2.5, -2.0, -1.5, -1.0, -0.5, 1.5, 2.5, 3.0, 4.0)
DTYPES = [np.float64, np.float32]


def power(exponent: float) -> Any:
    return lambda x: x**exponent


def text_of(fun: Any, *arguments: Any) -> str:
    return BACKEND.text(traced(fun, *arguments, optimize=True))


def ulps(result: Any, exact: mpmath.mpf) -> float:
    bound = result.dtype.type(abs(float(exact)))
    spacing = np.spacing(bound if np.isfinite(bound) else np.finfo(result.dtype).max)
    return float(abs(mpmath.mpf(float(result)) - exact) / mpmath.mpf(float(spacing)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_powers_are_within_two_ulp(exponent: float, dtype: Any) -> None:
    with np.errstate(all="ignore"):
        x = SAMPLES.astype(dtype)
        expected = x ** dtype(exponent)
    found = wend.function(power(exponent))(x)
    assert found.dtype == dtype
    is_limit = ~np.isfinite(expected) | (expected == 0)
    np.testing.assert_array_equal(found[is_limit], expected[is_limit])
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
    numbers = is_limit & ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))
    with mpmath.workprec(200):
        for argument, result in zip(x[~is_limit], found[~is_limit], strict=True):
            exact = mpmath.mpf(float(argument)) ** mpmath.mpf(exponent)
            assert ulps(result, exact) <= 2.0, argument


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_powers_call_no_pow(exponent: float) -> None:
    for size in (1, 5, 9, 100):
        assert "@wend.pow" not in text_of(power(exponent), np.ones(size))
    assert "@pow(" not in text_of(power(exponent), 1.5)


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_numbers_are_as_arrays(exponent: float) -> None:
    def each(x: Any) -> Any:
        powers = np.zeros(len(x))
        for k in range(len(x)):
            powers[k] = x[k] ** exponent
        return powers

    np.testing.assert_array_equal(
        wend.function(each)(SAMPLES), wend.function(power(exponent))(SAMPLES)
    )


def test_other_exponents_call_pow() -> None:
    for exponent in (3.5, 5.0, -3.5, np.pi):
        assert "@wend.pow" in text_of(power(exponent), np.ones(9))
    assert "@wend.pow" in text_of(lambda x: x**x, np.ones(9))


def test_strict_mode_runs_numpys() -> None:
    x = RNG.uniform(0.1, 9.0, 50)
    for exponent in EXPONENTS:
        with wend.config(strict=True):
            found = wend.function(power(exponent))(x)
        assert found.tobytes() == (x**exponent).tobytes()


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_derivatives(exponent: float) -> None:
    x = RNG.uniform(0.5, 2.0, 9)
    slope = wend.grad(lambda x: np.sum(x**exponent))
    np.testing.assert_allclose(slope(x), exponent * x ** (exponent - 1), rtol=1e-14)
    curvature = wend.grad(lambda x: np.sum(slope(x)))
    expected = exponent * (exponent - 1) * x ** (exponent - 2)
    np.testing.assert_allclose(curvature(x), expected, rtol=1e-14, atol=1e-14)


def test_an_exponent_that_a_loop_is_given_is_known() -> None:
    def program(x: Any, steps: Any) -> Any:
        for _ in range(steps):
            x = x + 0.1 * (x * x + 1.0) ** -1.5
        return x

    x = RNG.uniform(0.5, 2.0, 17)
    graph = traced(program, x, 3, optimize=True)
    assert "@wend.pow" not in BACKEND.text(graph)
    for steps in (0, 1, 3):
        np.testing.assert_allclose(wend.function(program)(x, steps), program(x, steps), rtol=1e-14)


@pytest.mark.parametrize("exponent", [-2.0, -1.5, -0.5, 2.5, 4.0])
def test_derivatives_in_loops_call_no_pow(exponent: float) -> None:
    def program(x: Any, steps: Any) -> Any:
        for _ in range(steps):
            x = x + 0.01 * (x * x + 1.0) ** exponent
        return np.sum(x)

    x = RNG.uniform(0.1, 0.5, 17)
    assert "@wend.pow" not in text_of(wend.value_and_grad(program), x, 3)
    step = 1e-6 * np.eye(17)
    slopes = [(program(x + d, 3) - program(x - d, 3)) / 2e-6 for d in step]
    np.testing.assert_allclose(wend.grad(program)(x, 3), slopes, rtol=1e-6)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("size", [1, 8, 40])
@pytest.mark.parametrize("exponent", [0.5, np.float32(0.5), np.float64(0.5)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_number_one_half_is_a_root(dtype: Any, exponent: Any, size: int, backend: str) -> None:
    """At −0.0 and −∞ it is another number than the power by an array of one half."""
    x = np.resize(np.array([-0.0, -np.inf, np.inf, 4.0, 0.0, np.nan], dtype), size)
    halves = np.full(size, 0.5, dtype)
    with np.errstate(all="ignore"):
        root, power_by_array = x**exponent, x**halves
    by_number, traced_power = power(exponent), lambda x, c: x**c
    with wend.config(backend=backend):
        for found in (wend.function(by_number)(x), wend.function(traced_power)(x, exponent)):
            assert found.dtype == root.dtype
            np.testing.assert_array_equal(found, root)
            np.testing.assert_array_equal(np.signbit(found[:1]), np.signbit(root[:1]))
        found = wend.function(traced_power)(x, halves)
        np.testing.assert_array_equal(found, power_by_array)
        np.testing.assert_array_equal(np.signbit(found[:1]), np.signbit(power_by_array[:1]))
