"""Records of a loop that go from one graph to another: on every backend, to the same end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp


def grown(x: Any, k: Any, n: Any) -> Any:
    """Keeps numbers of several dtypes for its way back."""
    low = x * 0
    for _ in range(n):
        flag = x > low
        if flag:
            x = wnp.sin(x * 0.9) - 0.1
        else:
            x = wnp.cos(wnp.asarray(x * (k % 5), np.float32) * 0.1 * x)
            x = wnp.asarray(x, low.dtype)
        k = k * 7
    return x


def halved(x: Any, n: Any) -> Any:
    """Keeps arrays."""
    for _ in range(n):
        x = wnp.sin(x) * x
    return x


@pytest.mark.parametrize("n", [0, 1, 2, 200])
@pytest.mark.parametrize("x", [np.float64(0.7), np.float32(0.7), np.float64(-0.3)])
def test_numbers(n: int, x: Any) -> None:
    found = {}
    for backend in ("native", "numpy"):
        concrete = wend.function(grown, backend=backend).get_concrete_function(x, 3, 2)
        value, run = concrete.forward(x, 3, n)
        again = concrete.forward(x * 2, 3, n)[1]  # its records are its own
        cts = concrete.backward(run, np.ones_like(x)), concrete.backward(again, np.ones_like(x))
        assert concrete.backward(run, np.ones_like(x)) == cts[0]
        found[backend] = (value, cts[0][0], cts[1][0])
    np.testing.assert_allclose(found["native"], found["numpy"], rtol=1e-5)


@pytest.mark.parametrize("n", [0, 3])
def test_arrays(n: int) -> None:
    x = np.linspace(0, 1, 5)
    found = []
    for backend in ("native", "numpy"):
        concrete = wend.function(halved, backend=backend).get_concrete_function(x, 2)
        value, run = concrete.forward(x, n)
        found.append((value, *concrete.backward(run, x)[:1]))
    np.testing.assert_allclose(*found, rtol=1e-13)
