"""Complex numbers by their parts: as NumPy has them, without Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend

X = np.array([[1 + 2j, -3j, 0.5], [2.0, -1 + 1j, 4j]])
POSITIONS = np.array([1, 0, 1])
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum(axis=0),
    "mean": lambda x: x.mean(),
    "cumsum": lambda x: np.cumsum(x, axis=1),
    "pad": lambda x: np.pad(x, 1, constant_values=2),
    "where": lambda x: np.where(x.real > 0, x, 1j),
    "dot": lambda x: x @ x.T,
    "convolve": lambda x: np.convolve(x[0], x[1]),
    "einsum": lambda x: np.einsum("ij,ij->", x, x.conj()),
    "astype": lambda x: (x.astype(bool), x.real.astype(np.complex64)),
    "array": lambda x: np.array([x[0, 0], x[1, 1] * 2]),
    "gather": lambda x: x[:, POSITIONS],
    "loop": lambda x: sum(x[k % 2, k % 3] ** 2 / (1 + k) for k in range(4)),
    "functions": lambda x: np.exp(x) * np.sin(x) / np.sqrt(x + 1) + np.log(x + 3) ** 2,
}


def parts(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_numpy(name: str, dtype: str) -> None:
    function, x = FUNCTIONS[name], X.astype(dtype)
    run = wend.function(function, backend="native")
    found, expected = run(x), function(x)
    for part, right in zip(*map(parts, (found, expected)), strict=True):
        assert np.asarray(part).dtype == np.asarray(right).dtype
        tol = 32 * float(np.finfo(dtype).eps)
        np.testing.assert_allclose(part, right, rtol=tol, atol=tol)
    assert "runs in Python" not in str(run.explain())


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "astype"])
def test_gradients(name: str) -> None:
    function = FUNCTIONS[name]

    def size(x: Any) -> Any:
        y = function(x)
        return np.sum(y.real**2 + y.imag**2)

    native = wend.grad(wend.function(size, backend="native"))
    reference = wend.grad(wend.function(size, backend="numpy"))
    np.testing.assert_allclose(native(X), reference(X), rtol=1e-12, atol=1e-12)
    assert "runs in Python" not in str(native.explain())


def test_a_scalar_loop_makes_no_call_of_python() -> None:
    """Mandelbrot's recurrence, with casts from reals."""

    def escape(x, y):
        c, z, count = complex(x, y), 0j, 0
        while count < 50 and z.real * z.real + z.imag * z.imag < 4.0:
            z = z * z + c
            count += 1
        return count

    run = wend.function(escape, backend="native")
    for point in ((0.3, 0.5), (-1.0, 0.0), (1.0, 1.0)):
        assert run(*point) == escape(*point)
    assert "runs in Python" not in str(run.explain())


def growing(x: Any, n: Any) -> Any:
    y = x.astype(complex)
    for _ in range(n):
        y = np.convolve(y, y[:2]) * 1j
    return y.imag + y.real


@pytest.mark.parametrize("n", [0, 1, 3])
def test_products_of_sizes_that_only_the_run_knows(n: int) -> None:
    x = np.arange(1.0, 4.0)
    np.testing.assert_allclose(wend.function(growing)(x, np.int64(n)), growing(x, n))
