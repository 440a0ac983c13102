"""Products that add nothing up: in loops, and equal to those of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.helpers.graphs import traced

import wend
import wend.numpy as wnp
from wend.backends.native.module import prepare_for_emission
from wend.ops.contracting import dot_general
from wend.passes.pipeline import OPTIMIZE, run_passes


def products(fun: Any, *args: Any) -> int:
    """Return how many matrix products the compiled form of a function has."""
    graph = prepare_for_emission(run_passes(traced(fun, *args), OPTIMIZE))
    return sum(node.op is dot_general for node in graph.walk())


@pytest.mark.parametrize("dtype", ["i4", "f4", "f8", "c16"])
@pytest.mark.parametrize("sizes", [("bi,bj->bij"), ("ib,bj->bij"), ("ab,abk->abk"), ("bi,jb->bji")])
def test_batches(sizes: str, dtype: str) -> None:
    dims = {"a": 5, "b": 6, "i": 7, "j": 3, "k": 9}
    rng = np.random.default_rng(1)
    shapes = [[dims[k] for k in part] for part in sizes.partition("->")[0].split(",")]
    x, y = ((9 * rng.standard_normal(shape)).astype(dtype) for shape in shapes)

    def product(x: Any, y: Any) -> Any:
        return wnp.einsum(sizes, x, y)

    found = wend.function(product, backend="native")(x, y)
    np.testing.assert_array_equal(found, np.einsum(sizes, x, y))
    assert found.dtype == np.dtype(dtype)
    assert products(product, x, y) == 0


def test_readers_decide_about_a_single_one() -> None:
    """One that a loop reads is fused with it; one that is added to a matrix accumulates there."""
    x, y, w = np.arange(40.0), np.arange(50.0), np.ones((40, 50))
    assert products(lambda x, y: np.exp(-wnp.outer(x, y)), x, y) == 0

    def accumulated(x: Any, y: Any, w: Any) -> Any:
        for k in range(np.int64(3)):
            w = w + wnp.tensordot(x + k, y, 0)
        return w

    assert products(accumulated, x, y, w) == 1
    found = wend.function(accumulated, backend="native")(x, y, w)
    np.testing.assert_allclose(found, accumulated(x, y, w))


def test_gradients_of_a_network_per_example() -> None:
    """The products forward, and none for the gradients: a number for each pair is written once."""
    rng = np.random.default_rng(2)
    weights = rng.standard_normal((12, 20)), rng.standard_normal(20), rng.standard_normal(20)
    xs, ys = rng.standard_normal((30, 12)), rng.standard_normal(30)

    def loss(weights: Any, x: Any, y: Any) -> Any:
        w1, b1, w2 = weights
        return (np.tanh(x @ w1 + b1) @ w2 - y) ** 2

    gradients = wend.vmap(wend.grad(loss), in_axes=(None, 0, 0))
    assert products(gradients, weights, xs, ys) == 2
    found = gradients(weights, xs, ys)
    single = [wend.grad(loss)(weights, x, y) for x, y in zip(xs, ys, strict=True)]
    for column, expected in zip(found, zip(*single, strict=True), strict=True):
        np.testing.assert_allclose(column, np.stack(expected), rtol=1e-10, atol=1e-12)


def windows(x: Any, h: Any) -> Any:
    """Each trip's adjoint adds multiples of vectors to two cotangents."""
    total = 0.0
    for i in range(x.shape[0] - h.shape[0] + 1):
        total = total + np.sin(x[i : i + h.shape[0]] @ h)
    return total


def beginnings(x: Any, h: Any) -> Any:
    total = 0.0
    for i in range(h.shape[0]):
        total = total + np.sin(x[:i] @ h[:i])
    return total


@pytest.mark.parametrize("program", [windows, beginnings])
def test_multiples_of_vectors_are_no_products(program: Any) -> None:
    x, h = np.random.default_rng(4).standard_normal((2, 90))
    h = h[:70] / 9
    gradient = wend.grad(program, (0, 1))
    assert products(gradient, x, h) == products(program, x, h) == 1
    for found, expected in zip(
        wend.function(gradient, backend="native")(x, h),
        wend.function(gradient, backend="numpy")(x, h),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
