"""Maps of complex numbers and small arrays run in lanes, each element as in a call of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest

import wend
from wend.passes import lane_maps

RNG = np.random.default_rng(3)
COUNT = 100
POINTS = RNG.uniform(-2, 0.5, COUNT) + 1j * RNG.uniform(-1, 1, COUNT)
STARTS = RNG.uniform(0.1, 1.5, COUNT)


@pytest.fixture(params=[4, 16], autouse=True)
def lanes(request: pytest.FixtureRequest) -> Iterator[int]:
    """So many lanes, for few elements too."""
    width = request.param
    with mock.patch.multiple(lane_maps, NARROW=width, WIDE=width, MIN_ELEMENTS=0):
        yield width


def mandelbrot(c: Any) -> Any:
    z, k = 0j * c, 0
    while k < 50 and abs(z) <= 2.0:
        z, k = z * z + c, k + 1
    return k, z


def newton(c: Any) -> Any:
    """Division, equality and the parts of complex numbers."""
    z, k = c, 0
    while k < 30 and abs(z * z * z - 1) > 1e-10:
        z = z - (z * z * z - 1) / (3 * z**2)
        if z == c or np.isnan(z):
            break
        z, k = complex_part(z), k + 1
    return z


def complex_part(z: Any) -> Any:
    return np.conj(z) if z.real > 1.5 else -(-z.real - 1j * z.imag)


def length(c: Any) -> Any:
    z, k = c, 0
    while k < 8 and z.real * z.real + z.imag * z.imag < 4.0:
        z, k = z * z / (1.5 + z) + c, k + 1
    return z.real * z.real + z.imag * z.imag


def single(c: Any) -> Any:
    z, k = np.complex64(c), 0
    while k < 20 and abs(z) <= np.float32(2):
        z, k = z * z + np.complex64(c), k + 1
    return z


def orbit(x: Any) -> Any:
    """A state of two numbers, in an array."""
    s, k = np.array([x, 0.0]), 0
    while s[0] > -0.75 and k < 40:
        s, k = s + 0.1 * np.array([s[1], -s[0] - 0.2 * x * s[1]]), k + 1
    return s


def energy(x: Any) -> Any:
    s = orbit(x)
    return s @ s


def rotated(x: Any) -> Any:
    """Products with a matrix, sums and comparisons of small arrays."""
    m, v, k = np.array([[0.9, -0.3], [0.3, 0.9]]), np.array([x, 1.0 - x]), 0
    while np.max(np.abs(v)) > 0.2 and k < 25:
        v, k = m @ v, k + 1
    return np.sum(v * v), k


VALUES = [(mandelbrot, POINTS), (newton, POINTS), (length, POINTS), (single, POINTS)]
VALUES += [(orbit, STARTS), (energy, STARTS), (rotated, STARTS)]
GRADIENTS = [(length, POINTS), (energy, STARTS), (lambda x: rotated(x)[0], STARTS)]


def each(fun: Callable[..., Any], xs: Any) -> Any:
    """Return the results of calls of their own, stacked."""
    rows = [wend.tree.leaves(fun(x)) for x in xs]
    return [np.array(column) for column in zip(*rows, strict=True)]


def same_bits(vmapped: Any, expected: Any) -> None:
    for x, y in zip(wend.tree.leaves(vmapped), expected, strict=True):
        np.testing.assert_array_equal(x, y)
        assert x.dtype == y.dtype


def in_lanes(vmapped: Any) -> bool:
    return "lanes, " in vmapped.explain()


@pytest.mark.sampled(9)
@pytest.mark.parametrize("count", [1, 7, 8, 9, COUNT])
@pytest.mark.parametrize(("fun", "xs"), VALUES)
def test_values_are_those_of_calls(fun: Any, xs: Any, count: int) -> None:
    vmapped, alone = wend.vmap(fun), wend.function(fun)
    same_bits(vmapped(xs[:count]), each(alone, xs[:count]))
    assert in_lanes(vmapped)
    plain = wend.function(vmapped, backend="numpy")(xs[:count])
    for x, y in zip(wend.tree.leaves(vmapped(xs[:count])), wend.tree.leaves(plain), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-3 if x.dtype == np.complex64 else 1e-9, atol=1e-12)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("order", "count"), [*((1, n) for n in (1, 7, 8, 9, COUNT)), (2, 9)])
@pytest.mark.parametrize(("fun", "xs"), GRADIENTS)
def test_derivatives_are_those_of_calls(fun: Any, xs: Any, order: int, count: int) -> None:
    slope = first = wend.grad(fun)
    if order == 2:
        slope = wend.grad(lambda x: np.real(first(x)))
    vmapped = wend.vmap(slope)
    found = vmapped(xs[:count])
    assert order == 2 or in_lanes(vmapped)
    expected = np.array([slope(x) for x in xs[:count]])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    plain = wend.function(vmapped, backend="numpy")(xs[:count])
    np.testing.assert_allclose(found, plain, rtol=1e-7, atol=1e-10)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("fun", "xs"), VALUES)
def test_no_elements(fun: Any, xs: Any) -> None:
    for found, row in zip(wend.tree.leaves(wend.vmap(fun)(xs[:0])), each(fun, xs[:1]), strict=True):
        assert found.shape == (0, *row.shape[1:])
        assert found.dtype == row.dtype


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("fun", "xs"), VALUES)
def test_nan_stays_in_its_element(fun: Any, xs: Any) -> None:
    xs = xs[:40].copy()
    xs[[3, 17]] = np.nan
    same_bits(wend.vmap(fun)(xs), each(wend.function(fun), xs))


def test_zero_trips() -> None:
    xs = np.full(20, 3.0 + 1j)
    same_bits(wend.vmap(lambda c: length(c))(xs), each(length, xs))
    slopes = wend.vmap(wend.grad(length))(xs)
    np.testing.assert_array_equal(slopes, [wend.grad(length)(x) for x in xs])


def test_sums_over_elements() -> None:
    """Cotangents of what all elements share are sums, of arrays and complex numbers too."""

    def loss(c: Any, w: Any) -> Any:
        return np.sum(wend.vmap(lambda x: length(x * c) + energy(np.abs(x) * w[0] + w[1]))(POINTS))

    slope = wend.grad(loss, argnums=(0, 1))
    c, w = 0.9 + 0.1j, np.array([0.5, 0.25])
    found, plain = slope(c, w), wend.function(slope, backend="numpy")(c, w)
    assert in_lanes(slope)
    for x, y in zip(found, plain, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-8)


def test_arguments_are_small_arrays() -> None:
    def distance(p: Any, q: Any) -> Any:
        k = 0
        while np.sum((p - q) ** 2) > 0.01 and k < 30:
            p, k = p + 0.3 * (q - p), k + 1
        return p, k

    starts, ends = RNG.standard_normal((COUNT, 2)), np.array([0.5, 0.25])
    vmapped = wend.vmap(distance, in_axes=(0, None))
    same_bits(vmapped(starts, ends), each(lambda p: distance(p, ends), starts))
    assert in_lanes(vmapped)


def test_larger_arrays_stay_as_they_are() -> None:
    def decay(v: Any) -> Any:
        while np.max(v) > 0.1:
            v = 0.5 * v
        return v

    vmapped = wend.vmap(decay)
    xs = RNG.uniform(0, 1, (20, 5))
    same_bits(vmapped(xs), each(decay, xs))
    assert not in_lanes(vmapped)
