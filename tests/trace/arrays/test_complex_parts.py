"""Writes to real and imaginary parts of arrays, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from wend.testing import check_grads


def of_traced(x: Any) -> Any:
    z = x + 1j * x
    z.real[1], z.imag = 7.0, z.imag * 2.0
    z.imag *= x
    z.real = x * x
    return z


def views_see_writes(x: Any) -> Any:
    z = x + 1j * x
    real, tail = z.real, z.imag[1:]
    z[0] = 5
    real += 1.0
    tail[0] = 3.0
    return z, real, tail


def of_a_result(x: Any) -> Any:
    part = np.fft.ifft(np.fft.fft(x) * 2)[:3].real
    part /= part[0]
    return part


def by_masks(x: Any) -> Any:
    z = x + 1j * x
    z.real[z.real > 2] = 0
    np.imag(z)[0] = 4.0
    return z


def of_a_known_array(x: Any) -> Any:
    z, w = np.zeros(6, complex), np.zeros((2, 2), np.complex64)
    known = z.imag
    for k in range(6):
        z.real[k], z.imag[k] = x[k], -x[k]
    w.real = 2.0
    w.T.imag[1] = x[:2]
    w.imag = w.imag + 1.0
    return z, known, w


def in_a_branch(x: Any) -> Any:
    z = x.reshape(2, 3) + 0j
    part = z.real.T
    if x[0] > 0:
        part[0] = 9.0
    return z


def of_real_arrays(x: Any) -> Any:
    y = x * 2.0
    y.real[0] = 5.0
    return y, y.imag


PROGRAMS = (
    *(of_traced, views_see_writes, of_a_result, by_masks, of_a_known_array, in_a_branch),
    of_real_arrays,
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_writes_to_parts_are_writes_to_the_array(program: Callable[..., Any], backend: str) -> None:
    x = np.arange(1.0, 7.0)
    np.testing.assert_equal(wend.function(program, backend=backend)(x), program(x))


def test_parts_of_arguments_are_written_back() -> None:
    def shift(z: Any) -> None:
        z.real += 1.0
        z.imag[0] = 5.0

    z, w = (np.array([1 + 2j, 3j]) for _ in range(2))
    shift(z)
    wend.function(shift)(w)
    np.testing.assert_equal(w, z)


def test_writes_to_parts_have_derivatives() -> None:
    def loss(x: Any) -> Any:
        z = of_traced(x * 1.0)
        return (z * np.conj(z)).real.sum() + z.imag[0]

    check_grads(loss, (np.array([0.5, 1.5, 2.0]),), order=2)


def test_the_imaginary_part_of_real_arrays_is_read_only() -> None:
    def program(x: Any) -> Any:
        x.imag = 1.0

    with pytest.raises(TypeError, match="does not have imaginary part"):
        wend.function(program)(np.ones(2))
