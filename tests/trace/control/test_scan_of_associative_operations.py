"""Partial results of associative operations: as one row after another gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp

BACKENDS = ["native", "numpy"]


def after(f: Any, g: Any) -> Any:
    """First x → f₀ x + f₁, then g."""
    return f[0] * g[0], f[1] * g[0] + g[1]


def product(f: Any, g: Any) -> Any:
    return wnp.einsum("...ij,...jk->...ik", f["m"], g["m"])


def one_by_one(fn: Any, elems: Any, reverse: bool) -> Any:
    rows = [*zip(*elems, strict=True)]
    rows = rows[::-1] if reverse else rows
    results = [rows[0]]
    for row in rows[1:]:
        results.append(fn(results[-1], row))
    results = results[::-1] if reverse else results
    return tuple(np.stack(parts) for parts in zip(*results, strict=True))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 10])
def test_rows_of_maps(n: int, reverse: bool, backend: str) -> None:
    rng = np.random.default_rng(n)
    elems = rng.uniform(0.5, 1.5, (n, 2)), rng.standard_normal((n, 2))
    run = wend.function(lambda x: wend.associative_scan(after, x, reverse), backend=backend)
    for result, wanted in zip(run(elems), one_by_one(after, elems, reverse), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-12)
    slopes = wend.grad(lambda x: np.sum(run(x)[1] ** 2))(elems)

    def loss(x: Any) -> Any:
        total, so_far = 0.0, None
        for k in wend.unroll(range(n)):
            row = tuple(part[n - 1 - k if reverse else k] for part in x)
            so_far = row if so_far is None else after(so_far, row)
            total = total + np.sum(so_far[1] ** 2)
        return total

    for result, wanted in zip(slopes, wend.grad(loss)(elems), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-9, atol=1e-12)


def test_eager_calls_axes_and_trees() -> None:
    x = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(wend.associative_scan(np.add, x), np.cumsum(x, 0))
    for axis in (1, -1):
        result = wend.associative_scan(np.maximum, -x, axis=axis)
        np.testing.assert_array_equal(result, np.maximum.accumulate(-x, axis))
    np.testing.assert_array_equal(wend.associative_scan(np.add, x[:0]), x[:0])
    m = np.random.default_rng(0).standard_normal((5, 2, 2))
    result = wend.associative_scan(lambda f, g: {"m": product(f, g)}, {"m": m})["m"]
    np.testing.assert_allclose(result[3], m[0] @ m[1] @ m[2] @ m[3])
    np.testing.assert_allclose(result[4], m[0] @ m[1] @ m[2] @ m[3] @ m[4])


def test_derivatives_of_second_order() -> None:
    def loss(x: Any) -> Any:
        return np.sum(wend.associative_scan(np.multiply, x) ** 2)

    def direct(x: Any) -> Any:
        return np.sum(np.cumprod(x) ** 2)

    x = np.array([0.5, -1.5, 2.0, 0.7, 1.1])
    np.testing.assert_allclose(wend.hessian(loss)(x), wend.hessian(direct)(x), rtol=1e-10)


def test_the_work_is_linear_and_the_depth_logarithmic() -> None:
    rows = []

    def add(x: Any, y: Any) -> Any:
        rows.append(x.shape[0])
        return x + y

    wend.function(lambda x: wend.associative_scan(add, x))(np.ones(1000))
    assert sum(rows) < 2000
    assert len(rows) < 20


def test_what_it_refuses() -> None:
    x = np.arange(4.0)
    with pytest.raises(wend.WendError, match="differ: elems"):
        wend.associative_scan(after, (x, x[:3]))
    with pytest.raises(wend.WendError, match="no axis 1"):
        wend.associative_scan(np.add, x, axis=1)
    with pytest.raises(wend.WendError, match="another structure"):
        wend.associative_scan(lambda a, b: (a, b), x)
    with pytest.raises(wend.WendError, match="the shape"):
        wend.associative_scan(lambda a, b: np.sum(a + b), x)
    with pytest.raises(wend.WendError, match=r"wend\.scan"):
        wend.function(lambda x: wend.associative_scan(np.add, x[x > 1.0]))(x)
    with pytest.raises(TypeError, match="fn"):
        wend.associative_scan(1.0, x)


@pytest.mark.parametrize("backend", BACKENDS)
def test_predicates_are_numbers_too(backend: str) -> None:
    def chosen(pred: Any, x: Any) -> Any:
        return wend.cond(pred, lambda x: x * x, lambda x: -x, x)

    for pred in (0, 2, 0.0, -0.5, np.nan, np.float32(0), np.int8(3), np.array(0), 1j, True, False):
        wanted = 9.0 if pred else -3.0
        run = wend.function(chosen, backend=backend)
        assert chosen(pred, 3.0) == run(pred, 3.0) == wanted, pred
        assert wend.grad(run, argnums=1)(pred, 3.0) == (6.0 if pred else -1.0)
    with pytest.raises(wend.WendError, match="scalar"):
        run(np.array([1, 0]), 3.0)
