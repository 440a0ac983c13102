"""Batching of `parallel_map` nodes: what becomes one operation, and what stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.graphs import traced
from wend.ir import Graph, verify
from wend.passes.batch_maps import batch_maps
from wend.passes.dce import dce
from wend.passes.inline import inline_calls
from wend.passes.lower_parallel_maps import lower_parallel_maps
from wend.passes.pipeline import run_passes

RNG = np.random.default_rng(0)
WEIGHTS = [RNG.normal(size=(3, 4)) / 2, RNG.normal(size=(4, 4)) / 2, RNG.normal(size=4)]
X = RNG.normal(size=(5, 3))
SERIES = RNG.normal(size=(5, 6, 3))


def mlp(x: Any, w: Any, v: Any, b: Any) -> Any:
    h = wnp.tanh(x @ w)
    return wnp.sum(wnp.tanh(h @ v + b) ** 2)


def rnn(xs: Any, w: Any, v: Any, b: Any) -> Any:
    h = wnp.zeros(4)
    for x in xs:
        h = wnp.tanh(x @ w + h @ v + b)
    return wnp.sum(h * h)


def outputs(xs: Any, w: Any, v: Any, b: Any) -> Any:
    out, h = [], wnp.zeros(4)
    for x in xs:
        h = wnp.tanh(x @ w + h @ v + b)
        out.append(h)
    return wnp.stack(out)


def batched(fun: Callable[..., Any], *args: Any) -> Graph:
    graph = run_passes(traced(fun, *args), [inline_calls, batch_maps, dce])
    return verify(graph)


def in_axes(shared: int) -> tuple[int | None, ...]:
    return (0, *(None for _ in range(shared)))


def mapped(fun: Callable[..., Any]) -> Callable[..., Any]:
    return wend.vmap(fun, in_axes(3))


def gradients(fun: Callable[..., Any]) -> Callable[..., Any]:
    return mapped(wend.grad(fun, (0, 1, 2, 3)))


@pytest.mark.parametrize("fun", [mlp, rnn, outputs])
def test_array_programs_become_array_programs(fun):
    x = X if fun is mlp else SERIES
    graph = batched(mapped(fun), x, *WEIGHTS)
    assert graph.count("parallel_map") == 0
    assert graph.count("while") == (fun is not mlp)
    found = mapped(fun)(x, *WEIGHTS)
    np.testing.assert_allclose(found, [fun(row, *WEIGHTS) for row in x], rtol=1e-12)


@pytest.mark.parametrize("fun", [mlp, rnn])
def test_gradients_for_each_element(fun):
    x = X if fun is mlp else SERIES
    assert batched(gradients(fun), x, *WEIGHTS).count("parallel_map") == 0
    found = gradients(fun)(x, *WEIGHTS)
    expected = [wend.grad(fun, (0, 1, 2, 3))(row, *WEIGHTS) for row in x]
    for part, parts in zip(found, zip(*expected, strict=True), strict=True):
        np.testing.assert_allclose(part, np.stack(parts), rtol=1e-10, atol=1e-12)


def test_the_sum_of_products_is_one_product():
    def loss(w, v, b, x):
        return wnp.sum(mapped(mlp)(x, w, v, b))

    graph = batched(wend.grad(loss, (0, 1, 2)), *WEIGHTS, X)
    assert graph.count("parallel_map") == 0
    products = [node for node in graph.walk() if node.op.name == "dot_general"]
    assert all(not node.attrs["batch"][0] for node in products)
    found = wend.grad(loss, (0, 1, 2))(*WEIGHTS, X)
    rows = [wend.grad(mlp, (1, 2, 3))(row, *WEIGHTS) for row in X]
    for part, parts in zip(found, zip(*rows, strict=True), strict=True):
        np.testing.assert_allclose(part, sum(parts), rtol=1e-10, atol=1e-12)


def test_loops_of_each_element_stay_alone():
    def fun(x, a):
        y = wnp.tanh(x @ wnp.ones(3))
        while y < a:
            y = y + 0.7
        return wnp.exp(y) * 2

    vmapped = wend.vmap(fun, (0, None))
    graph = batched(vmapped, X, 3.0)
    (node,) = [node for node in graph.nodes if node.op.name == "parallel_map"]
    assert [inner.op.name for inner in node.regions[0].nodes] == ["while"]
    assert node.operands[0].type.shape == (5,)
    np.testing.assert_allclose(vmapped(X, 3.0), [fun(x, 3.0) for x in X], rtol=1e-14)


def test_what_no_element_enters_is_computed_once():
    graph = batched(wend.vmap(lambda x, w: x + wnp.sum(wnp.sin(w)), (0, None)), X, WEIGHTS[0])
    assert [node.type.shape for node in _results(graph, "sin")] == [(3, 4)]


def test_short_branches_are_both_computed():
    def fun(x):
        return x * 2 if x > 0 else x - 1

    vmapped = wend.vmap(fun)
    graph = batched(vmapped, X[:, 0])
    assert (graph.count("if"), graph.count("parallel_map")) == (0, 0)
    np.testing.assert_array_equal(vmapped(X[:, 0]), [fun(x) for x in X[:, 0]])


def test_branches_that_may_fail_are_not():
    def fun(k, table):
        return table[k] if k < 3 else 0.0

    vmapped = wend.vmap(fun, (0, None))
    np.testing.assert_array_equal(vmapped(np.array([0, 5, 2]), np.arange(3.0)), [0, 0, 2])


@pytest.mark.parametrize("count", [0, 1, 4])
@pytest.mark.parametrize("fun", [mlp, rnn])
def test_numbers_of_elements(fun, count):
    x = (X if fun is mlp else SERIES)[:count]
    found = gradients(fun)(x, *WEIGHTS)
    assert [part.shape for part in found] == [
        (count, *np.shape(arg)) for arg in (x[0] if count else np.zeros(x.shape[1:]), *WEIGHTS)
    ]


def test_strict_mode_merges_nothing():
    with wend.config(strict=True):
        found = mapped(mlp)(X, *WEIGHTS)
        expected = [wend.function(mlp)(row, *WEIGHTS) for row in X]
    np.testing.assert_array_equal(found, expected)


def test_mapped_and_lowered_graphs_agree():
    graph = traced(gradients(rnn), SERIES, *WEIGHTS)
    assert verify(lower_parallel_maps(graph)).count("parallel_map") == 0


def _results(graph: Graph, op: str) -> list[Any]:
    return [node.results[0] for node in graph.walk() if node.op.name == op]
