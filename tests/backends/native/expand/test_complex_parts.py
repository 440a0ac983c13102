"""Chains of operations on complex arrays: computed in one loop, as NumPy computes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.helpers.graphs import traced

import wend
from wend.backends.native.backend import BACKEND

ODD = [0.0, -0.0, 1.0, -2.5, 0.3, np.pi, 709.5, 1e200, -1e300, 1e-310, np.inf, -np.inf, np.nan]
POSITIONS = np.array([3, 0, 5, 5, -1, 2])

UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": lambda x: -x,
    "conj": np.conj,
    "square": lambda x: x**2,
    "cube": lambda x: x**3,
    "inverse": lambda x: x**-2,
    "reciprocal": lambda x: 1 / x,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "abs": lambda x: np.abs(x) * (1 + 0j),
    "real": lambda x: x.real + 1j,
    "turn": lambda x: x * 1j,
    "transpose": lambda x: x.T,
    "reverse": lambda x: x[::-1],
    "rows": lambda x: x[POSITIONS],
    "row": lambda x: x - x[2],
    "column": lambda x: x * x[:, 1:2],
    "sum": lambda x: x - x.sum(axis=0),
    "mean": lambda x: x - np.mean(x),
    "dot": lambda x: x * np.vdot(x[0], x[1]),
    "finite": lambda x: np.where(np.isfinite(x), x, 2j),
    "single": lambda x: x.astype(np.complex64),
    "set": lambda x: stored(x),
    "matmul": lambda x: x @ x,
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "choice": lambda x, y: np.where(x.real > y.imag, x, y),
    "complex": lambda x, y: x.real + 1j * y.imag,
}


def stored(x: Any) -> Any:
    y = x.copy()
    y[1:3] = y[4:6] * 2j
    y[:, 0] += y[:, 1]
    return y


@st.composite
def programs(draw: Any) -> tuple[list[str], Callable[[Any, Any], Any]]:
    """A chain of operations on the last values."""
    names = draw(st.lists(st.sampled_from([*UNARY, *BINARY]), min_size=2, max_size=8))

    def program(x: Any, y: Any) -> Any:
        values = [x, y]
        for name in names:
            if name in UNARY:
                values.append(UNARY[name](values[-1]))
            else:
                values.append(BINARY[name](values[-1], values[-2]))
        return values[-1], values[-2].real

    return names, program


def numbers(seed: int, odd: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    parts = rng.standard_normal((2, 6, 6))
    parts = np.where(rng.random(parts.shape) < odd, rng.choice(ODD, parts.shape), parts)
    result = np.empty((6, 6), complex)
    result.real, result.imag = parts
    return result


@given(programs(), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_as_numpy(program: Any, seed: int) -> None:
    names, function = program
    x, y = numbers(seed, 0.0), numbers(seed + 1, 0.0)
    with np.errstate(all="ignore"):
        expected = function(x, y)
        results = wend.function(function, backend="native")(x, y)
    for result, wanted in zip(results, expected, strict=True):
        assert result.dtype == wanted.dtype
        is_usual = np.isfinite(wanted) & (np.abs(wanted) < 1e30)
        size = np.max(np.abs(wanted), where=is_usual, initial=1e-3)
        tol = 1e-2 if "single" in names else 1e-6  # differences of numbers that are alike
        np.testing.assert_allclose(result[is_usual], wanted[is_usual], rtol=tol, atol=tol * size)


@pytest.mark.parametrize("dtype", ["c16", "c8"])
@pytest.mark.parametrize("name", ["exp", "sqrt", "cube", "inverse", "reciprocal", "abs"])
def test_numbers_that_are_not_usual(name: str, dtype: str) -> None:
    function = UNARY[name]
    with np.errstate(all="ignore"):
        x = np.array([complex(a, b) for a in ODD for b in ODD]).astype(dtype)
        expected = function(x)
        result = wend.function(function, backend="native")(x)
    limits = np.finfo(dtype)
    atol = 4 * limits.smallest_subnormal
    for part in ("real", "imag"):
        mine, theirs = getattr(result, part), getattr(expected, part)
        assert np.array_equal(np.isnan(mine), np.isnan(theirs))
        signs = [np.signbit(z) & ~np.isnan(z) for z in (mine, theirs)]
        assert np.array_equal(*signs)
        np.testing.assert_allclose(mine, theirs, rtol=4 * limits.eps, atol=atol)


@pytest.mark.parametrize("exponent", [1, 2, 3, 4, 7, 99, -1, -3, -5])
def test_integer_powers_are_products(exponent: int) -> None:
    x = numbers(3, 0.0)
    for power in (lambda x: x**exponent, lambda x: x ** np.full(x.shape, exponent + 0j)):
        run = wend.function(power, backend="native")
        np.testing.assert_allclose(run(x), power(x), rtol=1e-15)
        assert "runs in Python" not in str(run.explain())


def test_a_chain_is_one_loop() -> None:
    """No array holds what is between two operations."""

    def wave(psi: Any, v: Any) -> Any:
        return np.conj(psi * np.exp(-0.5j * v) + 2j) / (1 + np.abs(psi) ** 2) - np.sqrt(psi)

    x = numbers(0, 0.0)
    text = BACKEND.text(traced(wave, x, x.real.copy(), optimize=True))
    assert text.count("= call noalias ptr @wend.take") == 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [name for name in UNARY if name != "finite"])
def test_derivatives(name: str) -> None:
    """Of first and second order, as the reference has them."""

    def size(x: Any) -> Any:
        y = UNARY[name](x * np.exp(0.1j * x.real)) + x
        return np.sum(y.real**2 + y.imag)

    x = numbers(5, 0.0)
    results = []
    for backend in ("native", "numpy"):
        slope = wend.grad(wend.function(size, backend=backend))
        curvature = wend.grad(
            wend.function(lambda x, g=slope: np.sum(g(x).imag ** 2), backend=backend)
        )
        results.append((slope(x), curvature(x)))
    for mine, reference in zip(*results, strict=True):
        tol = 1e-4 if name == "single" else 1e-10
        np.testing.assert_allclose(mine, reference, rtol=tol, atol=tol * np.abs(reference).max())


@pytest.mark.parametrize("n", [0, 1, 40])
def test_sizes_that_only_the_run_knows(n: int) -> None:
    def chosen(x: Any) -> Any:
        z = x[x.real > 0]
        return (z * z.conj() + np.exp(1j * z.real)) ** 3, np.sum(z * 2j), z[::-1] / (z + 1)

    x = numbers(n, 0.0).ravel()[:n]
    for mine, theirs in zip(wend.function(chosen)(x), chosen(x), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
