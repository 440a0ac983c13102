"""Maps whose elements are computed so many at a time: what they become, and what they keep."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
import wend.numpy as wnp
from tests.helpers.graphs import loops, traced
from wend.backends.numpy.backend import BACKEND
from wend.ir import Graph, verify
from wend.ops.parallel_map import CHUNK, parallel_map
from wend.passes.fuse_maps import fuse_maps
from wend.passes.inline import inline_calls
from wend.passes.lower_linear_blocks import lower_linear_blocks
from wend.passes.lower_parallel_maps import lower_parallel_maps
from wend.passes.strip_mine_maps import strip_mine_maps

POINTS = np.random.default_rng(0).standard_normal((10, 3))


def bounded(fun: Any, *args: Any) -> Graph:
    """The graph after the passes up to this one."""
    graph = fuse_maps(inline_calls(lower_linear_blocks(traced(fun, *args))))
    bound = verify(strip_mine_maps(graph))
    assert not any(CHUNK in node.attrs for node in bound.walk() if node.op is parallel_map)
    return bound


def sizes_of_maps(graph: Graph) -> list[Any]:
    maps = [node for node in graph.walk() if node.op is parallel_map]
    return sorted(node.operands[0].type.dims[0] for node in maps)


@pytest.mark.parametrize(
    ("chunk_size", "sizes"), [(1, [1]), (4, [2, 4]), (5, [5]), (10, [10]), (11, [10])]
)
def test_chunks_and_what_is_left(chunk_size: int, sizes: list[int]) -> None:
    graph = bounded(wend.vmap(lambda x: np.exp(x @ x), chunk_size=chunk_size), POINTS)
    assert sizes_of_maps(graph) == sizes
    assert len(loops(graph)) == (chunk_size < 10)


def test_a_chunk_runs_forward_and_backward_in_one_go() -> None:
    """The loop gives the gradients, and keeps nothing for a loop after it."""

    def total(s: Any, x: Any) -> Any:
        each = wend.vmap(lambda s, x: np.exp(x @ x) * np.sin(s), (None, 0), chunk_size=4)
        return wnp.sum(each(s, x))

    graph = bounded(wend.grad(total, (0, 1)), 0.5, POINTS)
    (loop,) = loops(graph)
    assert len(loop.results) == 1 + 2
    assert sizes_of_maps(graph) == [2, 4]


def ragged(x: Any) -> Any:
    return wend.vmap(lambda x: wnp.sort(x[x > 9.0]), chunk_size=4)(x)


def test_results_without_rows_come_one_by_one() -> None:
    graph = bounded(ragged, POINTS)
    assert sizes_of_maps(graph) == []
    assert wend.function(ragged)(POINTS).shape == (10, 0)


ANY_NUMBER = wend.TensorSpec([None, 3], "float64")


def weighted(s: Any, x: Any) -> Any:
    """The sum, and its gradient, whose parts are a sum and rows."""

    def total(s: Any, x: Any) -> Any:
        return wnp.sum(wend.vmap(lambda a: np.exp(a @ a * s), chunk_size=4)(x))

    return total(s, x), wend.grad(total, (0, 1))(s, x)


def test_chunks_of_elements_of_any_number() -> None:
    graph = bounded(weighted, wend.TensorSpec([], "float64"), ANY_NUMBER)
    sizes = [node.operands[0].type.dims[0] for node in graph.walk() if node.op is parallel_map]
    assert 4 in sizes
    assert len(loops(graph)) == len(sizes) // 2
    run = BACKEND.compile(lower_parallel_maps(graph))
    for count in (0, 1, 3, 4, 5, 8, 9):
        points = np.resize(POINTS, (count, 3))
        value, (by_s, by_x) = wend.function(weighted)(0.5, points)
        for found, expected in zip(run([0.5, points]), (value, by_s, by_x), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_elements_of_any_size_come_one_by_one() -> None:
    fun = wend.vmap(lambda x: x @ x, chunk_size=4)
    spec = wend.TensorSpec([6, None], "float64")
    assert sizes_of_maps(bounded(fun, spec)) == []
    function = wend.function(fun, input_signature=[spec])
    function(np.ones((6, 2)))
    assert "one by one: chunks are of elements of known sizes, not of f64[" in function.explain()


def nested(s: Any, x: Any) -> Any:
    inner = wend.vmap(lambda a: a * s, chunk_size=2)
    return wend.vmap(lambda x: (inner(x), x @ x), chunk_size=3)(x)


@pytest.mark.parametrize(
    "fun",
    [nested, wend.grad(lambda s, x: wnp.sum(nested(s, x)[0] ** 2) + wnp.sum(nested(s, x)[1]), 1)],
)
def test_values_are_those_of_the_map(fun: Any) -> None:
    graph = traced(fun, 2.0, POINTS)
    expected = BACKEND.compile(inline_calls(lower_parallel_maps(lower_linear_blocks(graph))))
    found = BACKEND.compile(lower_parallel_maps(bounded(fun, 2.0, POINTS)))
    for a, b in zip(expected([2.0, POINTS]), found([2.0, POINTS]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)
