"""Branches in loops whose paths leave arrays of different sizes, against plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
from wend.base.errors import AliasError
from wend.testing import check_grads

XS = np.sin(np.arange(1.0, 82.0))
LONG = 70


def of_one_trip(x, n):
    total = 0.0
    for k in range(n):
        y = x[1:] if k % 3 == 0 else x[:-3]
        total = total + (y**2).sum() * k
    return total


def carried(x, n):
    for k in range(n):
        if k % 2 == 0:
            x = x[1:] * 1.1
        else:
            x = np.concatenate([x, x[-1:] * 0.5])
    return x


def returned(x, n):
    def part(x, k):
        if k % 3 == 0:
            return x[::2]
        return x

    total = 0.0
    for k in range(n):
        total = total + np.sin(part(x, k)).sum()
    return total


def of_a_matrix(x, n):
    a = np.outer(x[:9], x[:9])
    for k in range(n):
        if a.shape[0] > 2 and a.shape[1] > 2:
            if k % 2:
                a = a[1:]
            else:
                a = a[:, 1:] * 1.1
    return a


def filtered(x, n):
    out = np.zeros(0)
    for k in range(n):
        if np.sin(k + x[0]) > 0:
            out = np.append(out, x[0] * k)
    return out


PROGRAMS = of_one_trip, carried, returned, of_a_matrix, filtered


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_results_are_those_of_python(program: Callable[..., Any], backend: str) -> None:
    with wend.config(backend=backend):
        for n in (LONG, 0, 1, 6):
            result, expected = wend.function(program)(XS, n), program(XS, n)
            assert np.shape(result) == np.shape(expected)
            np.testing.assert_allclose(result, expected, rtol=1e-12)
        known = wend.function(lambda x: program(x, LONG))
        np.testing.assert_allclose(known(XS), program(XS, LONG), rtol=1e-12)


@pytest.mark.sampled
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_derivatives(program: Callable[..., Any]) -> None:
    direction = np.cos(3.0 * XS)
    check_grads(lambda t: (program(XS + t * direction, LONG) ** 2).sum(), (0.01,), order=1)


def test_a_change_of_either_array_is_seen_as_before() -> None:
    @wend.function
    def program(x, n):
        for k in range(n):
            y = x[1:] if k % 2 else x[2:]
            y[0] = 5.0
        return x

    with pytest.raises(AliasError):
        program(XS.copy(), LONG)
