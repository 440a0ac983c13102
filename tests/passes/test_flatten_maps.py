"""A map of a map of loops on numbers is one map over the pairs, with the bits of plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wend
from wend.backends.strict import same_bits
from wend.ops.parallel_map import parallel_map
from wend.passes.flatten_maps import flatten_maps
from wend.passes.inline import inline_calls

ROWS, COLUMNS = np.linspace(1.0, 2.0, 40), np.linspace(1.0, 3.0, 5)
TABLE = np.linspace(0.5, 2.0, 200).reshape(40, 5)


def root(a: Any, c: Any) -> Any:
    x = a
    while np.abs(x * x - a * c) > 1e-12 * a * c:
        x = 0.5 * (x + a * c / x)
    return x


def pair(a: Any, c: Any) -> Any:
    return root(a, c), np.array([a, c])


def map_count(fun: Any, *args: Any) -> int:
    graph = flatten_maps(inline_calls(wend.function(fun).get_concrete_function(*args).graph))
    return sum(node.op is parallel_map for node in graph.walk())


NESTS = [
    ((0, None), (None, 0), (ROWS, COLUMNS)),  # all pairs
    ((None, 0), (0, None), (COLUMNS, ROWS)),
    ((0, 0), (0, 0), (TABLE, TABLE[::-1].copy())),
    ((0, 0), (0, None), (TABLE, ROWS)),
    ((0, None), (0, 0), (TABLE, COLUMNS)),
    ((1, None), (0, None), (TABLE, 1.5)),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize(("outer", "inner", "args"), NESTS)
def test_pairs_are_elements(outer: Any, inner: Any, args: Any, order: int) -> None:
    fun = wend.grad(root) if order else root
    nested = wend.vmap(wend.vmap(fun, inner), outer)
    native = wend.function(nested, backend="native")
    assert map_count(nested, *args) == 1
    alone = wend.function(fun, backend="native")

    def along(x: Any, axis: Any, k: int) -> Any:
        return x if axis is None else np.take(x, k, axis)

    found = native(*args)
    for i, row in enumerate(found):
        own = [along(x, axis, i) for x, axis in zip(args, outer, strict=True)]
        for j, value in enumerate(row):
            element = [along(x, axis, j) for x, axis in zip(own, inner, strict=True)]
            assert same_bits(value, alone(*element))
    assert " lanes" in native.explain()


def test_three_maps_of_several_results() -> None:
    cube = np.linspace(0.5, 2.0, 60).reshape(3, 4, 5)
    inner = wend.vmap(pair, (0, None))
    nested = wend.vmap(wend.vmap(inner, (0, None)), (0, None))
    assert map_count(nested, cube, 1.5) == 1
    roots, arrays = nested(cube, 1.5)
    np.testing.assert_allclose(roots, np.sqrt(cube * 1.5))
    assert same_bits(arrays, np.stack([cube, np.full_like(cube, 1.5)], axis=-1))


@pytest.mark.parametrize("shape", [(0, 5), (40, 0)])
def test_no_elements(shape: Any) -> None:
    nested = wend.vmap(wend.vmap(lambda a: root(a, 2.0)))
    assert nested(np.ones(shape)).shape == shape


def test_other_maps_stay() -> None:
    def with_a_sum(a: Any, cs: Any) -> Any:
        return np.sum(wend.vmap(lambda c: root(a, c))(cs))

    def of_rows(a: Any, x: Any) -> Any:
        return wend.while_loop(lambda v: v[0] < a, lambda v: v * 2.0, x)

    assert map_count(wend.vmap(with_a_sum, (0, None)), ROWS, COLUMNS) == 2
    nested = wend.vmap(wend.vmap(of_rows, (None, 0)), (0, None))
    assert map_count(nested, ROWS, np.ones((5, 6))) == 2
