"""Fusion of `parallel_map` nodes: forward and backward of each element in one go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.graphs import traced
from tests.passes.test_batch_maps import SERIES, WEIGHTS, mapped, rnn
from wend.ir import Graph, verify
from wend.passes.batch_maps import batch_maps
from wend.passes.fuse_maps import fuse_maps
from wend.passes.inline import inline_calls
from wend.passes.lower_linear_blocks import lower_linear_blocks


def root(a: Any) -> Any:
    x = a
    while np.abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


def prepared(fun: Callable[..., Any], *args: Any) -> Graph:
    return inline_calls(lower_linear_blocks(traced(fun, *args)))


def counts(fun: Callable[..., Any], *args: Any) -> tuple[int, int]:
    graph = prepared(fun, *args)
    return graph.count("parallel_map"), verify(fuse_maps(graph)).count("parallel_map")


def test_forward_and_backward_are_one() -> None:
    gradient = wend.value_and_grad(lambda x: wnp.sum(wend.vmap(root)(x)))
    x = np.arange(1.0, 6.0)
    assert counts(gradient, x) == (2, 1)
    value, slopes = gradient(x)
    np.testing.assert_allclose(value, sum(root(a) for a in x))
    np.testing.assert_allclose(slopes, [wend.grad(root)(a) for a in x])


def test_what_joins_elements_in_between_keeps_them_apart() -> None:
    gradient = wend.grad(lambda x: wnp.sum(wend.vmap(root)(x)) ** 2)
    x = np.arange(1.0, 6.0)
    assert counts(gradient, x) == (2, 2)
    total = sum(root(a) for a in x)
    np.testing.assert_allclose(gradient(x), [2 * total * wend.grad(root)(a) for a in x])


def test_results_that_others_read_stay() -> None:
    def fun(x: Any) -> Any:
        y = wend.vmap(root)(x)
        return wnp.max(y), wend.vmap(root)(y + 0.0 * x)

    x = np.arange(1.0, 6.0)
    largest, again = wend.function(fun)(x)
    np.testing.assert_allclose(largest, root(5.0))
    np.testing.assert_allclose(again, [root(root(a)) for a in x])


def test_the_loops_of_a_gradient_batch() -> None:
    def loss(w: Any, v: Any, b: Any, x: Any) -> Any:
        return wnp.sum(mapped(rnn)(x, w, v, b))

    gradient = wend.grad(loss, (0, 1, 2))
    graph = verify(batch_maps(fuse_maps(prepared(gradient, *WEIGHTS, SERIES))))
    assert graph.count("parallel_map") == 0
    rows = [wend.grad(rnn, (1, 2, 3))(row, *WEIGHTS) for row in SERIES]
    for part, parts in zip(gradient(*WEIGHTS, SERIES), zip(*rows, strict=True), strict=True):
        np.testing.assert_allclose(part, sum(parts), rtol=1e-10, atol=1e-12)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "loss",
    [
        lambda y, t: wnp.mean((y - t) ** 2),
        lambda y, t: wnp.sum(np.exp(-y) * 3.0) + wnp.max(t),
        lambda y, t: wnp.sum(np.where(y > t, y - t, 0.5 * (t - y))),
    ],
)
@pytest.mark.parametrize("of", [root, lambda a: np.array([root(a), a])])
def test_the_elements_of_a_loss_join_none(loss: Any, of: Any) -> None:
    """The forward map, what the loss does to its rows, and the backward map are one map."""

    def gradient(rows: Callable[..., Any]) -> Callable[..., Any]:
        def fun(x: Any) -> Any:
            y = rows(x)
            return loss(y, np.linspace(0.0, 3.0, y.size).reshape(y.shape))

        return wend.grad(fun)

    x = np.arange(1.0, 6.0)
    mapped, by_loop = gradient(wend.vmap(of)), gradient(lambda x: np.stack([of(a) for a in x]))
    assert counts(mapped, x) == (2, 1)
    np.testing.assert_allclose(mapped(x), by_loop(x), rtol=1e-12)
